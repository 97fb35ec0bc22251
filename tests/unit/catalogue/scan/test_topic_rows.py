"""What a reading of a topic's node says, without any table: pure."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tiering_assets.catalogue.facts.known_ledger import (
    KnownAttempt,
    KnownLedger,
    bookie_copy,
    facts_of_row,
    offloaded_by,
    row_of_ledger,
    state_of,
)
from tiering_assets.catalogue.facts.seen_ledger import ListedAs, SightedLedger, seen_as
from tiering_assets.catalogue.scan.topic_rows import ReadTopic, Sighting, sightings
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.offload_context import OffloadContext

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID = UUID(int=7)
CONTEXTS = {
    ListedAs.BOOKIES: None,
    ListedAs.COPYING: OffloadContext(uid=UID, complete=False),
    ListedAs.OFFLOADED: OffloadContext(uid=UID, complete=True),
    ListedAs.MARKED: OffloadContext(uid=UID, complete=True, bookkeeper_deleted=True),
}


def listed(context=None, closed_at_ms=1000):
    return LedgerInfo(ledger_id=5, entries=3, size=99, closed_at_ms=closed_at_ms, offload=context)


def seen(listed_as, at=AT):
    if listed_as is ListedAs.OPEN:
        return seen_as(listed(closed_at_ms=None), ml_version=1, seen_at=at)
    return seen_as(listed(CONTEXTS[listed_as]), ml_version=1, seen_at=at)


@pytest.mark.parametrize("listed_as", [*CONTEXTS, ListedAs.OPEN])
def test_each_way_to_list_a_ledger_has_its_name(listed_as):
    assert seen(listed_as).listed_as is listed_as


@pytest.mark.parametrize(
    ("listed_as", "state", "by", "copy"),
    [
        (ListedAs.OPEN, "open", None, "live"),
        (ListedAs.BOOKIES, "sealed", None, "live"),
        (ListedAs.COPYING, "copying", None, "live"),
        (ListedAs.OFFLOADED, "published", "broker", "live"),
        (ListedAs.MARKED, "released", "broker", "deleted"),
    ],
)
def test_what_a_scan_alone_says(listed_as, state, by, copy):
    facts = KnownLedger(ledger_id=5, seen=seen(listed_as))
    assert (state_of(facts), offloaded_by(facts), bookie_copy(facts)) == (state, by, copy)


@pytest.mark.parametrize(
    ("listed_as", "state", "copy"),
    [(ListedAs.OFFLOADED, "published", "live"), (ListedAs.MARKED, "releasing", "marked")],
)
def test_a_mark_on_a_copy_of_ours_is_a_release_until_its_record(listed_as, state, copy):
    told = KnownAttempt(certified_at=AT, published_at=AT)
    facts = KnownLedger(ledger_id=5, attempts={str(UID): told}, seen=seen(listed_as))
    assert (state_of(facts), offloaded_by(facts), bookie_copy(facts)) == (state, "tierkeeper", copy)


@pytest.mark.parametrize(
    "told",
    [
        {"verified_at": AT, "verified_depth": "deep", "deep_at": AT},
        {"object_bytes": 10},
        {"damaged_at": AT},
    ],
)
@pytest.mark.parametrize(
    ("listed_as", "state", "copy"),
    [(ListedAs.OFFLOADED, "published", "live"), (ListedAs.MARKED, "released", "deleted")],
)
def test_a_copy_that_a_broker_wrote_stays_its_own_after_looks_at_it(told, listed_as, state, copy):
    attempts = {str(UID): KnownAttempt(**told)}
    facts = KnownLedger(ledger_id=5, attempts=attempts, seen=seen(listed_as))
    assert (state_of(facts), offloaded_by(facts), bookie_copy(facts)) == (state, "broker", copy)


@pytest.mark.parametrize("seen_as_what", [None, seen(ListedAs.BOOKIES)])
@pytest.mark.parametrize("attempts", [{}, {str(UID): KnownAttempt(certified_at=AT)}])
def test_nothing_is_known_of_a_bookie_copy_before_a_scan_or_an_attempt(seen_as_what, attempts):
    facts = KnownLedger(ledger_id=5, held="audit", attempts=attempts, seen=seen_as_what)
    assert bookie_copy(facts) == ("live" if attempts or seen_as_what else "unknown")


@pytest.mark.parametrize("attempts", [{}, {str(UID): KnownAttempt(certified_at=AT)}])
@pytest.mark.parametrize("listed_as", [*CONTEXTS, ListedAs.OPEN])
def test_a_row_says_all_that_it_was_made_of(listed_as, attempts):
    facts = KnownLedger(ledger_id=5, attempts=attempts, seen=seen(listed_as))
    row = row_of_ledger(facts, page=1)
    assert facts_of_row(row) == facts
    assert row["attempts"] == len(attempts)


@pytest.mark.parametrize("name", ["published_at", "withdrawn_at", "intended_at", "released_at"])
@pytest.mark.parametrize(("later", "counts"), [(0, True), (1, False), (-1, True)])
def test_a_scan_counts_until_a_later_change_is_recorded(name, later, counts):
    said: dict[str, Any] = {name: AT + timedelta(seconds=later)}
    told = KnownAttempt(**said)
    facts = KnownLedger(ledger_id=5, attempts={str(UID): told}, seen=seen(ListedAs.BOOKIES))
    assert (facts.seen_now is not None) is counts


def test_a_ledger_that_is_gone_stays_so_whatever_was_recorded():
    told = KnownAttempt(certified_at=AT, published_at=AT + timedelta(days=1))
    gone = SightedLedger(
        listed_as=ListedAs.GONE, context_uid=None, closed_at=AT, ml_version=None, seen_at=AT
    )
    assert state_of(KnownLedger(ledger_id=5, attempts={str(UID): told}, seen=gone)) == "expired"


def test_a_row_is_about_the_attempt_that_brokers_read():
    newest = {str(UUID(int=9)): KnownAttempt(certified_at=AT)}
    read = KnownLedger(ledger_id=5, attempts=newest, seen=seen(ListedAs.OFFLOADED))
    assert read.uid == str(UID)
    copying = KnownLedger(ledger_id=5, attempts=newest, seen=seen(ListedAs.COPYING))
    assert copying.uid == str(UUID(int=9))


def sighted(known, **looked):
    found = sightings(
        ReadTopic(topic="t/ns/persistent/orders", stat=None, **looked), known, page=3, seen_at=AT
    )
    return {one.ledger_id: one for one in found}


def test_ledgers_of_a_topic_that_has_no_node_are_gone_once():
    found = sighted({5: "bookies", 6: "gone", 7: None})
    assert [*found] == [5, 7]
    assert all(one.listed is None for one in found.values())


def test_a_node_that_cannot_be_read_says_nothing_of_ledgers():
    assert sighted({5: "bookies"}, why="no message") == {}


def test_what_was_known_of_a_ledger_that_is_gone_stays():
    before = KnownLedger(ledger_id=5, topic="t", entries=3, bytes=99, seen=seen(ListedAs.OFFLOADED))
    gone = Sighting(
        ledger_id=5, page=1, topic="t", listed=None, ml_version=-1, seen_at=AT + timedelta(days=1)
    )
    after = gone.apply(before)
    assert (after.entries, after.bytes, after.topic) == (3, 99, "t")
    assert after.seen is not None
    assert (after.seen.context_uid, after.seen.closed_at) == (str(UID), listed().closed_at)
