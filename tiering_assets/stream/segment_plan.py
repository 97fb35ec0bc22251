"""Plan the objects of an assigned segment: where its entries are now, and every block of them.

Owns: a segment is copied as it was assigned or not at all. Each of its ledgers must still be proven
up to the assigned last entry, which must count the payload bytes that it counted then.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby

from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.segments.block import SegmentBlock
from tiering_assets.offload_format.segments.encoder import encode_segment_index, held_ledger_info
from tiering_assets.offload_format.segments.layout import LedgerSlice, plan_segment
from tiering_assets.records.stream_models import AssignedRange, SegmentAssigned
from tiering_assets.resources.errors import (
    EntryUnavailableError,
    IntegrityError,
    LedgerNotOnBookieError,
)
from tiering_assets.stream.open_range import source_now
from tiering_assets.tasks.descriptors import LedgerSource
from tiering_assets.tasks.point_reads import PointReads


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPlan:
    """All that is known of a copy before it starts. `infos` is LedgerInfo by ledger."""

    assigned: SegmentAssigned
    sources: Mapping[int, LedgerSource]
    blocks: tuple[SegmentBlock, ...]
    block_bytes: int
    infos: Mapping[int, bytes]

    @property
    def object_bytes(self) -> int:
        return self.blocks[-1].offset + self.blocks[-1].block_length

    @property
    def ledger_ids(self) -> tuple[int, ...]:
        return tuple(one.ledger_id for one in self.assigned.ranges)

    def index(self) -> bytes:
        """The bytes of the index object."""
        return encode_segment_index(self.blocks, self.infos, self.object_bytes)

    def by_ledger(self) -> dict[int, tuple[SegmentBlock, ...]]:
        """The blocks of each ledger, in the order of the object."""
        return {i: tuple(some) for i, some in groupby(self.blocks, lambda block: block.ledger_id)}


def name_of(assigned: SegmentAssigned) -> str:
    """What messages call a segment."""
    return f"segment {assigned.number} of {assigned.ml_name}"


def plan_copy(stack: Stack, assigned: SegmentAssigned) -> SegmentPlan:
    """Lay a segment out, reading metadata and single entries alone.

    Raises:
        EntryUnavailableError: a ledger of it is not on bookies, or not proven so far at the moment.
        IntegrityError: a ledger of it contradicts the assignment.
    """
    block_bytes = stack.settings.stream.block_bytes
    sources: dict[int, LedgerSource] = {}
    with ExitStack() as opened, stack.spending_for(assigned.ml_name):
        points = _Points(stack, sources, opened)
        for one in assigned.ranges:
            sources[one.ledger_id] = _source(stack, assigned, one)
            found = points.cumulative_length(one.ledger_id, one.last_entry_id)
            if found != one.bytes_upto:
                raise IntegrityError(
                    f"{name_of(assigned)}: payload bytes up to entry {one.last_entry_id} of ledger "
                    f"{one.ledger_id}: assigned {one.bytes_upto}, found {found}"
                )
        slices = [_slice(one) for one in assigned.ranges]
        blocks = plan_segment(
            slices,
            block_bytes_max=block_bytes,
            cumulative_length=points.cumulative_length,
        )
    return SegmentPlan(
        assigned=assigned,
        sources=sources,
        blocks=blocks,
        block_bytes=block_bytes,
        infos=_infos(stack, assigned, slices),
    )


class _Points:
    """Single entries of a segment's ledgers. One of them is open at a time, as there may be
    thousands.
    """

    def __init__(
        self, stack: Stack, sources: Mapping[int, LedgerSource], opened: ExitStack
    ) -> None:
        self._stack, self._sources, self._opened = stack, sources, opened
        self._open: tuple[int, PointReads] | None = None

    def cumulative_length(self, ledger_id: int, entry_id: int) -> int:
        if self._open is None or self._open[0] != ledger_id:
            self._opened.close()
            bookies, source = self._stack.settings.bookies, self._sources[ledger_id]
            points = self._opened.enter_context(self._stack.open_points(bookies, source))
            self._open = ledger_id, points
        return self._open[1].cumulative_length(entry_id)


def _slice(one: AssignedRange) -> LedgerSlice:
    return LedgerSlice(
        ledger_id=one.ledger_id,
        first_entry_id=one.first_entry_id,
        last_entry_id=one.last_entry_id,
        bytes_before=one.bytes_before,
        bytes_upto=one.bytes_upto,
    )


def _source(stack: Stack, assigned: SegmentAssigned, one: AssignedRange) -> LedgerSource:
    seen = stack.ledgers.read(one.ledger_id)
    if seen is None:
        gone = LedgerNotOnBookieError(f"BookKeeper has no ledger {one.ledger_id} any more")
        raise EntryUnavailableError(one.ledger_id, one.first_entry_id, {"metadata": gone})
    source = source_now(stack, seen)
    bound = source.readable_to()
    if bound.entry_id >= one.last_entry_id:
        return source
    if source.open_end is None:
        raise IntegrityError(
            f"{name_of(assigned)}: ledger {one.ledger_id} was closed with last entry "
            f"{bound.entry_id}, assigned up to {one.last_entry_id}: BookKeeper lost acknowledged "
            f"entries"
        )
    raise EntryUnavailableError(one.ledger_id, one.last_entry_id, {})


def _infos(stack: Stack, assigned: SegmentAssigned, slices: list[LedgerSlice]) -> dict[int, bytes]:
    """What the index says of each ledger, with the time at which its topic lists it as closed."""
    read = stack.topics.read(assigned.ml_name)
    closed = {} if read is None else {one.ledger_id: one.closed_at_ms for one in read[0].ledgers}
    return {
        one.ledger_id: held_ledger_info(one, closed_at_ms=closed.get(one.ledger_id))
        for one in slices
    }
