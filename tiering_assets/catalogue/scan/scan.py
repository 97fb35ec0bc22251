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
from tiering_assets.catalogue.scan.plain_rows import (
    Before,
    before_by_ledger,
    columns_before,
    told_apart,
)
from tiering_assets.catalogue.scan.topic_rows import OF_TOPIC, ReadTopic, topic_row
from tiering_assets.catalogue.scans_told import ScansTold
from tiering_assets.catalogue.view import (
    OF_LEDGERS,
    Catalogue,
    Tables,
    answer,
    carried,
    newest,
    rows_of,
)
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.user_topics import Topic, user_topic_names
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.garbage import no_collection
from tiering_assets.resources.metastore.store import NodeStat
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.metastore.topics import decode_topic
from tiering_assets.resources.tables import Table

_STATS: Final = 5000  # topics, between two looks at the clock
_LEDGERS: Final = 50_000  # of one commit
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
        with no_collection():  # what is read stays until it is written: a fifth of the time
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

    `before` are tables of before the pass: most passes need not open one again.
    """
    if not _is_old(ScansTold.by(before["topic_changes"]), began):
        return
    table = catalogue.to_write("topic_changes")
    told = ScansTold.by(table)
    if _is_old(told, began):  # else another has just told
        _append(table, OF_TOPIC.empty_table(), replace(told, scanned_at=began).told())


def _is_old(told: ScansTold, began: datetime) -> bool:
    return told.scanned_at is None or began - told.scanned_at >= _TELL_EVERY


def _known(tables: Tables) -> dict[str, Moved]:
    """Topics that had a node when they were last looked at."""
    names = "topic", "czxid", "mzxid"
    rows = answer(tables, f"select {', '.join(names)} from topics where czxid is not null")  # noqa: S608
    columns = (rows[name].to_pylist() for name in names)
    return {topic: (czxid, mzxid) for topic, czxid, mzxid in zip(*columns, strict=True)}


def _look(stack: Stack, names: Sequence[str], known: Mapping[str, Moved]) -> Iterator[ReadTopic]:
    """The topics whose nodes are others than before. Of one without a row nothing need be asked."""
    before = [name for name in names if name in known]
    stats = stack.metadata.stat_many(map(managed_ledger_path, before))
    same = {name for name, stat in zip(before, stats, strict=True) if _moved(stat) == known[name]}
    for name, node in stack.topics.read_many([name for name in names if name not in same]):
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
    stack: Stack, catalogue: Catalogue, looked: Sequence[ReadTopic], *, wrong: int | None = None
) -> int:
    """Rows of these topics' ledgers, then of the topics. How many ledgers have new ones.

    Of so many ledgers rows were `wrong`: then each is judged anew.
    """
    seen_at, written = stack.now(), 0
    for _ in range(_TRIES):
        tables = catalogue.opened(OF_LEDGERS, make=True)
        rows = ledger_rows(tables, looked, seen_at, each=wrong is not None)
        if rows.num_rows and not _append(tables["ledger_changes"], rows):
            continue  # a poster came first
        written += rows.num_rows
        table = tables["topic_changes"]
        topics = pa.Table.from_pylist(
            [topic_row(one, seen_at=seen_at) for one in looked], schema=OF_TOPIC
        )
        told = ScansTold.by(table)
        if _append(table, topics, replace(told, wrong=told.wrong + (wrong or 0)).told()):
            return written
    raise catalogue.busy(_TRIES)


def ledger_rows(
    tables: Tables, looked: Sequence[ReadTopic], seen_at: datetime, *, each: bool = False
) -> pa.Table:
    """Rows of what is new or otherwise than rows have it; `each` ledger is judged if rows lie."""
    page = tables["ledger_changes"].mark
    before = before_look(tables, looked, seen_at)
    new, others = told_apart(looked, before, page=page, seen_at=seen_at, each=each)
    changed = [*changed_rows(others, rows_of(tables, [one.ledger_id for one in others]))]
    rows = pa.concat_tables([new, pa.Table.from_pylist(changed, schema=new.schema)])
    return rows.sort_by("ledger_id")


def before_look(
    tables: Tables, looked: Sequence[ReadTopic], seen_at: datetime
) -> dict[int, Before]:
    """Of the ledgers that these topics list, and of all that rows have as theirs."""
    asked = answer(tables, tables.ever("ledgers", "topic", [one.topic for one in looked]))
    theirs: list[Any] = asked["ledger_id"].to_pylist()
    listed = (ledger.ledger_id for one in looked for ledger in one.ledgers)
    return before_by_ledger(newest(tables, {*theirs, *listed}, columns_before(seen_at)))


def _append(table: Table, rows: pa.Table, told: Mapping[str, str] | None = None) -> bool:
    """Rows without their turn."""
    schema = TABLES[table.name]
    turns = pa.repeat(pa.scalar(table.turn + 1, schema.field("turn").type), rows.num_rows)
    if told is None:
        told = carried(table)
    return table.append(rows.append_column(schema.field("turn"), turns), told=told)
