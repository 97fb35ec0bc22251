import ast
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tiering_assets.ground.effects import POINTS, VARIABLE, _Countdown, reach

PRODUCT = Path(__file__).parents[3] / "tiering_assets"
PROGRAM = (
    "import atexit, sys\n"
    "from tiering_assets.ground.effects import reach\n"
    "atexit.register(print, 'cleaned up')\n"
    "print('before', flush=True)\n"
    "try:\n"
    "    for point in sys.argv[1:]:\n"
    "        reach(point)\n"
    "finally:\n"
    "    print('after', flush=True)\n"
)


def points_in(path):
    """Names given to reach("…"), to a worker's reached("…"), and, for a change of both kinds, to
    _reach(…, publish="…", …).
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        if ast.unparse(node.func) not in ("reach", "_reach", "worker.reached"):
            continue
        named = [*node.args, *(keyword.value for keyword in node.keywords)]
        yield from (value.value for value in named if isinstance(value, ast.Constant))


def reached_by_steps():
    return Counter(point for path in PRODUCT.rglob("*.py") for point in points_in(path))


def run(*points, crash_at=None):
    environment = {k: v for k, v in os.environ.items() if k != VARIABLE}
    if crash_at is not None:
        environment[VARIABLE] = crash_at
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *points],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_point_is_reached_by_exactly_one_call_and_no_other_is_named():
    assert reached_by_steps() == Counter(POINTS)


def test_no_point_is_listed_twice():
    assert len(set(POINTS)) == len(POINTS)


@pytest.mark.parametrize("point", POINTS)
def test_without_the_variable_nothing_happens(point, monkeypatch):
    monkeypatch.setattr("tiering_assets.ground.effects._wanted", _Countdown(""))
    reach(point)


def test_with_the_variable_the_process_dies_at_that_point_and_cleans_nothing_up():
    died = run("publish.context_set", crash_at="publish.context_set")
    assert died.returncode == -signal.SIGKILL
    assert died.stdout == "before\n"


def test_the_second_time_is_one_that_is_passed_once():
    twice = ["copy.part_sent", "offload.parts_sent", "copy.part_sent"]
    assert run(*twice, crash_at="copy.part_sent:2").returncode == -signal.SIGKILL
    assert run(*twice, crash_at="copy.part_sent:3").returncode == 0


def test_other_points_are_passed_on_the_way():
    passed = run("publish.outcome_won", crash_at="publish.context_set")
    assert (passed.returncode, passed.stdout) == (0, "before\nafter\ncleaned up\n")


def test_an_unset_variable_kills_nothing():
    passed = run("publish.context_set")
    assert (passed.returncode, passed.stdout) == (0, "before\nafter\ncleaned up\n")


def test_a_point_that_is_not_listed_is_an_error_while_testing():
    wrong = run("publish.contxt_set", crash_at="publish.context_set")
    assert wrong.returncode == 1
    assert "unknown crash point 'publish.contxt_set'" in wrong.stderr


@pytest.fixture
def killed(monkeypatch):
    """Signals that this process would have got."""
    sent = []
    monkeypatch.setattr(os, "kill", lambda _pid, number: sent.append(number))
    return sent


def want(monkeypatch, text):
    monkeypatch.setattr("tiering_assets.ground.effects._wanted", _Countdown(text))


def test_it_dies_once_at_the_time_that_is_named(monkeypatch, killed):
    want(monkeypatch, "copy.part_sent:2")
    for point, dies in (
        ("copy.part_sent", False),
        ("offload.parts_sent", False),
        ("offload.parts_sent", False),
        ("copy.part_sent", True),
        ("copy.part_sent", False),
    ):
        reach(point)
        assert killed == ([signal.SIGKILL] if dies else [])
        killed.clear()


def test_a_name_that_is_not_listed_matters_while_testing_alone(monkeypatch, killed):
    want(monkeypatch, "")
    reach("publish.contxt_set")
    want(monkeypatch, "publish.context_set")
    with pytest.raises(ValueError, match="unknown crash point"):
        reach("publish.contxt_set")
    assert killed == []
