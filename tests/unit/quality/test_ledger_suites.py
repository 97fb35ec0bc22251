"""Each check before a release is needed, reports what it should, and nothing else does."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints

import pytest

from tests.support.index_damage import DAMAGES as INDEX_DAMAGES
from tests.support.ledger_damage import DAMAGES, in_record, in_store
from tests.support.ledger_facts import HOUR, SOUND, STARTED
from tests.support.sim_judge import judge_ledgers
from tiering_assets.quality.checks import CHECKS, CHECKS_BY_NAME, Above, Equal, OneOf
from tiering_assets.quality.findings import FailedCheck
from tiering_assets.quality.ledger_checks import (
    LEDGER_CHECKS,
    LEDGER_CHECKS_BY_NAME,
    LEDGER_SUITES,
    ledger_suite_digest,
)
from tiering_assets.quality.ledger_frame import LedgerRow
from tiering_assets.quality.ledger_suites import ledger_findings, validate_ledgers

PAGE = Path(__file__).parents[3] / "docs" / "quality.md"
CASES = [(1000 + n, name, damage) for n, (name, damage) in enumerate(DAMAGES)]


def failed_names(results):
    return {FailedCheck.parse(text).name for result in results for text in result.failed}


@pytest.fixture(scope="module")
def rows():
    """All damages in one batch: ledger 1000 + n has the n-th."""
    return {n: damage(SOUND).row(n) for n, _name, damage in CASES} | {1: SOUND.row(1)}


@pytest.fixture(scope="module")
def judged(rows):
    return validate_ledgers(list(rows.values()))


def test_a_sound_ledger_passes_every_check(judged):
    results = judged[1]
    assert [result.name for result in results] == list(LEDGER_SUITES)
    assert [(r.success, r.failed) for r in results] == [(True, ())] * len(LEDGER_SUITES)
    assert sum(result.evaluated for result in results) == len(LEDGER_CHECKS)


def test_a_topic_without_counts_passes():
    ledgers = tuple(replace(info, entries=None, size=None) for info in SOUND.topic.ledgers)
    case = replace(SOUND, topic=replace(SOUND.topic, ledgers=ledgers))
    assert all(result.success for result in validate_ledgers([case.row()])[42])


def test_every_check_of_the_three_suites_has_a_damage_of_its_own():
    assert {name for name, _damage in DAMAGES} == set(LEDGER_CHECKS_BY_NAME)
    assert {name for name, _damage in INDEX_DAMAGES} == set(CHECKS_BY_NAME)
    assert len(LEDGER_CHECKS) == len(LEDGER_CHECKS_BY_NAME)
    assert not LEDGER_CHECKS_BY_NAME.keys() & CHECKS_BY_NAME.keys()


@pytest.mark.parametrize(("ledger_id", "name"), [(n, name) for n, name, _damage in CASES])
def test_a_damage_is_reported_by_its_check_alone(rows, judged, ledger_id, name):
    assert failed_names(judged[ledger_id]) == {name}
    assert [result.success for result in judged[ledger_id]].count(False) == 1
    [finding] = ledger_findings(rows[ledger_id], judged[ledger_id])
    assert finding.startswith("suite ")
    assert f": {name}: " in finding
    assert "expected" in finding
    assert "found" in finding


def test_the_simulators_plain_judge_says_the_same(rows, judged):
    bare = replace(
        SOUND.copy, node=None, attempt=None, outcome=None, publication=None, data=None, index=None
    )
    empty = replace(SOUND, topic=replace(SOUND.topic, ledgers=()), copy=bare).row(2)
    assert judge_ledgers(list(rows.values())) == judged
    assert judge_ledgers([empty]) == validate_ledgers([empty])


def test_what_is_not_there_fails_all_that_is_said_of_it():
    bare = replace(SOUND.copy, attempt=None, outcome=None, publication=None, data=None, index=None)
    row = replace(SOUND, copy=replace(bare, node=None)).row()
    failed = failed_names(judge_ledgers([row])[42])
    about = {
        check.name
        for check in LEDGER_CHECKS
        if getattr(row, check.column) is None
        or (isinstance(check.rule, Equal | Above) and getattr(row, check.rule.other) is None)
    }
    assert len(about) > 20
    assert about <= failed


@pytest.mark.parametrize("clock", ["attempt_stored_at", "attempt"])
def test_a_clock_that_was_set_once_is_no_reason_to_hold(clock):
    late = STARTED + 5 * HOUR
    damage = (
        in_store("attempt", stored_at=late)
        if clock == "attempt_stored_at"
        else in_record("attempt", started_at=late)
    )
    row = damage(SOUND).row()
    assert failed_names(judge_ledgers([row])[42]) == set()


def test_a_changed_suite_needs_a_new_name():
    assert {name: ledger_suite_digest(name) for name in LEDGER_SUITES} == {
        "topic_coverage/2": "01bb03cbaa5ebeecf050260a21f9904d7248f4d3cdf74825a790fda09311a134",
        "certificates/2": "8a1af78cb3edf1dfc6cf86f367f7592bdf363f6ba3821f60d8dae1afbcf2cff9",
    }


def test_the_page_lists_every_column_and_every_expectation():
    named = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    checks = [check.name for check in (*CHECKS, *LEDGER_CHECKS)]
    assert named == [*LedgerRow._fields, *checks]


def test_columns_that_are_said_to_be_never_missing_never_are():
    """The library passes over a None in a column, so that such a check would pass it, too."""
    kinds = get_type_hints(LedgerRow)
    for check in LEDGER_CHECKS:
        if isinstance(check.rule, OneOf) and check.rule.never_missing:
            assert kinds[check.column] in (int, str, bool)


def test_nothing_to_judge_gives_no_result():
    assert validate_ledgers([]) == {}


def test_a_ledger_given_twice_is_refused():
    with pytest.raises(ValueError, match=r"\[42\]"):
        validate_ledgers([SOUND.row(), SOUND.row()])


def test_importing_the_room_imports_neither_great_expectations_nor_pandas():
    code = (
        "import sys\n"
        "from tiering_assets.quality import ledger_suites, user_suites\n"
        "print([m for m in ('great_expectations', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
