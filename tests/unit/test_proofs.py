"""Slow proofs were run, whole, and showed no violation; those of older code are listed."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.support.cold_faults import FAULTS, MODES
from tests.support.crash_processes import KINDS
from tests.support.proofs import (
    PROOFS,
    RESULTS,
    ROOT,
    SCHEMA,
    SEEDS,
    SOAK_MINUTES,
    accept,
    outdated,
)
from tiering_assets.ground.effects import POINTS


def _killed(names, **of_last):
    rows = [{"name": name, "kills": 1} for name in names]
    return [*rows[:-1], rows[-1] | of_last]


def _tried(modes):
    pairs = [(fault.name, mode) for fault in FAULTS for mode in modes]
    return [{"fault": fault, "mode": mode, "outcome": "proven"} for fault, mode in pairs]


WHOLE = {
    "simulation": {
        "seeds": SEEDS,
        "violations": [],
        "fault_coverage": {"killed before": 3},
        "remote_calls": 20,
        "mean_steps": 2.0,
        "seconds": 600.0,
    },
    "crash-matrix": {
        "points": _killed(POINTS),
        "processes": _killed(KINDS),
        "kills": 60,
        "anomalies": 0,
        "parts_resent": 1,
        "seconds": 900.0,
    },
    "mutants": {
        "mutants": [{"name": "x is False", "no_guard": None}],
        "tried": 10**6,
        "caught": 10**6,
        "survived": [],
        "no_guard": 0,
        "uncovered": 0,
        "seconds": 300.0,
    },
    "cold": {
        "faults": len(FAULTS),
        "pairs": _tried(MODES),
        "proven": 90,
        "the_same": 10,
        "anomalies": 0,
        "missed": [],
        "tests": 300,
        "seconds": 900.0,
    },
    "soak": {
        "minutes": SOAK_MINUTES,
        "violations": [],
        "faults": {"daemon": "12:00:00"},
        "messages_produced": 10,
        "messages_read": 10,
        "ledgers_published": 4,
        "ledgers_released": 3,
        "disturbances": 2,
        "max_ack_gap_s": 0.5,
        "posting_lag_p50_s": 3.0,
        "posting_lag_p95_s": 9.0,
        "due_to_begun_p50_s": 8.0,
        "due_to_begun_p95_s": 20.0,
    },
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
    (tmp_path / "tiering_assets" / "clean").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "tiering_assets" / "clean" / "sweep.py", tmp_path / "tiering_assets/clean")

    def result(name, **changes):
        (tmp_path / "build").mkdir(exist_ok=True)
        (tmp_path / "build" / f"{name}.json").write_text(json.dumps(WHOLE[name] | changes))

    for name in PROOFS:
        result(name)
    return tmp_path, result


def test_a_change_of_what_it_exercised_makes_it_older(checkout):
    root, _result = checkout
    again = [f"{name}: {proof.target} ACCEPT=1" for name, proof in PROOFS.items()]
    assert outdated(root) == again, "none was ever accepted"
    for name in PROOFS:
        accept(name, root=root)
    assert outdated(root) == []
    with (root / "tiering_assets" / "clean" / "sweep.py").open("a") as file:
        file.write("# changed\n")
    assert outdated(root) == again


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("simulation", {"violations": [{"seed": 1}]}, "1 violations"),
        ("simulation", {"seeds": 500}, "500 seeds, the whole is 10000"),
        ("simulation", {"fault_coverage": {"paused": 0}}, "never struck: paused"),
        ("crash-matrix", {"anomalies": 2}, "2 violations"),
        (
            "crash-matrix",
            {"points": _killed(POINTS, kills=0)},
            f"nobody was killed at {POINTS[-1]}",
        ),
        ("crash-matrix", {"processes": _killed(KINDS[1:])}, f"nobody was killed at {KINDS[0]}"),
        ("mutants", {"survived": ["x is False"]}, "1 violations"),
        ("mutants", {"uncovered": 1}, "1 violations"),
        ("mutants", {"tried": 3}, "3 were tried of"),
        ("cold", {"anomalies": 1}, "1 violations"),
        ("cold", {"pairs": _tried([*MODES][1:])}, f"not run: .*, {next(iter(MODES))}"),
        ("cold", {"missed": ["a fault, plain"]}, "not run: a fault, plain"),
        ("soak", {"violations": ["lost"]}, "1 violations"),
        ("soak", {"minutes": 2.5}, "2.5 minutes, the whole is 10"),
    ],
)
def test_less_than_the_whole_is_not_accepted(checkout, name, changes, words):
    root, result = checkout
    result(name, **changes)
    with pytest.raises(ValueError, match=words):
        accept(name, root=root)
    assert not (root / "docs" / "results").exists()
