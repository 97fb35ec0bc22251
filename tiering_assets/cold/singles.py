"""Messages of many batches: by the library one batch after the other, else the first messages of
all, then the second ones.

Owns: where each message of a batch lies. A batch in which anything is unusual is odd.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from tiering_assets.cold.entry_heads import signed32
from tiering_assets.cold.lockstep import Array, Fields, Slices, big_endian, whole
from tiering_assets.offload_format.wire_fields import bytes_key, varint_key
from tiering_assets.resources.native.core import Core

PROPERTIES, PAYLOAD_BYTES = bytes_key(1), varint_key(3)
_LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Singles:
    """Messages in the order in which they were met.

    `places` are theirs batch by batch; -1 for those of batches that are `odd`.
    """

    fields: Fields
    payloads: Slices
    places: Array
    odd: Array


def read_singles(
    data: Array,
    starts: Array,
    ends: Array,
    counts: Array,
    *,
    numbers: Collection[int] = (),
    slices: Collection[int] = (),
    properties: bool = False,
    core: Core | None = None,
) -> Singles:
    """Messages of the batches whose payloads lie at these places, so many of each.

    Counts are those of batches that can have so many: the caller has looked.
    """
    total = int(counts.sum())
    fields = Fields(
        total,
        numbers={PAYLOAD_BYTES, *numbers},
        slices=slices,
        repeated=PROPERTIES if properties else None,
        core=core,
    )
    read = _side_by_side if core is None else partial(_one_by_one, core)
    return _filled(read(fields, data, starts, ends, counts), ends, counts)


def _filled(found: Singles, ends: Array, counts: Array) -> Singles:
    """A batch with bytes behind its last message is odd as well: there may be more of them."""
    last, own = found.places[np.cumsum(counts) - 1], found.payloads
    more = (last >= 0) & (own.starts[last] + own.lengths[last] != ends)
    if more.any():
        found.odd[more] = True
        found.places[np.repeat(more, counts)] = -1
    return found


def _one_by_one(
    core: Core, fields: Fields, data: Array, starts: Array, ends: Array, counts: Array
) -> Singles:
    total, odd = int(counts.sum()), np.zeros(len(starts), bool)
    payloads = Slices(np.zeros(total, np.int64), np.zeros(total, np.int64), np.ones(total, bool))
    batches = {"starts": whole(starts), "ends": whole(ends), "counts": whole(counts)}
    out = {"payload_starts": payloads.starts, "payload_lengths": payloads.lengths, "odd": odd}
    fields.take(lambda into: core.singles(data, **batches, **out, **into))
    places = np.where(np.repeat(odd, counts), -1, np.arange(total))
    return Singles(fields=fields, payloads=payloads, places=places, odd=odd)


def _side_by_side(
    fields: Fields, data: Array, starts: Array, ends: Array, counts: Array
) -> Singles:
    total = int(counts.sum())
    size = fields.numbers[PAYLOAD_BYTES]
    payloads = Slices(np.zeros(total, np.int64), np.zeros(total, np.int64), np.ones(total, bool))
    odd = np.zeros(len(starts), bool)
    firsts, met = np.cumsum(counts) - counts, 0
    places = np.full(total, -1)
    batches, at = np.arange(len(starts)), starts
    for number in range(int(counts.max(initial=0))):
        goes_on = (counts[batches] > number) & ~odd[batches]
        if not goes_on.all():
            batches, at = batches[goes_on], at[goes_on]
        here, end = slice(met, met + len(batches)), ends[batches]
        rows = np.arange(here.start, here.stop)
        places[firsts[batches] + number] = rows
        met = here.stop
        first = at + _LENGTH_BYTES
        behind = first + big_endian(data, at, _LENGTH_BYTES)
        sound = (first <= end) & (behind <= end)
        if sound.all():
            fields.walk(data, rows, first, behind)
        else:
            fields.walk(data, rows[sound], first[sound], behind[sound])
        length = signed32(size.values[here]).astype(np.int64)
        sound &= ~fields.odd[here] & (length >= 0) & (length <= end - behind)
        payloads.starts[here], payloads.lengths[here] = behind, length
        odd[batches[~sound]] = True
        at = behind + length
    places[np.repeat(odd, counts)] = -1
    return Singles(fields=fields, payloads=payloads, places=places, odd=odd)
