"""How far a topic's stream is, for people. Reads only; loads and fences nothing.

Grows with the ledgers of one segment, as a look behind the stream's end does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import StreamClosed
from tiering_assets.stream.chain import Chain, Segment, stream_of
from tiering_assets.stream.open_range import OpenRange, TopicGone, look_at_range

State = Literal["none", "open", "closed"]
SegmentState = Literal["assigned", "failed", "offloaded", "given up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus:
    """`next_position` is the first entry that no segment has, `waiting_bytes` what is proven behind
    it, one segment's worth at most. `waits` says why there is no more of it.
    """

    ml_name: str
    state: State
    stream: int | None = None
    segments: int = 0
    newest: SegmentState | None = None
    assigned_at: datetime | None = None
    next_position: str = ""
    waiting_entries: int = 0
    waiting_bytes: int = 0
    waits: str = ""


def state_of(segment: Segment) -> SegmentState:
    """Offloaded wins always; a segment without an attempt that may go on has failed."""
    if segment.offloaded:
        return "offloaded"
    if segment.given_up:
        return "given up"
    return "failed" if segment.attempts and segment.attempts <= segment.failed else "assigned"


def stream_status(stack: Stack, ml_name: str) -> StreamStatus:
    """What is known of a topic's newest stream.

    Raises:
        FormatError: its records are damaged.
        IntegrityError: what lies behind its end contradicts it.
    """
    found = stream_of(stack, ml_name)
    if found is None:
        return StreamStatus(ml_name=ml_name, state="none")
    if isinstance(found, Stored):
        return _closed(found)
    enough_bytes = stack.settings.stream.segment_bytes
    return _open(found, look_at_range(stack, found, enough_bytes=enough_bytes))


def _closed(found: Stored[StreamClosed]) -> StreamStatus:
    record = found.record
    return StreamStatus(
        ml_name=record.ml_name,
        state="closed",
        stream=keys.which_stream(record.stream),
        segments=record.segments,
        waits=record.reason,
    )


def _open(chain: Chain, seen: OpenRange | TopicGone) -> StreamStatus:
    newest = chain.newest
    ledgers = seen.ledgers if isinstance(seen, OpenRange) else ()
    return StreamStatus(
        ml_name=chain.ml_name,
        state="open",
        stream=keys.which_stream(chain.stream),
        segments=chain.next_number - 1,
        newest=None if newest is None else state_of(newest),
        assigned_at=None if newest is None else newest.assigned.record.assigned_at,
        next_position=f"{chain.start.ledger_id}:{chain.start.entry_id}",
        waiting_entries=sum(one.entries for one in ledgers),
        waiting_bytes=sum(one.bytes_upto - one.bytes_before for one in ledgers),
        waits=seen.ends if isinstance(seen, OpenRange) else "the topic is gone",
    )
