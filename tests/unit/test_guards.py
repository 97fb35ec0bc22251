"""Every condition that keeps us from an effect is known, and somebody notices when it is gone."""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.support import guard_hunt
from tests.support.guard_mutant import break_guard
from tests.support.guards import Guard, find_guards
from tests.support.killers import Killers
from tests.support.mutate import all_mutants
from tests.support.proofs import ROOT

SAMPLE_S = 60

DOER = """
from tiering_assets.rules import may_go, reasons

def sweep(stack, keys):
    for key in keys:
        if key.startswith("kept") or not may_go(key):
            continue
        _take(stack, key)

def _take(stack, key):
    if why := reasons(key):
        raise ValueError(why)
    stack.objects.delete(key)

def show(stack, key):
    if key:
        print(stack.objects.head(key))
"""
RULES = """
def may_go(key: str) -> bool:
    return len(key) > 3 and key.islower()

def reasons(key):
    return [word for word in key.split() if word == "held"]
"""


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "tiering_assets"
    folder.mkdir()
    (folder / "doing.py").write_text(DOER)
    (folder / "rules.py").write_text(RULES)
    return tmp_path


def test_what_reaches_an_effect_and_what_it_asks_is_searched_for_guards(package):
    assert {(one.function, one.expression, one.forced) for one in find_guards(package)} == {
        ("sweep", "key.startswith('kept') or not may_go(key)", False),
        ("sweep", "key.startswith('kept')", False),
        ("sweep", "not may_go(key)", False),
        ("_take", "(why := reasons(key))", False),
        ("may_go", "len(key) > 3 and key.islower()", True),
        ("may_go", "len(key) > 3 and key.islower()", False),
        ("may_go", "len(key) > 3", True),
        ("may_go", "key.islower()", True),
        ("reasons", "word == 'held'", True),
    }


def test_a_guard_that_is_taken_out_is_asked_and_does_not_count(package, monkeypatch):
    monkeypatch.syspath_prepend(package / "tiering_assets")
    import rules  # type: ignore[import-not-found]

    [guard] = [one for one in find_guards(package) if one.function == "reasons"]
    held = rules.reasons  # as another module has imported it
    assert held("held free") == ["held"]
    break_guard(Guard(**{**vars_of(guard), "module": "rules"}))
    assert held("held free") == ["held", "free"]


def vars_of(guard):
    return {name: getattr(guard, name) for name in Guard.__slots__}


def test_names_tell_guards_apart():
    assert [n for n, count in Counter(one.name for one in find_guards()).items() if count > 1] == []


def test_every_guard_stands_in_the_list_and_the_list_names_no_other():
    killers, names = Killers.read(), [one.name for one in all_mutants()]
    assert killers.uncovered(names) == [], "`make mutants FIND=1` looks for who notices them"
    assert {*killers.killed, *killers.no_guard} - set(names) == set()


def test_a_sample_of_them_is_noticed_by_whom_the_list_names(tmp_path):
    result = tmp_path / "mutants.json"
    command = ["-m", "tests.support.mutate", "--sample", str(SAMPLE_S), "--output", str(result)]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(result.read_text())["caught"] > 0


def test_a_test_that_hangs_in_code_that_catches_everything_has_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(guard_hunt, "_TEST_S", 0.5)
    test = tmp_path / "test_endless.py"
    test.write_text(
        "def test_it():\n    while True:\n        try:\n            sum(range(9))\n"
        "        except BaseException:\n            pass\n"
    )
    mistake = guard_hunt.Mistake("none", lambda: None)
    [(_, noticed, _)] = guard_hunt.hunt_all([(mistake, [f"{test}::test_it"])], limit_s=60)
    assert str(noticed).endswith("test_endless.py::test_it")


def test_tests_that_do_not_run_have_not_answered_and_are_asked_a_second_time(tmp_path):
    test = tmp_path / "test_broken.py"
    test.write_text(
        "from pathlib import Path\n"
        "asked = Path(__file__).with_name('asked')\n"
        "with asked.open('a') as file:\n    file.write('x')\n"
        "assert asked.read_text() != 'x', 'not yet'\n"
        "def test_it():\n    raise AssertionError\n"
    )
    mistake = guard_hunt.Mistake("none", lambda: None)
    [(_, noticed, _)] = guard_hunt.hunt_all([(mistake, [f"{test}::test_it"])], limit_s=60)
    assert str(noticed).endswith("test_broken.py::test_it")
    assert (tmp_path / "asked").read_text() == "xx"


@pytest.mark.parametrize(
    ("watcher", "make", "limit_s", "said"),
    [
        ("{}::test_other", lambda: None, 300, "USAGE_ERROR.*not found"),
        ("{}::test_it", lambda: exec("raise LookupError('nowhere')"), 300, "LookupError: nowhere"),
        ("{}::test_it", lambda: os._exit(3), 300, "its process died"),
        ("{}::test_it", lambda: time.sleep(600), 1, "no answer in 1 s"),
    ],
)
def test_who_cannot_be_asked_twice_is_told_with_the_reason(tmp_path, watcher, make, limit_s, said):
    test = tmp_path / "test_it.py"
    test.write_text("def test_it():\n    pass\n")
    asks = [(guard_hunt.Mistake("named", make), [watcher.format(test)])]
    [(_, noticed, _)] = guard_hunt.hunt_all(asks, limit_s=limit_s)
    assert isinstance(noticed, guard_hunt.Unheard)
    assert re.search(f"(?s){said}", noticed.why)
