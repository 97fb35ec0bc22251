"""Ledgers that need no thought: what is new gets its row in columns, what is as before gets none.

Owns: the rows are those of `facts/changes.py`, which judges ledgers one by one. It is asked for all
others: listed in another way than their rows have it, by two topics at once, or with a record that
is newer than the look. A test compares the two ways.

A topic that moves has one or two ledgers of these, and all that it ever had of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tiering_assets.catalogue.columns import LEDGER_CHANGES, without_turn
from tiering_assets.catalogue.facts.changes import topic_columns
from tiering_assets.catalogue.facts.known_ledger import KnownLedger, row_of_ledger
from tiering_assets.catalogue.facts.seen_ledger import ListedAs, SightedLedger, listed_as
from tiering_assets.catalogue.scan.topic_rows import ReadTopic, Sighting, sightings
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.sql import sql_time

_MS_MAX: Final = 10**13  # behind it a time may not be one
_KINDS: Final = tuple(ListedAs)
_UID: Final = "uid"
_SCHEMA: Final = without_turn(LEDGER_CHANGES)


class Before(NamedTuple):
    """What a ledger's newest row has of its listing. `closed_us` is since 1970.

    `counts`: no record is newer than that look or this one, and none tells of another attempt.
    """

    topic: str | None
    listed_as: str | None
    context_uid: str | None
    closed_us: int | None
    entries: int | None
    bytes: int | None
    counts: bool


def columns_before(seen_at: datetime) -> str:
    """SQL for the id of a ledger and what is `Before`, as a look of that time needs it."""
    newest = "greatest(published_at, withdrawn_at, intended_at, released_at)"
    return (
        "ledger_id, topic, listed_as, context_uid, cast(closed_at as bigint), entries, bytes, "
        f"others is null and coalesce({newest} <= least(seen_at, {sql_time(seen_at)}), true)"
    )


@dataclass(slots=True)
class NewLedgers:
    """Rows to be, column by column. `of_topic` is by topic what its name gives its rows."""

    page: int
    seen_at: datetime
    topics: list[ReadTopic] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {
            name: []
            for name in ("ledger_id", "entries", "bytes", "closed_at", "context_uid", "nth", "kind")
        }
    )

    def add(self, topic: ReadTopic, listed: LedgerInfo) -> None:
        if not self.topics or self.topics[-1] is not topic:
            self.topics.append(topic)
        kind, columns = listed_as(listed), self.columns
        is_open, context = kind is ListedAs.OPEN, listed.offload
        columns["ledger_id"].append(listed.ledger_id)
        columns["entries"].append(None if is_open else listed.entries)
        columns["bytes"].append(None if is_open else listed.size)
        columns["closed_at"].append(_us(listed))
        columns["context_uid"].append(None if context is None else str(context.uid))
        columns["nth"].append(len(self.topics) - 1)
        columns["kind"].append(_KINDS.index(kind))

    def table(self) -> pa.Table:
        """As `ledger_changes` has them, without their turn."""
        found, count = self.columns, len(self.columns["ledger_id"])
        nth = pa.array(found["nth"], pa.int32())
        kind = pa.array(found["kind"], pa.int32())
        alike = [_alike(one) for one in _KINDS]
        named = [
            {
                "topic": one.topic,
                **topic_columns(one.topic),
                "ml_version": -1 if one.stat is None else one.stat.version,
            }
            for one in self.topics
        ]
        own: dict[str, Any] = {
            "ledger_id": found["ledger_id"],
            "entries": found["entries"],
            "bytes": found["bytes"],
            "closed_at": found["closed_at"],
            "context_uid": found["context_uid"],
            "uid": [
                uid if alike[one]["uid"] else None
                for uid, one in zip(found["context_uid"], found["kind"], strict=True)
            ],
            "seen_at": [self.seen_at] * count,
            "page": [self.page] * count,
        }
        arrays = []
        for one in _SCHEMA:
            if one.name in own:
                array = pa.array(own[one.name], one.type)
            elif one.name in _OF_TOPIC:
                array = pa.array([row[one.name] for row in named], one.type).take(nth)
            else:
                array = pa.array([row[one.name] for row in alike], one.type).take(kind)
            arrays.append(array)
        return pa.Table.from_arrays(arrays, schema=_SCHEMA)


_OF_TOPIC: Final = frozenset({"topic", "tenant", "namespace", "partition", "ml_version"})


def _alike(kind: ListedAs) -> dict[str, Any]:
    """A row of which nothing is known but how it is listed: what follows from that stands in it."""
    seen = SightedLedger(
        listed_as=kind, context_uid=_UID, closed_at=None, ml_version=None, seen_at=datetime.min
    )
    return {**row_of_ledger(KnownLedger(ledger_id=0, seen=seen), page=0), **topic_columns(None)}


def told_apart(
    looked: Sequence[ReadTopic],
    before: Mapping[int, Before],
    *,
    page: int,
    seen_at: datetime,
    each: bool = False,
) -> tuple[pa.Table, list[Sighting]]:
    """Rows of ledgers that have none, and sightings of those that are to be judged one by one:
    `each`, if rows are known to be wrong.
    """
    ids = Counter(ledger.ledger_id for one in looked for ledger in one.ledgers)
    twice = {ledger_id for ledger_id, times in ids.items() if times > 1}
    own = dict[str, dict[int, str | None]]()
    for ledger_id, row in before.items():
        if row.topic is not None:
            own.setdefault(row.topic, {})[ledger_id] = row.listed_as
    new, others = NewLedgers(page, seen_at), list[Sighting]()
    for topic in looked:
        if topic.says_nothing:
            continue
        rest = set[int]()
        for listed in topic.ledgers:
            ledger_id = listed.ledger_id
            row = before.get(ledger_id)
            if each or ledger_id in twice or (listed.closed_at_ms or 0) > _MS_MAX:
                rest.add(ledger_id)
            elif row is None:
                new.add(topic, listed)
            elif not _is_as_before(topic.topic, listed, row):
                rest.add(ledger_id)
        known = own.get(topic.topic, {})
        found = sightings(topic, known, page=page, seen_at=seen_at)
        others += (one for one in found if one.ledger_id in rest or one.listed is None)
    return new.table(), others


def _is_as_before(topic: str, listed: LedgerInfo, row: Before) -> bool:
    """Whether its row would be the same again."""
    kind, context = listed_as(listed), listed.offload
    uid = None if context is None else str(context.uid)
    if not row.counts or (row.topic, row.listed_as, row.context_uid) != (topic, kind.value, uid):
        return False
    if kind is not ListedAs.OPEN and (row.entries, row.bytes) != (listed.entries, listed.size):
        return False
    return row.closed_us == _us(listed)


def _us(listed: LedgerInfo) -> int | None:
    return None if listed.closed_at_ms is None else listed.closed_at_ms * 1000
