"""Which entries the next segment gets, and when. Pure but for point reads that a cut asks for.

Owns: one segment at a time: while the newest is neither offloaded nor given up by a person there
is no other. A segment leaves nothing out, ends where it was cut, and has one entry at least: one
that is larger than the size alone. Time alone makes no segment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tiering_assets.ground.moments import moment
from tiering_assets.offload_format.layout import KnownLengths
from tiering_assets.records.stream_models import AssignedRange, SkippedRange, Trigger
from tiering_assets.stream.chain import Chain, Segment
from tiering_assets.stream.open_range import OpenLedger, OpenRange
from tiering_assets.tasks.point_reads import PointReads

PointsOf = Callable[[OpenLedger], AbstractContextManager[PointReads]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhenToCut:
    """When a segment is cut: at so many frame bytes, when its first entry was seen so long ago, or
    because somebody asks. `oldest_at` is that of the first entry which no segment has.
    """

    size_bytes: int
    rollover: timedelta
    oldest_at: datetime
    now: datetime
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """A segment that is assigned and not there yet."""

    segment: Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign:
    ranges: tuple[AssignedRange, ...]
    trigger: Trigger
    skipped: SkippedRange | None


@dataclass(frozen=True, slots=True)
class NothingDue:
    why: str


def newest_left(chain: Chain) -> Resume | None:
    """The segment to go on with before any other is thought of."""
    newest = chain.newest
    return None if newest is None or newest.is_done else Resume(newest)


def decide_assignment(seen: OpenRange, due: WhenToCut, points_of: PointsOf) -> Assign | NothingDue:
    """Cut the next segment from what was seen. `points_of` reads single entries of a ledger."""
    if not seen.ledgers:
        return NothingDue(f"every proven entry is in a segment ({seen.ends})")
    if seen.frame_bytes >= due.size_bytes:
        ranges = cut_to_size(seen.ledgers, due.size_bytes, points_of)
        return Assign(ranges=ranges, trigger="size", skipped=seen.skipped)
    whole = tuple(map(_range, seen.ledgers))
    if due.cut:
        return Assign(ranges=whole, trigger="manual", skipped=seen.skipped)
    if due.now - due.oldest_at >= due.rollover:
        return Assign(ranges=whole, trigger="time", skipped=seen.skipped)
    return NothingDue(
        f"{seen.frame_bytes} of {due.size_bytes} bytes, since {moment(due.oldest_at)}"
    )


def cut_to_size(
    ledgers: Sequence[OpenLedger], size_bytes: int, points_of: PointsOf
) -> tuple[AssignedRange, ...]:
    """As many entries from the first on as fit, by O(log n) reads in the ledger where it ends."""
    ranges: list[AssignedRange] = []
    left = size_bytes
    for one in ledgers:
        if one.frame_bytes <= left:
            ranges.append(_range(one))
            left -= one.frame_bytes
            continue
        with points_of(one) as points:
            last, upto = KnownLengths(
                (one.first_entry_id - 1, one.bytes_before),
                (one.last_entry_id, one.bytes_upto),
                points.cumulative_length,
            ).advance(left)
        part = replace(one, last_entry_id=last, bytes_upto=upto)
        if not ranges or part.frame_bytes <= left:  # else not even one entry fits behind others
            ranges.append(_range(part))
        break
    return tuple(ranges)


def _range(one: OpenLedger) -> AssignedRange:
    return AssignedRange(
        ledger_id=one.ledger_id,
        first_entry_id=one.first_entry_id,
        last_entry_id=one.last_entry_id,
        bytes_before=one.bytes_before,
        bytes_upto=one.bytes_upto,
        bound_by=one.bound.by.value,
        bound_entry_id=one.bound.entry_id,
        metadata_version=one.metadata_version,
    )
