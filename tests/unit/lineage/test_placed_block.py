"""Which attempt of a ledger counts, and what its row tells of the bookie copy."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.records.examples import AT
from tiering_assets.catalogue.facts.known_ledger import KnownAttempt, KnownLedger, row_of_ledger
from tiering_assets.lineage.placed_block import COLUMNS, attempt_that_counts, placed_block

LATER = AT + timedelta(hours=1)
CERTIFIED = KnownAttempt(certified_at=AT, certificate_sha256="c")
PUBLISHED = replace(CERTIFIED, published_at=AT)


def row(**attempts):
    return row_of_ledger(KnownLedger(ledger_id=5, topic="t", attempts=attempts), page=3)


@pytest.mark.parametrize(
    ("attempts", "counts"),
    [
        ({}, None),
        ({"a": KnownAttempt(attempted_at=AT)}, None),
        ({"a": CERTIFIED}, "a"),
        ({"a": CERTIFIED, "b": KnownAttempt(attempted_at=LATER)}, "a"),
        ({"a": CERTIFIED, "b": replace(CERTIFIED, certified_at=LATER)}, "b"),
        ({"a": replace(CERTIFIED, certified_at=LATER), "b": CERTIFIED}, "a"),
        ({"a": CERTIFIED, "b": replace(CERTIFIED, certified_at=LATER, quarantined_at=LATER)}, "a"),
        ({"a": replace(CERTIFIED, quarantined_at=AT)}, None),
        ({"a": PUBLISHED, "b": replace(CERTIFIED, certified_at=LATER)}, "a"),
        ({"a": replace(PUBLISHED, quarantined_at=LATER), "b": CERTIFIED}, "a"),
        ({"a": replace(PUBLISHED, withdrawn_at=LATER), "b": replace(CERTIFIED, certified_at=LATER)}, "b"),
        ({"a": CERTIFIED, "b": CERTIFIED}, "b"),
    ],
)  # fmt: skip
def test_the_published_attempt_counts_else_the_newest_sound_one(attempts, counts):
    assert attempt_that_counts(row(**attempts)) == counts


def block(**changes):
    return {
        **dict.fromkeys(COLUMNS),
        "ledger_id": 5,
        "uid": "a",
        "offset": 10,
        "length": 5,
    } | changes


def test_a_block_says_whether_its_attempt_counts():
    ledger = row(a=CERTIFIED, b=PUBLISHED)
    assert placed_block(block(), ledger).counts is False
    assert placed_block(block(uid="b"), ledger).counts is True
    assert placed_block(block(), ledger).state == "published"
    lost = placed_block(block(), None)
    assert (lost.counts, lost.state, lost.bookie_copy) == (False, "unknown", "unknown")


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (PUBLISHED, "there"),
        (replace(PUBLISHED, intended_at=AT), "marked as deleted 2026-01-02 03:04:05Z"),
        (replace(PUBLISHED, intended_at=None, released_at=LATER), "deleted 2026-01-02 04:04:05Z"),
    ],
)
def test_the_bookie_copy_is_as_records_tell(attempt, told):
    assert placed_block(block(), row(a=attempt)).bookie_copy == told


def test_a_block_ends_where_the_next_one_may_begin():
    found = placed_block(block(first_entry_id=3, last_entry_id=7), None)
    assert (found.end, found.entries) == (15, 5)
