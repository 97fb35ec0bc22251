"""Ledgers that need no thought: what is new gets its row in columns, what is as before gets none.

Owns: the rows are those of `facts/changes.py`, which judges ledgers one by one. It is asked for all
others: listed in another way than their rows have it, by two topics at once, or with a record that
is newer than the look. A test compares the two ways.

A topic that moves has one or two ledgers of these, and all that it ever had of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tiering_assets.catalogue.columns import LEDGER_CHANGES, without_turn
from tiering_assets.catalogue.facts.changes import topic_columns
from tiering_assets.catalogue.facts.known_ledger import KnownLedger, row_of_ledger
from tiering_assets.catalogue.facts.seen_ledger import ListedAs, SightedLedger, listed_as
from tiering_assets.catalogue.scan.topic_rows import ReadTopic, Sighting, sightings
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.sql import sql_time

_MS_MAX: Final = 4 * 10**12  # of 2096; far behind it `datetime` rounds, or has no such time
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: Final = tuple(ListedAs)
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
        "ledger_id, topic, listed_as, context_uid, closed_at, entries, bytes, "
        f"others is null and coalesce({newest} <= least(seen_at, {sql_time(seen_at)}), true)"
    )


def before_by_ledger(found: pa.Table) -> dict[int, Before]:
    """What those columns say. Whole numbers instead of times: a third of the time."""
    closed = found.schema.get_field_index("closed_at")
    plain = found.set_column(closed, "closed_us", found["closed_at"].cast(pa.int64()))
    columns: list[list[Any]] = [one.to_pylist() for one in plain.columns]
    return dict(zip(columns[0], map(Before, *columns[1:]), strict=True))


def new_rows(
    found: Sequence[tuple[ReadTopic, LedgerInfo]], *, page: int, seen_at: datetime
) -> pa.Table:
    """Of ledgers without a row: as `ledger_changes` has them, without their turn."""
    kinds = [listed_as(one) for _, one in found]
    uids = [None if one.offload is None else str(one.offload.uid) for _, one in found]
    own: dict[str, Any] = {
        "ledger_id": [one.ledger_id for _, one in found],
        "entries": [None if one.is_open else one.entries for _, one in found],
        "bytes": [None if one.is_open else one.size for _, one in found],
        "closed_at": [_us(one) for _, one in found],
        "context_uid": uids,
        "uid": [
            uid if _ALIKE[kind]["uid"] else None for uid, kind in zip(uids, kinds, strict=True)
        ],
        "seen_at": [seen_at] * len(found),
        "page": [page] * len(found),
    }
    topics = {topic.topic: topic for topic, _ in found}
    numbers = {name: n for n, name in enumerate(topics)}
    nth = pa.array([numbers[topic.topic] for topic, _ in found], pa.int32())
    kind = pa.array([_KINDS.index(one) for one in kinds], pa.int32())
    of_topics = [
        {"topic": name, **topic_columns(name), "ml_version": one.ml_version}
        for name, one in topics.items()
    ]

    def column(one: pa.Field[Any]) -> Any:
        if one.name in own:
            return pa.array(own[one.name], one.type)
        if one.name in _OF_TOPIC:
            return pa.array([row[one.name] for row in of_topics], one.type).take(nth)
        return pa.array([row[one.name] for row in _ALIKE.values()], one.type).take(kind)

    return pa.Table.from_arrays([column(one) for one in _SCHEMA], schema=_SCHEMA)


def _alike(kind: ListedAs) -> dict[str, Any]:
    """A row of which nothing is known but how it is listed: what follows from that stands in it."""
    seen = SightedLedger(
        listed_as=kind, context_uid="uid", closed_at=None, ml_version=None, seen_at=_NO_TIME
    )
    return {**row_of_ledger(KnownLedger(ledger_id=0, seen=seen), page=0), **topic_columns(None)}


_ALIKE: Final = {kind: _alike(kind) for kind in _KINDS}
_OF_TOPIC: Final = frozenset({"topic", "tenant", "namespace", "partition", "ml_version"})


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
    new, others = list[tuple[ReadTopic, LedgerInfo]](), list[Sighting]()
    for topic in looked:
        if topic.says_nothing:
            continue
        rest = set[int]()
        for listed in topic.ledgers:
            ledger_id = listed.ledger_id
            known = before.get(ledger_id)
            if each or ledger_id in twice or (listed.closed_at_ms or 0) > _MS_MAX:
                rest.add(ledger_id)
            elif known is None:
                new.append((topic, listed))
            elif not _is_as_before(topic.topic, listed, known):
                rest.add(ledger_id)
        theirs = own.get(topic.topic, {})
        if rest or len(theirs) > sum(one.ledger_id in theirs for one in topic.ledgers):
            found = sightings(topic, theirs, page=page, seen_at=seen_at)
            others += (one for one in found if one.ledger_id in rest or one.listed is None)
    return new_rows(new, page=page, seen_at=seen_at), others


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
