"""People read which ledger and part, what was expected and what was found."""

from dataclasses import replace

import pytest

from tests.support.golden_objects import golden_ledger
from tests.support.index_damage import DAMAGES
from tests.support.index_facts import golden_index_facts
from tiering_assets.quality.checks import CHECKS_BY_NAME
from tiering_assets.quality.findings import FailedCheck, findings
from tiering_assets.records.models import SuiteResult

BASE = golden_index_facts(golden_ledger("multi-block", 20))


def result_with(*failed):
    return SuiteResult(
        name="s/1", digest="d", success=not failed, evaluated=9, successful=8, failed=failed
    )


@pytest.mark.parametrize(
    ("failed", "sentence"),
    [
        (
            "block_offset (part 3)",
            "ledger 20 part 3: block offset: expected 10485760 (expected_offset), found 10485761",
        ),
        ("index_magic", "ledger 20: index magic: expected 'de47de47', found 'de47de48'"),
        (
            "topic_entries",
            "ledger 20: entries in BookKeeper for those the topic counts:"
            " expected at least 171 (topic_entries), found 170",
        ),
        (
            "first_entry_id_order (part 3)",
            "ledger 20 part 3: first entry id after the block before:"
            " expected more than 102 (previous_first_entry_id), found 102",
        ),
    ],
)
def test_a_failed_check_is_one_sentence(failed, sentence):
    damage = dict(DAMAGES)[FailedCheck.parse(failed).name]
    assert findings(damage(BASE), result_with(failed)) == (sentence,)


def test_each_named_part_gets_its_sentence():
    said = findings(replace(BASE, headers={}), result_with("header_magic (parts 1, 2)"))
    assert said == (
        "ledger 20 part 1: block header magic: expected 'fbdbabcb', found ''",
        "ledger 20 part 2: block header magic: expected 'fbdbabcb', found ''",
    )


@pytest.mark.parametrize("name", sorted(CHECKS_BY_NAME))
def test_an_unreadable_object_can_be_explained_for_every_check(name):
    (said,) = findings(replace(BASE, index=b"", headers={}), result_with(name))
    assert said.startswith("ledger 20: ")


def test_no_failure_gives_no_sentence():
    assert findings(BASE, result_with()) == ()


def test_a_users_check_is_named_with_its_suite():
    said = findings(BASE, result_with("not evaluated: no such file"))
    assert said == ("ledger 20: suite s/1: not evaluated: no such file",)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (FailedCheck(name="a"), "a"),
        (FailedCheck(name="a", parts=(7,)), "a (part 7)"),
        (FailedCheck(name="a", parts=(1, 2)), "a (parts 1, 2)"),
        (FailedCheck(name="a", broken="it (part 1) raised"), "a not evaluated: it (part 1) raised"),
    ],
)
def test_the_short_form_reads_back(check, text):
    assert str(check) == text
    assert FailedCheck.parse(text) == check


def test_the_short_form_of_many_parts_stays_short():
    text = str(FailedCheck(name="a", parts=tuple(range(1, 9))))
    assert text == "a (parts 1, 2, 3, 4, 5 of 8)"
    assert FailedCheck.parse(text).parts == (1, 2, 3, 4, 5)
