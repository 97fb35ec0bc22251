"""What the library says becomes a verdict: whatever was not evaluated has failed, with its
reason.
"""

import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from tests.support.ledger_facts import SOUND
from tiering_assets.quality import expectations_run, user_suites
from tiering_assets.quality.expectations_run import ExpectationOutcome, run_suite
from tiering_assets.quality.findings import FailedCheck
from tiering_assets.quality.ledger_suites import distinct_ids
from tiering_assets.quality.user_suites import UserSuite, validate_user_suites
from tiering_assets.quality.verdicts import failed_check
from tiering_assets.resources.errors import SettingsError

SUITE = {"name": "a suite", "expectations": [{"type": "a kind", "kwargs": {}}]}


def result(*, success=False, rows=None, exception_info=None, meta=None):
    """One result, as the library gives it."""
    return SimpleNamespace(
        success=success,
        result={} if rows is None else {"unexpected_index_list": rows},
        exception_info=exception_info,
        expectation_config=SimpleNamespace(type="a kind", kwargs={"column": "c"}, meta=meta),
    )


@pytest.fixture
def run(monkeypatch):
    """Run a suite of one expectation that has these results."""

    def run(*results):
        batch = SimpleNamespace(validate=lambda *_args, **_how: SimpleNamespace(results=results))
        definition = SimpleNamespace(get_batch=lambda **_how: batch)
        monkeypatch.setattr(expectations_run, "_kept", lambda *_args: None)  # no first look
        monkeypatch.setattr(expectations_run, "_build", lambda suite: suite)
        monkeypatch.setattr(expectations_run, "_batch_definition", lambda: definition)
        return run_suite(SUITE, pd.DataFrame())

    return run


# ----- what the library says


def test_what_holds_has_nothing_against_it(run):
    assert run(result(success=True)) == [
        ExpectationOutcome(kind="a kind", kwargs={"column": "c"}, meta={})
    ]


def test_rows_that_are_wrong_are_told_by_ledger(run):
    rows = [{"ledger_id": 7, "part": 1}, {"ledger_id": 7, "part": 3}, {"ledger_id": 8, "part": 0}]
    [outcome] = run(result(rows=rows, meta={"note": "x"}))
    assert outcome.unexpected == {7: (1, 3), 8: (0,)}
    assert outcome.broken is None
    assert outcome.meta == {"note": "x"}


RAISED = {"raised_exception": True, "exception_message": " it cannot be compared\nat line 7"}
PASSED = {"raised_exception": False, "exception_message": "nothing"}


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (None, "it failed without naming a row"),
        ({}, "it failed without naming a row"),
        (PASSED, "it failed without naming a row"),
        (RAISED, "it cannot be compared"),
        ({"a metric": PASSED, "another": RAISED, "text": "of no use"}, "it cannot be compared"),
    ],
)
def test_a_failure_without_rows_counts_against_all_with_its_reason(run, info, said):
    [outcome] = run(result(exception_info=info))
    assert (outcome.unexpected, outcome.broken) == ({}, said)


@pytest.mark.parametrize("results", [[], [result(success=True), result(success=True)]])
def test_more_or_fewer_results_than_expectations_are_none(run, results):
    with pytest.raises(SettingsError, match=f"1 expectations gave {len(results)} results"):
        run(*results)


def test_a_program_that_has_a_file_keeps_it(monkeypatch):
    """And one that has none, as those of Dagster's daemon, has one for the time of the import."""
    main = SimpleNamespace(__file__="its own")
    monkeypatch.setitem(sys.modules, "__main__", main)
    with expectations_run._program_with_a_file():
        assert main.__file__ == "its own"
    assert main.__file__ == "its own"
    del main.__file__
    with expectations_run._program_with_a_file():
        assert main.__file__
    assert not hasattr(main, "__file__")


# ----- one ledger's verdict


def outcome(**changes):
    return ExpectationOutcome(kind="a kind", kwargs={}, meta={}, **changes)


def test_a_check_that_was_not_evaluated_has_failed():
    assert failed_check("a check", [], 7, True) == FailedCheck(
        name="a check", broken="it was not evaluated"
    )


def test_a_check_that_broke_has_failed_for_every_ledger():
    outcomes = [outcome(), outcome(broken="no column"), outcome(unexpected={7: (1,)})]
    assert failed_check("a check", outcomes, 8, True) == FailedCheck(
        name="a check", broken="no column"
    )


def test_a_check_fails_for_the_ledgers_that_it_names_alone():
    outcomes = [outcome(unexpected={7: (3, 1)}), outcome(unexpected={7: (2,)})]
    assert failed_check("a check", outcomes, 7, True) == FailedCheck(
        name="a check", parts=(1, 2, 3)
    )
    assert failed_check("a check", outcomes, 8, True) is None


# ----- several ledgers, and users' suites


def test_a_ledger_that_is_given_twice_is_named_and_no_other():
    rows = [SOUND.row(7), SOUND.row(8), SOUND.row(7)]
    with pytest.raises(ValueError, match=r"\[7\]"):
        distinct_ids(rows)


def users(monkeypatch, rows, **kwargs):
    found = [ExpectationOutcome(kind="a kind", kwargs=kwargs, meta={}, broken="no column")]
    monkeypatch.setattr(user_suites, "run_suite", lambda *_args: found)
    monkeypatch.setattr(user_suites, "ledger_frame", lambda rows: rows)
    return validate_user_suites(rows, [UserSuite(name="user/a", digest="", suite=SUITE)])


@pytest.mark.parametrize(
    ("kwargs", "title"),
    [
        ({"column": "c", "min_value": 1}, "a kind:c"),
        ({"column_A": "a", "column_B": "b"}, "a kind:a,b"),
        ({"column_list": ["a", "b", "c"]}, "a kind:a,b,c"),
    ],
)
def test_an_expectation_is_named_by_its_columns(monkeypatch, kwargs, title):
    [held] = users(monkeypatch, [SOUND.row(7)], **kwargs)[7]
    assert held.failed[0].startswith(title)


def test_over_no_ledgers_no_suite_is_run(monkeypatch):
    suite = UserSuite(name="user/a", digest="", suite=SUITE)
    ran = []
    monkeypatch.setattr(user_suites, "run_suite", lambda *_args: ran.append(suite))
    monkeypatch.setattr(user_suites, "ledger_frame", lambda rows: rows)
    assert validate_user_suites([], [suite]) == {}
    assert ran == []
