"""Slow proofs were run, whole, and showed no violation; those of older code are listed."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.support.proofs import PROOFS, RESULTS, ROOT, SCHEMA, SEEDS, accept, outdated

WHOLE = {
    "seeds": SEEDS,
    "violations": [],
    "fault_coverage": {"killed before": 3},
    "remote_calls": 20,
    "mean_steps": 2.0,
    "seconds": 600.0,
}


@pytest.mark.parametrize("name", PROOFS)
def test_a_slow_proof_was_accepted_and_shows_no_violation(name):
    found = json.loads((RESULTS / f"{name}.json").read_text())
    assert found["schema"] == SCHEMA
    assert found["violations"] == 0
    assert found["seconds"] > 0
    assert len(found["commit"]) == 40


def test_what_ran_on_older_code_is_told(capsys):
    with capsys.disabled():
        for line in outdated():
            sys.stdout.write(f"\nof older code: {line}")


def test_every_result_is_of_a_proof_that_is_known():
    assert {path.stem for path in RESULTS.glob("*.json")} == set(PROOFS)


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one input file and a run's result."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "commit"]
    subprocess.run([*commit, "-q", "--allow-empty", "-m", "x"], cwd=tmp_path, check=True)
    (tmp_path / "tiering_assets" / "steps").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "tiering_assets" / "steps" / "sweep.py", tmp_path / "tiering_assets/steps")

    def result(**changes):
        (tmp_path / "build").mkdir(exist_ok=True)
        (tmp_path / "build" / "simulation.json").write_text(json.dumps(WHOLE | changes))

    result()
    return tmp_path, result


def test_a_change_of_what_it_exercised_makes_it_older(checkout):
    root, _result = checkout
    accept("simulation", root=root)
    assert outdated(root) == []
    with (root / "tiering_assets" / "steps" / "sweep.py").open("a") as file:
        file.write("# changed\n")
    assert outdated(root) == ["simulation: make simulate ACCEPT=1"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"violations": [{"seed": 1}]}, "1 violations"),
        ({"seeds": 500}, "500 seeds, the whole is 10000"),
        ({"fault_coverage": {"paused": 0}}, "never struck: paused"),
    ],
)
def test_less_than_the_whole_is_not_accepted(checkout, changes, words):
    root, result = checkout
    result(**changes)
    with pytest.raises(ValueError, match=words):
        accept("simulation", root=root)
    assert not (root / "docs" / "results").exists()
