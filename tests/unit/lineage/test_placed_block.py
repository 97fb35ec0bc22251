"""Which attempt of a ledger counts, and what its row tells of the bookie copy."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tests.unit.records.examples import AT
from tiering_assets.catalogue.facts.known_ledger import KnownAttempt, KnownLedger, row_of_ledger
from tiering_assets.catalogue.facts.seen_ledger import ListedAs, SightedLedger
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


BY_BROKER = KnownAttempt(object_bytes=10, verified_at=AT, verified_depth="deep", deep_at=AT)
SEEN = UUID(int=10)


def seen_row(complete=SEEN, **attempts):
    """A scan saw that the topic's context names an attempt."""
    seen = SightedLedger(
        listed_as=ListedAs.OFFLOADED,
        context_uid=str(complete),
        closed_at=AT,
        ml_version=1,
        seen_at=LATER,
    )
    return row_of_ledger(KnownLedger(ledger_id=5, topic="t", attempts=attempts, seen=seen), page=3)


@pytest.mark.parametrize(
    ("attempts", "counts"),
    [
        ({}, None),
        ({str(SEEN): BY_BROKER}, str(SEEN)),
        ({str(SEEN): BY_BROKER, "b": replace(CERTIFIED, certified_at=LATER)}, str(SEEN)),
        ({str(SEEN): replace(BY_BROKER, object_bytes=None)}, None),
        ({str(SEEN): replace(BY_BROKER, object_bytes=None), "b": CERTIFIED}, "b"),
        ({str(SEEN): BY_BROKER, "b": PUBLISHED}, str(SEEN)),
        ({str(SEEN): BY_BROKER, "b": replace(PUBLISHED, published_at=LATER + timedelta(1))}, "b"),
        ({str(SEEN): replace(CERTIFIED, quarantined_at=AT, object_bytes=10)}, None),
    ],
)  # fmt: skip
def test_a_copy_of_a_broker_counts_where_the_topic_names_it_and_blocks_are_known(attempts, counts):
    assert attempt_that_counts(seen_row(**attempts)) == counts


def test_a_copy_of_a_broker_counts_only_where_a_scan_saw_it():
    """Before one, nothing says that the topic names it still."""
    assert attempt_that_counts(row(a=BY_BROKER)) is None


def test_what_a_broker_deleted_is_told_so():
    row = {**seen_row(**{str(SEEN): BY_BROKER}), "bookie_copy": "deleted"}
    found = placed_block(block(uid=str(SEEN), written_by="broker"), row)
    assert (found.bookie_copy, found.by_broker) == ("deleted by its broker", True)
    alive = placed_block(block(uid=str(SEEN), written_by="broker"), {**row, "bookie_copy": "live"})
    assert alive.bookie_copy == "there"
    assert placed_block(block(written_by="tierkeeper"), None).by_broker is False


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
