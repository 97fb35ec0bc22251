"""Protobuf fields of many messages side by side: the first field of all, then the second of all.

Owns: a message in which anything is unusual is marked odd, and its values mean nothing. Then who
asked reads it by the plain walk (offload_format/wire_fields.py), which says what is wrong, if
anything is. The rules of fields are the same: one key is number and wire type, the last one counts.

Grows with fields of the longest message times a dozen array operations, not with messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Array = Any  # of numpy; its own types tell no shape
_VARINT_BYTES_MAX: Final = 10  # bits above the 64th are dropped
_FEW: Final = 40  # messages; for fewer the plain walk is faster
_PATIENCE: Final = 64  # fields, before it is looked at how few are left


@dataclass(frozen=True, slots=True)
class Slices:
    """Bytes of each row, as places in one array. `present` where the row has them."""

    starts: Array
    lengths: Array
    present: Array

    @classmethod
    def none(cls, rows: int) -> Slices:
        return cls(np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, bool))

    def taken(self, rows: Array) -> Slices:
        return Slices(self.starts[rows], self.lengths[rows], self.present[rows])


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number of each row, unsigned, of 64 bits; 0 where the row has none."""

    values: Array
    present: Array

    @classmethod
    def none(cls, rows: int) -> Numbers:
        return cls(np.zeros(rows, np.uint64), np.zeros(rows, bool))

    def taken(self, rows: Array) -> Numbers:
        return Numbers(self.values[rows], self.present[rows])


class Fields:
    """What is wanted of so many messages, by key. `odd` are those of which nothing is known.

    `repeated` fields are kept each, with the row that they are of, in their order.
    """

    def __init__(
        self,
        rows: int,
        *,
        numbers: Iterable[int] = (),
        slices: Iterable[int] = (),
        repeated: int | None = None,
    ) -> None:
        self.odd = np.zeros(rows, bool)
        self.numbers = {key: Numbers.none(rows) for key in numbers}
        self.slices = {key: Slices.none(rows) for key in slices}
        self.repeated = repeated
        self._each: list[tuple[Array, Array, Array]] = []

    def each(self) -> tuple[Array, Array, Array]:
        """Rows, starts and lengths of the repeated field, by row and in the order of each."""
        if not self._each:
            none = np.zeros(0, np.int64)
            return none, none, none
        rows, starts, lengths = (np.concatenate(one) for one in zip(*self._each, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], starts[order], lengths[order]

    def walk(self, data: Array, rows: Array, starts: Array, ends: Array) -> None:
        """Read the messages of these rows, each at its place in `data`."""
        at, fields = starts, 0
        while True:
            there = at < ends
            if not there.all():
                rows, at, ends = rows[there], at[there], ends[there]
            if not len(rows):
                return
            fields += 1
            if fields > _PATIENCE and len(rows) < _FEW:
                self.odd[rows] = True
                return
            key, at, sound = varints(data, at, ends)
            kind = key & np.uint64(7)
            sound &= (key >= 8) & ((kind == 0) | (kind == 2))
            value, at, more = varints(data, at, ends)
            sound &= more
            is_slice = kind == 2
            sound &= ~is_slice | (value <= (ends - at).astype(np.uint64))
            if not sound.all():
                self.odd[rows[~sound]] = True
                rows, at, ends = rows[sound], at[sound], ends[sound]
                key, value, is_slice = key[sound], value[sound], is_slice[sound]
                if not len(rows):
                    return
            self._keep(rows, key, value, at)
            at = at + np.where(is_slice, value, 0).astype(np.int64)

    def _keep(self, rows: Array, keys: Array, values: Array, at: Array) -> None:
        first = int(keys[0])
        if (keys == keys[0]).all():  # as most of a kind of message are
            self._keep_one(first, rows, values, at)
            return
        for key in np.unique(keys):
            some = keys == key
            self._keep_one(int(key), rows[some], values[some], at[some])

    def _keep_one(self, key: int, rows: Array, values: Array, at: Array) -> None:
        if key == self.repeated:
            self._each.append((rows, at, values.astype(np.int64)))
        elif (number := self.numbers.get(key)) is not None:
            number.values[rows], number.present[rows] = values, True
        elif (found := self.slices.get(key)) is not None:
            found.starts[rows], found.lengths[rows] = at, values.astype(np.int64)
            found.present[rows] = True


def varints(data: Array, at: Array, ends: Array) -> tuple[Array, Array, Array]:
    """(values, where they end, whether there is one) of a number at each place."""
    last = len(data) - 1
    sound = at < ends
    value = data[np.minimum(at, last)].astype(np.uint64)
    at = at + 1
    if not (value & np.uint64(0x80)).any():
        return value, at, sound
    goes_on = sound & (value >= 0x80)
    value &= np.uint64(0x7F)
    for place in range(1, _VARINT_BYTES_MAX):
        where = np.flatnonzero(goes_on)
        if not len(where):
            return value, at, sound
        here = at[where]
        byte = data[np.minimum(here, last)].astype(np.uint64)
        value[where] |= (byte & np.uint64(0x7F)) << np.uint64(7 * place)
        cut = here >= ends[where]
        sound[where[cut]] = False
        at[where] += 1
        goes_on[where] = ~cut & (byte >= 0x80)
    sound[goes_on] = False
    return value, at, sound


def big_endian(data: Array, at: Array, size: int) -> Array:
    """Unsigned numbers of so many bytes; whoever asks knows that they are there."""
    last = len(data) - 1
    found = np.zeros(len(at), np.int64)
    for place in range(size):
        found = found << 8 | data[np.minimum(at + place, last)].astype(np.int64)
    return found
