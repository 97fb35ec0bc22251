"""Protobuf fields of many messages side by side: the first field of all, then the second of all.

By the library each message is read on its own, into the same arrays.

Owns: a message in which anything is unusual is marked odd, and its values mean nothing. Then who
asked reads it by the plain walk (offload_format/wire_fields.py), which says what is wrong, if
anything is. The rules of fields are the same: one key is number and wire type, the last one counts.

Without the library it grows with fields of the longest message times a dozen array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tiering_assets.resources.native.core import KEYS, Core, FieldArrays

Array = Any  # of numpy; its own types tell no shape
_VARINT_BYTES_MAX: Final = 10  # bits above the 64th are dropped
PADDING: Final = bytes(16)
_NOTHING: Final[Array] = np.int64(0)
_FEW: Final = 40  # messages; for fewer the plain walk is faster
_NO_SLOT: Final[Array] = np.full(KEYS, -1, np.int8)
_PATIENCE: Final = 64  # fields, before it is looked at how few are left


@dataclass(frozen=True, slots=True)
class Slices:
    """Bytes of each row, as places in one array. `present` where the row has them."""

    starts: Array
    lengths: Array
    present: Array

    def taken(self, rows: Array) -> Slices:
        return Slices(self.starts[rows], self.lengths[rows], self.present[rows])


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number of each row, signed, of 64 bits; 0 where the row has none."""

    values: Array
    present: Array

    @classmethod
    def none(cls, rows: int) -> Numbers:
        return cls(np.zeros(rows, np.int64), np.zeros(rows, bool))

    def taken(self, rows: Array) -> Numbers:
        return Numbers(self.values[rows], self.present[rows])


class Fields:
    """What is wanted of so many messages, by key. `odd` are those of which nothing is known.

    `repeated` fields are kept each, with the row that they are of, in their order. By `core` they
    are read one message after the other, else side by side.
    """

    def __init__(
        self,
        rows: int,
        *,
        numbers: Collection[int] = (),
        slices: Collection[int] = (),
        repeated: int | None = None,
        core: Core | None = None,
    ) -> None:
        keys = (*dict.fromkeys(numbers), *dict.fromkeys(slices))
        of_numbers = len(keys) - len(set(slices))
        self.odd = np.zeros(rows, bool)
        self.repeated, self.core = repeated, core
        values, present = np.zeros((len(keys), rows), np.int64), np.zeros((len(keys), rows), bool)
        lengths, slots = np.zeros((len(keys) - of_numbers, rows), np.int64), _NO_SLOT.copy()
        slots[[*keys]] = np.arange(len(keys))
        self.arrays = FieldArrays(of_numbers, slots, values, lengths, present)
        columns = [*zip(keys, values, present, strict=True)]
        self.numbers = {key: Numbers(one, has) for key, one, has in columns[:of_numbers]}
        self.slices = {
            key: Slices(one, length, has)
            for (key, one, has), length in zip(columns[of_numbers:], lengths, strict=True)
        }
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
        """Read the messages of these rows, each at its place in `data`, which is `padded`."""
        core = self.core
        if core is None:
            self._side_by_side(data, rows, starts, ends)
            return
        places = {"rows": whole(rows), "starts": whole(starts), "ends": whole(ends)}
        self.take(lambda into: core.fields(data, **places, odd=self.odd, **into))

    def take(self, read: Callable[[Mapping[str, Any]], int]) -> None:
        """Have the core read into the arrays, with room for all repeated fields."""
        key, room = self.repeated or 0, len(self.odd) if self.repeated else 0
        while True:
            each = np.empty((3, room), np.int64)
            found = read({"into": self.arrays, "repeated": key, "each": each})
            if found <= room:
                break
            room = found
        if found:
            rows, starts, lengths = each[:, :found]
            self._each.append((rows, starts, lengths))

    def _side_by_side(self, data: Array, rows: Array, starts: Array, ends: Array) -> None:
        at, fields = starts, 0
        keys: Array
        lengths: Array
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
            key = _same_byte(data, at)
            if key is None:
                keys, at, sound = varints(data, at, ends)
                kinds = keys & 7
                sound &= (keys >= 8) & ((kinds == 0) | (kinds == 2))
                values, at, more = varints(data, at, ends)
                sound &= more & ((kinds == 0) | (values >= 0) & (values <= ends - at))
                lengths = np.where(kinds == 2, values, 0)
            else:
                kind = key & 7
                values, at, sound = varints(data, at + 1, ends)
                lengths = values if kind == 2 else _NOTHING
                if kind == 2:
                    sound &= (values >= 0) & (values <= ends - at)
                elif kind:
                    sound[:] = False
            if not sound.all():
                self.odd[rows[~sound]] = True
                rows, at, ends, values = rows[sound], at[sound], ends[sound], values[sound]
                keys = None if key is not None else keys[sound]
                lengths = lengths if lengths is _NOTHING else lengths[sound]
            if key is None:
                self._keep(rows, keys, values, at)
            else:
                self._keep_one(key, rows, values, at)
            at = at + lengths

    def _keep(self, rows: Array, keys: Array, values: Array, at: Array) -> None:
        for key in np.unique(keys):
            some = keys == key
            self._keep_one(int(key), rows[some], values[some], at[some])

    def _keep_one(self, key: int, rows: Array, values: Array, at: Array) -> None:
        if key == self.repeated:
            self._each.append((rows, at, values))
        elif (number := self.numbers.get(key)) is not None:
            number.values[rows], number.present[rows] = values, True
        elif (found := self.slices.get(key)) is not None:
            found.starts[rows], found.lengths[rows], found.present[rows] = at, values, True


def whole(places: Array) -> Array:
    """The same numbers of 64 bits, in one piece."""
    return np.ascontiguousarray(places, np.int64)


def padded(data: Array, ends: Array) -> Array:
    """The same, with some bytes behind the last of these places, so that a look ahead finds one."""
    if len(data) >= int(ends.max(initial=0)) + len(PADDING):
        return data
    return np.concatenate([data, np.frombuffer(PADDING, np.uint8)])


def _same_byte(data: Array, at: Array) -> int | None:
    """The key of one byte that stands at each of these places, if one does."""
    found = data[at]
    first = int(found[0])
    return first if 8 <= first < 0x80 and (found == first).all() else None


def varints(data: Array, at: Array, ends: Array) -> tuple[Array, Array, Array]:
    """(values as signed numbers, where they end, whether there is one) of a number at each place.

    Places are those of `padded` bytes, and none is behind its end.
    """
    sound = at < ends
    byte = data[at]
    at = at + 1
    if int(byte.max(initial=0)) < 0x80:
        return byte.astype(np.int64), at, sound
    goes_on = sound & (byte >= 0x80)
    value = byte.astype(np.uint64) & np.uint64(0x7F)
    for place in range(1, _VARINT_BYTES_MAX):
        where = np.flatnonzero(goes_on)
        if not len(where):
            break
        here = at[where]
        byte = data[here].astype(np.uint64)
        value[where] |= (byte & np.uint64(0x7F)) << np.uint64(7 * place)
        cut = here >= ends[where]
        sound[where[cut]] = False
        at[where] += 1
        goes_on[where] = ~cut & (byte >= 0x80)
    sound[goes_on] = False
    return value.view(np.int64), at, sound


def big_endian(data: Array, at: Array, size: int) -> Array:
    """Unsigned numbers of so many bytes of `padded` data."""
    found = data[at].astype(np.int64)
    for place in range(1, size):
        found = found << 8 | data[at + place]
    return found
