"""Messages of many batches side by side: the first of all batches, then the second of all.

Owns: where each message of a batch lies. A batch in which anything is unusual is odd.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tiering_assets.cold.entry_heads import signed32
from tiering_assets.cold.lockstep import Array, Fields, Slices, big_endian
from tiering_assets.offload_format.wire_fields import bytes_key, varint_key

PROPERTIES, PAYLOAD_BYTES = bytes_key(1), varint_key(3)
_LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Singles:
    """Messages in the order in which they were met: the first of all batches, then the second.

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
    numbers: Iterable[int] = (),
    slices: Iterable[int] = (),
    properties: bool = False,
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
    )
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
