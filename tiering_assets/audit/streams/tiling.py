"""Do the ranges of a stream follow each other, without a gap and without an overlap? Pure.

Owns: within a ledger the next entry is the last one plus 1, and counts the payload bytes before it.
A ledger begins with entry 0 and no bytes. Ledger ids ascend. Where a segment begins anywhere else,
it says from where to where entries were skipped, exactly.

That a ledger which is left had no further entry is not in these records: the sealed ledger says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tiering_assets.records.stream_models import AssignedRange, SegmentAssigned, StreamOpened

Told = tuple[int | None, str, object, object]
"""The ledger if any, what is wrong, what was expected, what was found."""


@dataclass(frozen=True, slots=True)
class GoesOn:
    """Where a stream goes on: the next entry, and the payload bytes of its ledger before it."""

    ledger_id: int
    entry_id: int
    bytes_before: int

    def __str__(self) -> str:
        return (
            f"entry {self.entry_id} of ledger {self.ledger_id} after {self.bytes_before} "
            f"payload bytes"
        )


def end_of(before: StreamOpened | SegmentAssigned) -> GoesOn:
    """Behind a segment, or where a stream begins. ValueError for one that has no ranges."""
    if isinstance(before, StreamOpened):
        return GoesOn(before.first_ledger_id, before.first_entry_id, 0)
    if not before.ranges:
        raise ValueError("a segment needs a range to have an end")
    last = before.ranges[-1]
    return GoesOn(last.ledger_id, last.last_entry_id + 1, last.bytes_upto)


def range_faults(assigned: SegmentAssigned) -> Iterator[Told]:
    """Of one segment by itself."""
    for one in assigned.ranges:
        yield from _impossible(one)
    for one, other in pairwise(assigned.ranges):
        if other.ledger_id <= one.ledger_id:
            above = f"above {one.ledger_id}"
            yield other.ledger_id, "ledger ids of its ranges", above, other.ledger_id
        start, first = _first(other), GoesOn(other.ledger_id, 0, 0)
        if start != first:
            yield other.ledger_id, "first entry of a ledger", first, start


def follow_faults(before: GoesOn, assigned: SegmentAssigned) -> Iterator[Told]:
    """Of a segment behind another, or behind the stream's opening."""
    if not assigned.ranges:
        return
    start, skipped = _first(assigned.ranges[0]), assigned.skipped
    another = start.ledger_id > before.ledger_id
    if skipped is None:
        if start != before and not (another and (start.entry_id, start.bytes_before) == (0, 0)):
            expected = f"{before}, or entry 0 of a later ledger"
            yield start.ledger_id, "its first entry", expected, start
        return
    wanted = (before.ledger_id, before.entry_id, start.ledger_id, start.entry_id)
    said = (
        skipped.from_ledger_id,
        skipped.from_entry_id,
        skipped.to_ledger_id,
        skipped.to_entry_id,
    )
    if said != wanted:
        yield start.ledger_id, "skipped (from ledger, entry, to ledger, entry)", wanted, said
    ahead = (start.ledger_id, start.entry_id) > (before.ledger_id, before.entry_id)
    least = 0 if another else before.bytes_before
    if not ahead or start.bytes_before < least:
        yield start.ledger_id, "its first entry", f"one behind {before}", start


def _first(one: AssignedRange) -> GoesOn:
    return GoesOn(one.ledger_id, one.first_entry_id, one.bytes_before)


def _impossible(one: AssignedRange) -> Iterator[Told]:
    ends = (one.first_entry_id, one.last_entry_id, one.bound_entry_id)
    if not 0 <= one.first_entry_id <= one.last_entry_id <= one.bound_entry_id:
        yield one.ledger_id, "first, last and proven entry", "ascending from 0", ends
    counted = (one.bytes_before, one.bytes_upto)
    if not 0 <= one.bytes_before <= one.bytes_upto:
        yield one.ledger_id, "payload bytes before and up to it", "ascending from 0", counted
    if one.first_entry_id == 0 and one.bytes_before != 0:
        yield one.ledger_id, "payload bytes before entry 0", 0, one.bytes_before
