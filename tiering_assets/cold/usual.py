"""Rows of the entries in which nothing is unusual: of which entry each is, where its fields lie.

Owns: what messages of a batch inherit from their entry, and what not. All other entries are odd.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from tiering_assets.cold.columns import OF_MESSAGE
from tiering_assets.cold.entry_heads import (
    BATCH,
    CODEC,
    SIZE,
    Heads,
    misfits,
    read_heads,
    signed32,
)
from tiering_assets.cold.lockstep import Array, Fields, Numbers, Slices, padded
from tiering_assets.cold.opened import Opened, TooMuchAtOnceError, open_payloads
from tiering_assets.cold.singles import Singles, read_singles
from tiering_assets.offload_format.message_codecs import BYTES_MAX, MESSAGES_MAX
from tiering_assets.offload_format.wire_fields import bytes_key, varint_key
from tiering_assets.resources.native.core import Core

_LEAST_BYTES: Final = 4  # of a message of a batch: the length of its head
ROWS_MAX: Final = MESSAGES_MAX
"""Messages of several entries: a block of zeros may have some hundred million of no bytes."""
_INDEX: Final = frozenset({"batch_index"})
NUMBERS: Final = {  # name: key in the entry, and in a message of a batch
    "event_time": (varint_key(12), varint_key(5)),
    "sequence_id": (varint_key(2), varint_key(8)),
    "key_is_base64": (varint_key(17), varint_key(6)),
    "null_value": (varint_key(25), varint_key(9)),
    "compacted_out": (None, varint_key(4)),
}
INHERITED: Final = frozenset({"event_time", "null_value"})
SLICES: Final = {
    "key": (bytes_key(6), bytes_key(2)),
    "ordering_key": (bytes_key(18), bytes_key(7)),
}
_MARKER: Final = varint_key(20)
ENTRY_NUMBERS: Final = {
    "marker": _MARKER,
    "txn_most": varint_key(23),
    "txn_least": varint_key(22),
    "chunk": varint_key(29),
}
TRANSACTION: Final = frozenset({"txn_most", "txn_least"})
ENTRY_SLICES: Final = {
    "schema_version": bytes_key(16),
    "replicated_from": bytes_key(5),
    "chunk_uuid": bytes_key(26),
}
_NAME, _VALUE = bytes_key(1), bytes_key(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Properties of rows, in their order; a name may stand twice."""

    rows: Array
    names: Slices
    values: Slices

    def moved(self, rows: Array) -> Pairs:
        """Of the rows that those are now; without those of rows that became -1."""
        now = rows[self.rows]
        some = now >= 0
        return Pairs(rows=now[some], names=self.names.taken(some), values=self.values.taken(some))

    def and_also(self, other: Pairs) -> Pairs:
        """Those of both, by row."""
        rows = np.concatenate([self.rows, other.rows])
        order = np.argsort(rows, kind="stable")
        return Pairs(
            rows=rows[order],
            names=_both(self.names, other.names).taken(order),
            values=_both(self.values, other.values).taken(order),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """`entry` is of each row, as is `index` in its batch, -1 without. `odd` is of each entry.

    `of_batch` are the rows that are messages of batches, `single` which of the singles those are.
    """

    data: Array
    heads: Heads
    opened: Opened
    singles: Singles
    odd: Array
    entry: Array
    index: Array
    of_batch: Array
    single: Array
    pairs: Pairs

    @property
    def all_of_batches(self) -> bool:
        """Then no row has a field of its entry alone."""
        return len(self.of_batch) == len(self.entry)

    def number(self, name: str) -> Numbers:
        """Of each row."""
        of_entry, of_single = NUMBERS[name]
        if self.all_of_batches and name not in INHERITED:
            return self.singles.fields.numbers[of_single].taken(self.single)
        rows = len(self.entry)
        found = Numbers.none(rows)
        if of_entry is not None:
            found = self.heads.number(of_entry).taken(self.entry)
        own = self.singles.fields.numbers[of_single].taken(self.single)
        at = self.of_batch
        if name in INHERITED:
            own = Numbers(
                np.where(own.present, own.values, found.values[at]),
                own.present | found.present[at],
            )
        found.values[at], found.present[at] = own.values, own.present
        return found

    def slices(self, name: str) -> Slices:
        """Of each row."""
        of_entry, of_single = SLICES[name]
        if self.all_of_batches:
            return self.singles.fields.slices[of_single].taken(self.single)
        found = self.heads.fields.slices[of_entry].taken(self.entry)
        return _put(found, self.of_batch, self.singles.fields.slices[of_single].taken(self.single))

    def payloads(self) -> Slices:
        if self.all_of_batches:
            return self.singles.payloads.taken(self.single)
        starts, ends = self.opened.starts[self.entry], self.opened.ends[self.entry]
        found = Slices(starts, ends - starts, np.ones(len(starts), bool))
        return _put(found, self.of_batch, self.singles.payloads.taken(self.single))


def _both(one: Slices, other: Slices) -> Slices:
    return Slices(
        np.concatenate([one.starts, other.starts]),
        np.concatenate([one.lengths, other.lengths]),
        np.concatenate([one.present, other.present]),
    )


def _put(found: Slices, at: Array, own: Slices) -> Slices:
    found.starts[at], found.lengths[at], found.present[at] = own.starts, own.lengths, own.present
    return found


def read_usual(
    data: Array,
    starts: Array,
    ends: Array,
    names: Collection[str],
    *,
    markers: bool,
    verify: bool,
    core: Core | None = None,
) -> Usual:
    """Rows of the entries at these places, with what columns by these `names` need.

    To `verify` is to judge checksums: an entry whose own does not fit is odd.

    Raises:
        TooMuchAtOnceError: of more than one entry.
    """
    wanted, data = {*names}, padded(data, ends)
    if wanted & TRANSACTION:  # half of an id is none
        wanted |= TRANSACTION
    properties = "properties" in wanted
    heads = read_heads(
        data,
        starts,
        ends,
        numbers={
            _MARKER,
            *(ENTRY_NUMBERS[name] for name in wanted & ENTRY_NUMBERS.keys()),
            *(key for name in wanted & NUMBERS.keys() if (key := NUMBERS[name][0]) is not None),
        },
        slices={
            *(ENTRY_SLICES[name] for name in wanted & ENTRY_SLICES.keys()),
            *(SLICES[name][0] for name in wanted & SLICES.keys()),
        },
        properties=properties,
        broker=bool(wanted & {"broker_time", "broker_index"}),
        core=core,
    )
    odd = heads.odd.copy()
    if verify:
        odd |= misfits(data, ends, heads)
    hidden = heads.number(_MARKER).present & (not markers)
    odd |= hidden & (heads.in_batch | (heads.number(CODEC).values != 0))  # it may be damaged
    shown = ~odd & ~hidden
    batches = shown & heads.in_batch
    looked_into = batches & bool(wanted & OF_MESSAGE - _INDEX)
    opened = open_payloads(
        data, ends, heads, looked_into | (shown & ~batches & ("payload" in wanted))
    )
    odd |= opened.odd
    data = opened.data
    counts = np.where(batches, signed32(heads.number(BATCH).values), 1).astype(np.int64)
    room = np.where(looked_into, opened.ends - opened.starts, _claimed(heads, ends)) // _LEAST_BYTES
    odd |= batches & ((counts < 1) | (counts > np.minimum(room, MESSAGES_MAX)))
    many = counts[shown & ~odd]
    if len(many) > 1 and many.sum() > ROWS_MAX:
        raise TooMuchAtOnceError
    at = np.flatnonzero(looked_into & ~odd)
    singles = read_singles(
        data,
        opened.starts[at],
        opened.ends[at],
        counts[at],
        numbers={NUMBERS[name][1] for name in wanted & NUMBERS.keys()},
        slices={SLICES[name][1] for name in wanted & SLICES.keys()},
        properties=properties,
        core=core,
    )
    odd[at[singles.odd]] = True
    of_single = np.repeat(at, counts[at])  # the entry of each, batch by batch
    of_place = np.zeros(len(of_single), np.int64)
    met = singles.places >= 0
    of_place[singles.places[met]] = of_single[met]
    of_heads = _pairs_in(data, heads.fields, np.arange(len(starts)), odd, but=batches)
    of_singles = _pairs_in(data, singles.fields, of_place, odd)
    shown &= ~odd
    kept = np.flatnonzero(shown)
    entry = np.repeat(kept, counts[kept])
    first_row = np.zeros(len(starts), np.int64)
    first_row[kept] = np.cumsum(counts[kept]) - counts[kept]
    of_batch = batches[entry]
    index = np.where(of_batch, np.arange(len(entry)) - first_row[entry], -1)
    single = singles.places[shown[of_single]]
    rows = np.flatnonzero(of_batch) if len(single) else np.zeros(0, np.int64)
    row_of_head = np.where(shown, first_row, -1)
    row_of_single = np.full(len(of_single), -1)
    row_of_single[single] = rows
    return Usual(
        data=data,
        heads=heads,
        opened=opened,
        singles=singles,
        odd=odd,
        entry=entry,
        index=index,
        of_batch=rows,
        single=single,
        pairs=of_heads.moved(row_of_head).and_also(of_singles.moved(row_of_single)),
    )


def _claimed(heads: Heads, ends: Array) -> Array:
    """Bytes that the payload of each entry has by its metadata, 0 where it claims what is refused.

    A batch that is not looked into has no more messages than these can hold.
    """
    sizes, closed = heads.number(SIZE).values, heads.number(CODEC).values != 0
    told = np.where((sizes >= 0) & (sizes <= BYTES_MAX), sizes, 0)
    return np.where(closed, told, ends - heads.payloads)


def _pairs_in(
    data: Array, fields: Fields, entries: Array, odd: Array, *, but: Array | None = None
) -> Pairs:
    """Properties by message, but those of entries that keep theirs for themselves. The entry of one
    that is unusual is odd.
    """
    rows, starts, lengths = fields.each()
    if but is not None:
        some = ~but[rows]
        rows, starts, lengths = rows[some], starts[some], lengths[some]
    pair = Fields(len(rows), slices=(_NAME, _VALUE), core=fields.core)
    pair.walk(data, np.arange(len(rows)), starts, starts + lengths)
    odd[entries[rows[pair.odd]]] = True
    for one in pair.slices.values():
        one.present[:] = True  # what is not there is empty
    return Pairs(rows=rows, names=pair.slices[_NAME], values=pair.slices[_VALUE])
