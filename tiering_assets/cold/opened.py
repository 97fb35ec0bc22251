"""Payloads of entries as their producers filled them: those that are compressed are inflated.

Owns: what was inflated lies behind the block in one array, so that a place is one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tiering_assets.cold.entry_heads import CODEC, SIZE, Heads
from tiering_assets.cold.lockstep import PADDING, Array
from tiering_assets.offload_format.message_codecs import BYTES_MAX, inflate_into
from tiering_assets.resources.errors import FormatError

INFLATED_MAX: Final = 256 * 1024 * 1024
"""Bytes of payloads of several entries: 64 MiB of zeros, well compressed, would be 16 GiB."""


class TooMuchAtOnceError(Exception):
    """These entries would be larger than INFLATED_MAX, or of too many rows: ask for fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The payload of each entry, from `starts` to `ends` in `data`; `odd` where it is none."""

    data: Array
    starts: Array
    ends: Array
    odd: Array


def open_payloads(data: Array, ends: Array, heads: Heads, wanted: Array) -> Opened:
    """Those of the entries that are `wanted`; others stay as they are stored, as closed ones do.

    Raises:
        TooMuchAtOnceError: of more than one entry.
    """
    starts, ends = heads.payloads.copy(), ends.copy()
    codes, sizes = heads.number(CODEC).values, heads.number(SIZE).values
    closed = wanted & heads.is_open & (codes != 0)
    odd = closed & ((sizes < 0) | (sizes > BYTES_MAX))  # are refused
    closed &= ~odd
    room = int(sizes[closed].sum())
    if np.count_nonzero(closed) > 1 and room > INFLATED_MAX:
        raise TooMuchAtOnceError
    if not closed.any():
        return Opened(data=data, starts=starts, ends=ends, odd=odd)
    at = len(data)
    whole: Array = np.empty(at + room + len(PADDING), np.uint8)
    whole[:at] = data
    view, out = memoryview(data), memoryview(whole)
    for n in np.flatnonzero(closed).tolist():
        behind = at + int(sizes[n])
        try:
            inflate_into(view[starts[n] : ends[n]], out[at:behind], code=int(codes[n]))
        except FormatError:
            odd[n] = True
            continue
        starts[n], ends[n] = at, behind
        at = behind
    whole[at : at + len(PADDING)] = 0
    return Opened(data=whole[: at + len(PADDING)], starts=starts, ends=ends, odd=odd)
