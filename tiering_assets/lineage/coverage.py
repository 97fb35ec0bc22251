"""Coverage of topics: the catalogue's blocks against the topics' lists, read now.

First all lists, in columns. Then the tables in one pass, some ledgers at a time in the order of
ids, as the files have them: what is surely whole needs no more. The rules judge the topics of all
others, some at a time, with what the pass saw of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from tiering_assets.catalogue.view import AsOf, Tables, answer, rows_of
from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.block_chain import ODD_SQL, BlockSpan, Gap
from tiering_assets.lineage.coverage_rules import (
    Attempt,
    CoverageFacts,
    CoverageFinding,
    TopicCoverage,
    judge_topic,
)
from tiering_assets.lineage.doubts import Doubts, lots_by_id
from tiering_assets.lineage.find import blocks_of_ledgers
from tiering_assets.lineage.listed import ListedLedgers
from tiering_assets.lineage.proof import prove_blocks
from tiering_assets.lineage.proof_rules import TruthCompared
from tiering_assets.records import keys
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.lots import lots_of
from tiering_assets.resources.metastore.ledger_info import PlainLedger, plain_ledgers
from tiering_assets.resources.metastore.store import Node
from tiering_assets.resources.metastore.topics import decode_topic
from tiering_assets.resources.sql import sql_text
from tiering_assets.resources.tables import rows_in

LEDGERS_AT_ONCE: Final = 100_000
TOPICS_AT_ONCE: Final = 2_000
_NAMED_MAX: Final = 1_000
"""Topics that a question names; more are found among all."""
_ODD_AT_ONCE: Final = 1_000
_GONE: Final = frozenset({"expired"})


@dataclass(slots=True)
class ReadLists:
    """When the lists that were read had been changed last, by managed ledger."""

    mzxids: dict[str, int] = field(default_factory=dict)


def coverage_of(
    stack: Stack,
    tables: Tables,
    as_of: AsOf,
    nodes: Iterable[tuple[str, Node | None]],
    read: ReadLists,
) -> Iterator[TopicCoverage]:
    """Each topic in its order, and before them those whose list cannot be read.

    A node that is not there is a topic that went meanwhile.
    """
    listed = ListedLedgers()
    for ml_name, node in nodes:
        if node is None:
            continue
        read.mzxids[ml_name] = node.stat.mzxid
        try:
            listed.add(ml_name, _listing(node))
        except FormatError as error:
            finding = CoverageFinding(ledger_id=None, kind=Gap.UNREADABLE, what=str(error))
            yield TopicCoverage(topic=ml_name, first=None, last=None, findings=(finding,))
    doubts = _doubts(tables, listed)
    for numbers in lots_of(range(len(listed.topics)), TOPICS_AT_ONCE):
        yield from _judged(stack, tables, as_of, listed, numbers, doubts)


def prove_coverage(
    stack: Stack, tables: Tables, read: ReadLists, found: Iterable[TopicCoverage]
) -> list[TruthCompared]:
    """The lists once more, and certificate and object of each block of ledgers with findings."""
    changed = [
        name
        for name, node in stack.topics.read_many(read.mzxids)
        if node is None or node.stat.mzxid != read.mzxids[name]
    ]
    told = [
        TruthCompared(agrees=False, what=f"{one}: its list has changed, repeat") for one in changed
    ]
    same = len(read.mzxids) - len(changed)
    told += [TruthCompared(agrees=True, what=f"{same} lists of topics are as they were read")] * (
        same > 0
    )
    ids = {f.ledger_id for one in found for f in one.findings if f.ledger_id is not None}
    return told + prove_blocks(stack, blocks_of_ledgers(tables, sorted(ids)))


def _listing(node: Node) -> list[PlainLedger]:
    plain = plain_ledgers(node.data)
    if plain is not None:
        return plain
    return [
        (
            one.ledger_id,
            one.entries or 0,
            one.offload.uid.bytes if one.offload and one.offload.complete else None,
            one.is_open,
        )
        for one in decode_topic(node).ledgers
    ]


def _doubts(tables: Tables, listed: ListedLedgers) -> list[Doubts]:
    """One pass over the blocks, from the first listed ledger to the last one."""
    names = [topic.whole.topic for topic in listed.topics]
    named = ""
    if len(names) <= _NAMED_MAX:
        named = f" and topic in ({', '.join(map(sql_text, names))})"
    return [
        Doubts.of(
            listed,
            lot.ledgers,
            answer(
                tables,
                ODD_SQL.format(where=f"ledger_id between {lot.first} and {lot.last}{named}"),
            ),
        )
        for lot in lots_by_id(listed.table(), LEDGERS_AT_ONCE)
    ]


def _judged(
    stack: Stack,
    tables: Tables,
    as_of: AsOf,
    listed: ListedLedgers,
    numbers: Sequence[int],
    doubts: Sequence[Doubts],
) -> Iterator[TopicCoverage]:
    ends, odd_ones = dict[int, dict[Attempt, int | None]](), list[Attempt]()
    between = dict[int, list[int]]()
    for some in doubts:
        for row in some.doubtful_of(numbers):
            attempt = row["ledger_id"], row["uid"]
            ends.setdefault(row["topic"], {})[attempt] = row["end"]
            if row["odd"]:
                odd_ones.append(attempt)
        for row in some.between_of(numbers):
            between.setdefault(row["topic"], []).append(row["ledger_id"])
    without = {one for found in ends.values() for one, end in found.items() if end is None}
    odd, certified = _spans(tables, odd_ones), _certified(stack, sorted(without))
    known = _known(tables, {one for ids in between.values() for one in ids})
    for number in numbers:
        whole = listed.topics[number].whole
        if number not in ends and number not in between:
            yield whole
            continue
        ledgers = [*listed.ledgers_of(number)]
        reach: dict[Attempt, int | None] = {
            (one.ledger_id, one.uid): one.entries - 1 for one in ledgers if one.uid and one.entries
        }
        reach |= ends.get(number, {})
        facts = CoverageFacts(
            last_entry_ids={attempt: end for attempt, end in reach.items() if end is not None},
            odd=odd,
            certified=certified,
            known=known.get(whole.topic, frozenset()),
            in_work=as_of.in_work.ledgers,
        )
        yield judge_topic(whole.topic, ledgers, facts)


def _spans(tables: Tables, odd: Sequence[Attempt]) -> dict[Attempt, list[BlockSpan]]:
    """Blocks of these attempts."""
    found: dict[Attempt, list[BlockSpan]] = {attempt: [] for attempt in odd}
    for ids in lots_of(sorted({i for i, _uid in odd}), _ODD_AT_ONCE):
        rows = answer(
            tables,
            'select ledger_id, uid, part, first_entry_id, last_entry_id, "offset", length '  # noqa: S608 - numbers
            f"from blocks where ledger_id in ({', '.join(map(str, ids))})",
        )
        for row in rows_in(rows):
            blocks = found.get((row["ledger_id"], row["uid"]))
            if blocks is not None:
                blocks.append(BlockSpan(*(row[name] for name in BlockSpan._fields)))
    return found


def _certified(stack: Stack, attempts: Sequence[Attempt]) -> frozenset[Attempt]:
    """Those of which a certificate of ours is in the bucket: a request for each."""
    there = stack.in_parallel(
        lambda one: stack.book.exists(keys.certificate(one[0], UUID(one[1]))), attempts
    )
    return frozenset(one for one, is_there in zip(attempts, there, strict=True) if is_there)


def _known(tables: Tables, ledger_ids: Iterable[int]) -> dict[str, set[int]]:
    """By topic, ledgers that are not expired as far as the catalogue knows."""
    found: dict[str, set[int]] = {}
    for ids in lots_of(sorted(ledger_ids), _ODD_AT_ONCE):
        for row in rows_of(tables, ids):
            if row["topic"] is not None and row["state"] not in _GONE:
                found.setdefault(row["topic"], set()).add(row["ledger_id"])
    return found
