"""Which of the listed ledgers are worth the rules' look? Columns against columns, nothing is asked.

Owns: a ledger that is left out here is one of which the rules find nothing: sealed and offloaded,
its attempt has blocks of its topic that follow, and they end with its last entry. Whatever else is
offloaded comes out, with what the catalogue's blocks say of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import compute

from tiering_assets.lineage.listed import UID_BYTES, ListedLedgers
from tiering_assets.resources.arrow_columns import whole
from tiering_assets.resources.tables import rows_in

pc: Any = compute  # its stubs know columns of one kind alone
_HEX: Final = 2 * UID_BYTES
_DASHES: Final = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))  # as UUIDs are written
_ATTEMPT: Final = ["topic", "ledger_id", "uid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LotById:
    """Listed ledgers, and all ids that belong to the lot: those behind them are not listed."""

    first: int
    last: int
    ledgers: pa.Table


def lots_by_id(listed: pa.Table, most: int) -> Iterator[LotById]:
    """All of them in the order of ids, about so many at a time. No id is in two."""
    order = pc.sort_indices(listed["ledger_id"])
    ids, count, begin = listed["ledger_id"], len(listed), 0

    def at(nth: int) -> int:
        found: int = ids[order[nth].as_py()].as_py()
        return found

    while begin < count:
        end = min(begin + most, count)
        while end < count and at(end - 1) == at(end):
            end += 1
        last = at(end) - 1 if end < count else at(end - 1)
        ledgers = listed.take(order.slice(begin, end - begin))
        yield LotById(first=at(begin), last=last, ledgers=ledgers)
        begin = end


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """Of a lot: `doubtful` are listed ledgers (topic, ledger_id, uid, end, odd), where `end` is the
    last entry that blocks have, null without one. `between` are ledgers (topic, ledger_id) that
    have blocks, and lie between those that their topic lists, and nobody lists them.
    """

    doubtful: pa.Table
    between: pa.Table

    @classmethod
    def of(cls, every: ListedLedgers, lot: pa.Table, answered: pa.Table) -> Doubts:
        """`answered` is ODD_SQL's of all ids of the lot."""
        numbers = pc.index_in(_text(answered["topic"]), value_set=every.names)
        blocks = pa.Table.from_arrays(
            [
                numbers,
                answered["ledger_id"],
                _text(answered["uid"]),
                answered["last_entry_id"],
                answered["odd"],
            ],
            names=[*_ATTEMPT, "end", "odd"],
        )
        return cls(doubtful=_doubtful(lot, blocks), between=_between(lot, blocks, every))

    def doubtful_of(self, topics: Sequence[int]) -> list[dict[str, Any]]:
        return rows_in(_of(self.doubtful, topics))

    def between_of(self, topics: Sequence[int]) -> list[dict[str, Any]]:
        return rows_in(_of(self.between, topics))


def _doubtful(lot: pa.Table, blocks: pa.Table) -> pa.Table:
    sealed = pc.and_(pc.greater(lot["entries"], 0), pc.equal(lot["is_open"], 0))
    ours = lot.filter(pc.and_(sealed, pc.equal(lot["has_uid"], 1)))
    uids = uid_texts(ours["uid"])
    ours = ours.select(["topic", "ledger_id", "entries"]).append_column("uid", uids)
    found = ours.join(blocks, _ATTEMPT, join_type="left outer")
    reach = pc.equal(found["end"], pc.subtract(found["entries"], 1))
    whole = pc.fill_null(pc.and_(reach, pc.invert(found["odd"])), fill_value=False)
    return found.filter(pc.invert(whole)).select([*_ATTEMPT, "end", "odd"])


def _between(lot: pa.Table, blocks: pa.Table, every: ListedLedgers) -> pa.Table:
    ids = whole(lot["ledger_id"])
    unlisted = pc.invert(pc.is_in(blocks["ledger_id"], value_set=ids))
    found = blocks.filter(pc.and_(unlisted, pc.is_valid(blocks["topic"])))
    behind = pc.greater(found["ledger_id"], every.firsts.take(found["topic"]))
    before = pc.less(found["ledger_id"], every.lasts.take(found["topic"]))
    return found.filter(pc.and_(behind, before)).select(["topic", "ledger_id"])


def uid_texts(uids: Any) -> Any:
    """Sixteen bytes each, as UUIDs are written."""
    joined = b"".join(uids.to_pylist()).hex().encode()
    offsets = array("i", range(0, len(joined) + 1, _HEX))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(joined)]
    hexes = pa.Array.from_buffers(pa.binary(), len(uids), buffers)
    pieces = [pc.binary_slice(hexes, begin, end) for begin, end in _DASHES]
    joint = pa.scalar(b"-", pa.binary())
    return pc.binary_join_element_wise(*pieces, joint).cast(pa.string())


def _text(column: Any) -> Any:
    return column.cast(pa.string())


def _of(rows: pa.Table, topics: Sequence[int]) -> pa.Table:
    """`topics` are so-manieth ones without a gap."""
    first, last = pa.scalar(topics[0], pa.int32()), pa.scalar(topics[-1], pa.int32())
    number = rows["topic"]
    return rows.filter(pc.and_(pc.greater_equal(number, first), pc.less_equal(number, last)))
