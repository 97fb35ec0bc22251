"""Rows that are made in columns are those that are made one by one, over topics of any kind."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from tiering_assets.catalogue.columns import TABLES, without_turn
from tiering_assets.catalogue.facts.changes import changed_rows, topic_columns
from tiering_assets.catalogue.facts.known_ledger import KnownAttempt, KnownLedger, row_of_ledger
from tiering_assets.catalogue.facts.seen_ledger import ListedAs, SightedLedger
from tiering_assets.catalogue.scan.plain_rows import told_apart
from tiering_assets.catalogue.scan.scan import before_look, ledger_rows
from tiering_assets.catalogue.scan.topic_rows import ReadTopic, sightings
from tiering_assets.catalogue.view import rows_of
from tiering_assets.resources.metastore.envelope import Compression
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, ManagedLedger
from tiering_assets.resources.metastore.offload_context import OffloadContext
from tiering_assets.resources.metastore.store import NodeStat
from tiering_assets.resources.metastore.topic_names import SHADOW_SOURCE_PROPERTY
from tiering_assets.resources.tables import rows_in

AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
TIMES = [AT + timedelta(minutes=n) for n in range(6)]
NOW = TIMES[3]
UIDS = [UUID(int=n) for n in range(1, 4)]
WORLDS = 400
IDS = 6  # of one world
SCHEMA = TABLES["ledger_changes"]


def one_by_one(tables, looked, seen_at):
    """As every ledger was judged before: what the columns are compared with."""
    topics = {one.topic for one in looked}
    listed = {ledger.ledger_id for one in looked for ledger in one.ledgers}
    everything = rows_of(tables, range(WORLDS * IDS))
    known: dict[str, dict[int, str | None]] = {name: {} for name in topics}
    for row in everything:
        if row["topic"] in topics:
            known[row["topic"]][row["ledger_id"]] = row["listed_as"]
    page = tables["ledger_changes"].mark
    seen = [
        one
        for topic in looked
        for one in sightings(topic, known[topic.topic], page=page, seen_at=seen_at)
    ]
    ids = listed.union(one.ledger_id for one in seen)
    rows = changed_rows(seen, [row for row in everything if row["ledger_id"] in ids])
    return rows_in(pa.Table.from_pylist([*rows], schema=without_turn(SCHEMA)))


def topics_of(world):
    return [f"t/ns/persistent/w{world}-partition-0", f"t/ns/persistent/w{world}"]


def some(chance, values, none=0.3):
    return None if chance.random() < none else chance.choice(values)


def listing(chance, ledger_id):
    """Few values of each kind, so that rows often say the same."""
    context = None
    if chance.random() < 0.6:
        complete = chance.random() < 0.7
        context = OffloadContext(
            uid=chance.choice(UIDS[:2]),
            complete=complete,
            bookkeeper_deleted=complete and chance.random() < 0.5,
        )
    closed = some(chance, [1_700_000_000_123, 1_700_000_000_123, 10**14], none=0.2)
    if closed == 10**14:
        closed = 253_000_000_000_000 if chance.random() < 0.1 else 1_700_000_000_124
    return LedgerInfo(
        ledger_id=ledger_id,
        entries=some(chance, [3, 3, 4], none=0.1),
        size=some(chance, [99, 99, 100], none=0.1),
        closed_at_ms=closed,
        offload=context,
    )


def looked_at(chance, name, ids):
    stat = NodeStat(version=chance.choice((1, 2)), czxid=1, mzxid=2, ctime_ms=3, mtime_ms=4)
    kind = chance.random()
    if kind < 0.05:
        return ReadTopic(topic=name, stat=None)
    if kind < 0.1:
        return ReadTopic(topic=name, stat=stat, why="no message")
    info = ManagedLedger(
        ledgers=tuple(listing(chance, one) for one in sorted(ids)),
        terminated_at=None,
        properties={SHADOW_SOURCE_PROPERTY: "other"} if kind < 0.15 else {},
        compression=Compression.NONE,
        _message=None,  # type: ignore[arg-type]  # nobody edits it
    )
    return ReadTopic(topic=name, stat=stat, info=info)


def attempt(chance):
    names = "certified_at", "published_at", "withdrawn_at", "intended_at", "released_at"
    return KnownAttempt(**{name: some(chance, TIMES, none=0.6) for name in names})


def seen_before(chance, listed):
    """Mostly as it is listed now."""
    if listed is None or chance.random() < 0.2:
        kind = chance.choice([*ListedAs])
        return SightedLedger(
            listed_as=kind, context_uid=None, closed_at=None, ml_version=1, seen_at=AT
        )
    context = listed.offload
    kind = ListedAs.BOOKIES
    if listed.is_open:
        kind = ListedAs.OPEN
    elif context is not None:
        kind = ListedAs.COPYING
        if context.complete:
            kind = ListedAs.MARKED if context.bookkeeper_deleted else ListedAs.OFFLOADED
    return SightedLedger(
        listed_as=kind,
        context_uid=None if context is None else str(context.uid),
        closed_at=listed.closed_at,
        ml_version=1,
        seen_at=chance.choice(TIMES[:5]),
    )


def known_before(chance, ledger_id, topics, listed):
    some_uids = chance.sample(UIDS, chance.choice((0, 0, 1, 1, 2)))
    facts = {str(uid): attempt(chance) for uid in some_uids}
    own = chance.random() < 0.8 and listed is not None
    return KnownLedger(
        ledger_id=ledger_id,
        topic=some(chance, topics, none=0.1),
        entries=listed.entries if own else 3,
        bytes=listed.size if own else 99,
        held=some(chance, ["audit"], none=0.8),
        attempts={uid: one for uid, one in facts.items() if one != KnownAttempt()},
        seen=None if chance.random() < 0.1 else seen_before(chance, listed),
    )


def row(facts, turn):
    return {**row_of_ledger(facts, page=1), **topic_columns(facts.topic), "turn": turn}


def plant(chance, tables):
    """Topics that were just read, and rows of before: settled ones, and two turns behind them."""
    looked: list[ReadTopic] = []
    settled: list[dict[str, Any]] = []
    tail: list[list[dict[str, Any]]] = [[], []]
    for world in range(WORLDS):
        ids, topics = range(world * IDS, (world + 1) * IDS), topics_of(world)
        cut = chance.randrange(IDS + 1)
        parts = [chance.sample(ids[:cut], k=chance.randrange(cut + 1)), [*ids[cut:]]]
        if chance.random() < 0.2:
            parts[0] = sorted({*parts[0], *chance.sample(ids, 1)})  # perhaps listed by both
        found = [looked_at(chance, *one) for one in zip(topics, parts, strict=True)]
        looked += found
        now = {ledger.ledger_id: ledger for one in found for ledger in one.ledgers}
        for ledger_id in ids:
            for rows, share in ((settled, 0.5), (tail[0], 0.3), (tail[1], 0.3)):
                if chance.random() < share:
                    facts = known_before(chance, ledger_id, topics, now.get(ledger_id))
                    rows.append(row(facts, 0 if rows is settled else 1 + tail.index(rows)))
    tables.settled["ledgers"].append(pa.Table.from_pylist(settled, schema=SCHEMA), told={})
    for rows in tail:
        table = tables["ledger_changes"].again()
        table.append(pa.Table.from_pylist(rows, schema=SCHEMA), told={"page": "0"})
    return looked


@pytest.mark.parametrize("seed", range(4))
def test_columns_say_what_one_by_one_says(catalogue, seed):
    chance = random.Random(seed)
    looked = plant(chance, catalogue.opened(make=True))
    tables = catalogue.opened()
    expected = one_by_one(tables, looked, NOW)
    assert len(expected) > WORLDS
    assert rows_in(ledger_rows(tables, looked, NOW)) == expected
    assert rows_in(ledger_rows(tables, looked, NOW, each=True)) == expected
    few = looked[:6]
    assert rows_in(ledger_rows(tables, few, NOW)) == one_by_one(tables, few, NOW)


def test_most_ledgers_are_not_judged_one_by_one(catalogue):
    """Else all of it would be right, and slow."""
    looked = plant(random.Random(0), catalogue.opened(make=True))
    before = before_look(catalogue.opened(), looked, NOW)
    new, judged = told_apart(looked, before, page=1, seen_at=NOW)
    listed = sum(len(one.ledgers) for one in looked if not one.says_nothing)
    as_before = listed - new.num_rows - sum(one.listed is not None for one in judged)
    assert min(new.num_rows, as_before) > WORLDS / 4
    states = Counter(new["state"].to_pylist())
    assert {*states} == {"open", "sealed", "copying", "published", "released"}


@pytest.mark.parametrize(("closed_at_ms", "alone"), [(4 * 10**12, 0), (4 * 10**12 + 1, 1)])
def test_times_that_are_none_are_left_to_who_judges_one_by_one(closed_at_ms, alone):
    listed = LedgerInfo(ledger_id=5, entries=3, size=99, closed_at_ms=closed_at_ms)
    info = ManagedLedger(
        ledgers=(listed,),
        terminated_at=None,
        properties={},
        compression=Compression.NONE,
        _message=None,  # type: ignore[arg-type]
    )
    looked = [ReadTopic(topic="t/ns/persistent/orders", stat=None, info=info)]
    new, judged = told_apart(looked, {}, page=1, seen_at=NOW)
    assert (new.num_rows, len(judged)) == (1 - alone, alone)
