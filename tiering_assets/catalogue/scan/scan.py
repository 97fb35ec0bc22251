"""What topics' nodes say now, as rows: the stat of each is asked for, those that moved are read.

Owns: ledgers that no run has taken up yet are known to topics alone. A scan takes no page: it may
be killed anywhere, made by several at once and made again, and a topic's row is written behind the
rows of its ledgers, so that one that was not written whole is looked at again. When the last whole
pass began is in the commits of `topic_changes`.

A stat for each topic (no data is sent), one read and its ledgers' rows for each that moved.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.facts.changes import changed_rows
from tiering_assets.catalogue.scan.topic_rows import ReadTopic, sightings, topic_row
from tiering_assets.catalogue.scans_told import ScansTold
from tiering_assets.catalogue.view import Catalogue, Tables, answer, carried, rows_of
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.user_topics import Topic, user_topic_names
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.store import NodeStat
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.metastore.topics import decode_topic
from tiering_assets.resources.sql import sql_text
from tiering_assets.resources.tables import Table

_STATS: Final = 2000  # topics, between two looks at the clock
_LEDGERS: Final = 20_000  # of one commit
_TRIES: Final = 20
_TELL_EVERY: Final = timedelta(minutes=5)
Moved = tuple[int, int]
"""czxid and mzxid of a node: the same as long as nobody wrote it."""
Unmoved = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """`resume` is the last topic that was asked for when time was up, None after all of them.

    `began` is when this pass over all topics did. The stats of `asked` topics were asked for,
    `moved` ones were read or had gone, and rows of `ledgers` were written.
    """

    topics: int
    asked: int
    moved: int
    ledgers: int
    began: datetime
    resume: str | None


def scan(
    stack: Stack,
    catalogue: Catalogue,
    *,
    after: str | None = None,
    began: datetime | None = None,
    seconds: float | None = None,
    may_have_moved: Unmoved = lambda names: names,
    seen: Tables | None = None,
) -> Scanned:
    """Look at topics in name order, from the one behind `after`, for about so many seconds.

    `began` is that of the pass that it goes on with.
    `may_have_moved` leaves out those that are known not to have changed since the last scan. It is
    asked for the next ones when the rows of those before are written. `seen` are tables that were
    opened just now.
    """
    began = began or stack.now()
    deadline = None if seconds is None else stack.monotonic() + seconds
    tables = seen or catalogue.opened()
    known = _known(tables)
    names = sorted({*user_topic_names(stack), *known})
    start = 0 if after is None else bisect_right(names, after)
    asked = moved = ledgers = 0
    resume: str | None = None
    for first in range(start, len(names), _STATS):
        lot = names[first : first + _STATS]
        wanted = sorted({*may_have_moved(lot), *(name for name in lot if name not in known)})
        asked += len(wanted)
        for some in _lots(_look(stack, wanted, known)):
            moved += len(some)
            ledgers += _write(stack, catalogue, some)
        if deadline is not None and stack.monotonic() >= deadline and lot[-1] != names[-1]:
            resume = lot[-1]
            break
    if resume is None:
        _tell_of_pass(catalogue, tables, began)
    return Scanned(
        topics=len(names), asked=asked, moved=moved, ledgers=ledgers, began=began, resume=resume
    )


def scan_again(stack: Stack, catalogue: Catalogue, topics: Sequence[Topic], *, wrong: int) -> int:
    """Rows of these topics as they were just read, and how many ledgers rows were wrong about."""
    looked = [ReadTopic(topic=one.ml_name, stat=one.node.stat, info=one.info) for one in topics]
    return _write(stack, catalogue, looked, wrong=wrong)


def _tell_of_pass(catalogue: Catalogue, before: Tables, began: datetime) -> None:
    """Not after each one: commits are counted, and a reader asks for the hour, not the second.

    `before` are tables of before the pass: most passes need not open them again.
    """
    if not _is_old(ScansTold.by(before["topic_changes"]), began):
        return
    table = catalogue.opened(make=True)["topic_changes"]
    told = ScansTold.by(table)
    if _is_old(told, began):
        _append(table, [], replace(told, scanned_at=began).told())  # or another has just told


def _is_old(told: ScansTold, began: datetime) -> bool:
    return told.scanned_at is None or began - told.scanned_at >= _TELL_EVERY


def _known(tables: Tables) -> dict[str, Moved]:
    """Topics that had a node when they were last looked at."""
    names = "topic", "czxid", "mzxid"
    rows = answer(tables, f"select {', '.join(names)} from topics where czxid is not null")  # noqa: S608
    columns = (rows[name].to_pylist() for name in names)
    return {topic: (czxid, mzxid) for topic, czxid, mzxid in zip(*columns, strict=True)}


def _look(stack: Stack, names: Sequence[str], known: Mapping[str, Moved]) -> Iterator[ReadTopic]:
    """The topics whose nodes are others than before."""
    stats = stack.metadata.stat_many(map(managed_ledger_path, names))
    moved: list[str] = []
    for name, stat in zip(names, stats, strict=True):
        if _moved(stat) != known.get(name):
            moved.append(name)
    for name, node in stack.topics.read_many(moved):
        if node is None:
            if name in known:
                yield ReadTopic(topic=name, stat=None)
            continue
        try:
            yield ReadTopic(topic=name, stat=node.stat, info=decode_topic(node))
        except FormatError as error:
            yield ReadTopic(topic=name, stat=node.stat, why=str(error))


def _moved(stat: NodeStat | None) -> Moved | None:
    return None if stat is None else (stat.czxid, stat.mzxid)


def _lots(looked: Iterator[ReadTopic]) -> Iterator[list[ReadTopic]]:
    """So many ledgers at once; a topic is never cut."""
    lot: list[ReadTopic] = []
    ledgers = 0
    for one in looked:
        lot.append(one)
        ledgers += len(one.ledgers)
        if ledgers >= _LEDGERS:
            yield lot
            lot, ledgers = [], 0
    if lot:
        yield lot


def _write(
    stack: Stack, catalogue: Catalogue, looked: Sequence[ReadTopic], *, wrong: int = 0
) -> int:
    """Rows of these topics' ledgers, then of the topics. How many ledgers have new ones.

    Of so many ledgers rows were `wrong`.
    """
    seen_at, written = stack.now(), 0
    for _ in range(_TRIES):
        tables = catalogue.opened(make=True)
        rows = _ledger_rows(tables, looked, seen_at)
        if rows and not _append(tables["ledger_changes"], rows):
            continue  # a poster came first
        written += len(rows)
        table = tables["topic_changes"]
        topics = [topic_row(one, seen_at=seen_at) for one in looked]
        told = ScansTold.by(table)
        if _append(table, topics, replace(told, wrong=told.wrong + wrong).told()):
            return written
    raise catalogue.busy(_TRIES)


def _ledger_rows(
    tables: Tables, looked: Sequence[ReadTopic], seen_at: datetime
) -> list[dict[str, Any]]:
    page = tables["ledger_changes"].mark
    known = _of_topics(tables, [one.topic for one in looked])
    seen = [
        one
        for topic in looked
        for one in sightings(topic, known.get(topic.topic, {}), page=page, seen_at=seen_at)
    ]
    return [*changed_rows(seen, rows_of(tables, [one.ledger_id for one in seen]))]


def _of_topics(tables: Tables, topics: Sequence[str]) -> dict[str, dict[int, str | None]]:
    """How these topics listed their ledgers before, as rows have it."""
    named = ", ".join(map(sql_text, topics))
    rows = answer(
        tables,
        f"select topic, ledger_id, listed_as from ledgers where topic in ({named})",  # noqa: S608
    ).to_pylist()
    found: dict[str, dict[int, str | None]] = {}
    for row in rows:
        found.setdefault(row["topic"], {})[row["ledger_id"]] = row["listed_as"]
    return found


def _append(
    table: Table, rows: Sequence[Mapping[str, Any]], told: Mapping[str, str] | None = None
) -> bool:
    turn = table.turn + 1
    made = [{**row, "turn": turn} for row in rows]
    if told is None:
        told = carried(table)
    return table.append(pa.Table.from_pylist(made, schema=TABLES[table.name]), told=told)
