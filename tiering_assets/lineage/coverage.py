"""Coverage of topics: the catalogue's blocks against the topics' lists, read now.

Some topics at a time: their lists from the metadata store, one question over the blocks of those
topics, and another for the few attempts that are worth a look. So memory is for one lot, however
many topics there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from tiering_assets.catalogue.view import AsOf, Tables, answer, rows_of
from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.block_chain import ODD_SQL, BlockSpan, Gap
from tiering_assets.lineage.coverage_rules import (
    Attempt,
    CoverageFacts,
    CoverageFinding,
    LedgerInList,
    TopicCoverage,
    judge_topic,
)
from tiering_assets.lineage.find import blocks_of_ledgers
from tiering_assets.lineage.proof import prove_blocks
from tiering_assets.lineage.proof_rules import TruthCompared
from tiering_assets.records import keys
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.lots import lots_of
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.store import Node
from tiering_assets.resources.metastore.topics import decode_topic
from tiering_assets.resources.sql import sql_text

LEDGERS_AT_ONCE: Final = 250_000
TOPICS_AT_ONCE: Final = 2_000
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
    """Each topic in its order; a node that is not there is a topic that went meanwhile."""
    lot, ledgers = dict[str, list[LedgerInList]](), 0
    for ml_name, node in nodes:
        if node is None:
            continue
        read.mzxids[ml_name] = node.stat.mzxid
        try:
            lot[ml_name] = _listed(decode_topic(node))
        except FormatError as error:
            finding = CoverageFinding(ledger_id=None, kind=Gap.UNREADABLE, what=str(error))
            yield TopicCoverage(topic=ml_name, first=None, last=None, findings=(finding,))
            continue
        ledgers += len(lot[ml_name])
        if ledgers >= LEDGERS_AT_ONCE or len(lot) >= TOPICS_AT_ONCE:
            yield from _judged(stack, tables, as_of, lot)
            lot, ledgers = {}, 0
    yield from _judged(stack, tables, as_of, lot)


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


def _listed(ml: ManagedLedger) -> list[LedgerInList]:
    return [
        LedgerInList(
            ledger_id=one.ledger_id,
            entries=one.entries,
            uid=str(one.offload.uid) if one.offload and one.offload.complete else None,
            is_open=one.is_open,
        )
        for one in ml.ledgers
    ]


def _judged(
    stack: Stack, tables: Tables, as_of: AsOf, listed: Mapping[str, list[LedgerInList]]
) -> Iterator[TopicCoverage]:
    if not listed:
        return
    firsts = {
        name: min((one.ledger_id for one in some), default=0) for name, some in listed.items()
    }
    where = f"ledger_id >= {min(firsts.values())} and topic in ({', '.join(map(sql_text, listed))})"
    ends, odd_ones = dict[Attempt, int](), set[Attempt]()
    for batch in answer(tables, ODD_SQL.format(where=where)).to_batches():
        for topic, ledger_id, uid, last, is_odd in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if ledger_id >= firsts[topic]:  # those before were trimmed
                ends[ledger_id, uid] = last
                if is_odd:
                    odd_ones.add((ledger_id, uid))
    wanted = {
        (one.ledger_id, one.uid)
        for ledgers in listed.values()
        for one in ledgers
        if one.uid is not None
    }
    odd = _spans(tables, sorted(odd_ones & wanted))
    certified = _certified(stack, sorted(wanted - {*ends}))
    known = _known(tables, {i for i, _uid in ends} - {i for i, _uid in wanted})
    for ml_name, ledgers in listed.items():
        facts = CoverageFacts(
            last_entry_ids=ends,
            odd=odd,
            certified=certified,
            known=known.get(ml_name, frozenset()),
            in_work=as_of.in_work.ledgers,
        )
        yield judge_topic(ml_name, ledgers, facts)


def _spans(tables: Tables, odd: Sequence[Attempt]) -> dict[Attempt, list[BlockSpan]]:
    """Blocks of these attempts."""
    found: dict[Attempt, list[BlockSpan]] = {attempt: [] for attempt in odd}
    for ids in lots_of(sorted({i for i, _uid in odd}), _ODD_AT_ONCE):
        rows = answer(
            tables,
            'select ledger_id, uid, part, first_entry_id, last_entry_id, "offset", length '  # noqa: S608 - numbers
            f"from blocks where ledger_id in ({', '.join(map(str, ids))})",
        )
        for row in rows.to_pylist():
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
        rows: list[dict[str, Any]] = rows_of(tables, ids)
        for row in rows:
            if row["topic"] is not None and row["state"] not in _GONE:
                found.setdefault(row["topic"], set()).add(row["ledger_id"])
    return found
