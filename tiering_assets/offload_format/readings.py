"""What a broker is asked, so that it reads a ledger: entries to show, or positions by time. Pure.

Owns: an entry of which a broker gives no answer over REST is not asked for. Where none can be
shown, positions are looked for by publish time: the broker reads entries by their heads alone then,
and its answer says which.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tiering_assets.offload_format.message_facts import EntryHead

LOOKED_AT: Final = 16  # entries of a ledger whose first or last one cannot be shown
TIMES_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Readings:
    """Entries to be shown; where there are none, publish times to be looked for, in ms."""

    entries: tuple[int, ...]
    times: tuple[int, ...] = ()


def readings_of(wanted: Collection[int], seen: Mapping[int, EntryHead | None]) -> Readings:
    """The entries that are wanted, or others that were looked at, or times.

    None is an entry of which nothing is known: the broker says itself what it thinks of it.
    """
    unknown = {one for one, head in seen.items() if head is None}
    shown = {one for one, head in seen.items() if head is not None and head.can_be_shown}
    if {*wanted} <= shown | unknown:
        return Readings(tuple(sorted(wanted)))
    some = shown or unknown
    if some:
        return Readings(tuple(sorted({min(some), max(some)})))
    times = {head.publish_time_ms for head in seen.values() if head is not None}
    return Readings((), tuple(_spread(sorted(times), TIMES_MAX)))


def to_look_at(last_entry_id: int) -> set[int]:
    """Entries of a ledger, some between the first and the last."""
    return {*_spread(range(last_entry_id + 1), LOOKED_AT)}


def tells_of_reading(found: tuple[int, int], ledger_id: int, listed: Iterable[int]) -> bool:
    """Whether a position found by time means that the broker read this ledger, of those `listed`.

    It has read the entry before that position.
    Source: OpFindNewest and ManagedLedgerImpl.asyncFindPosition.
    """
    found_in, entry_id = found
    if found_in == ledger_id:
        return entry_id > 0
    return entry_id == 0 and found_in == min((i for i in listed if i > ledger_id), default=None)


def _spread(items: Sequence[int], most: int) -> Iterable[int]:
    """The first, the last, and some between."""
    if len(items) <= most:
        return items
    return (items[n * (len(items) - 1) // (most - 1)] for n in range(most))
