"""All that a topic has at this moment, in segments: what a person asks for.

Owns: an end. A producer that goes on writing is not followed: the segment that ends where nothing
more was proven is the last one. What another run assigned meanwhile is finished first.
"""

from __future__ import annotations

from datetime import timedelta

from tiering_assets.ground.stack import Stack
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import SegmentOffloaded
from tiering_assets.resources.errors import RefusedError, TierkeeperError
from tiering_assets.stream.assign_rules import NothingDue, WhenToCut
from tiering_assets.stream.chain import Chain, read_stream
from tiering_assets.stream.offload_segment import Offloaded, offload_next
from tiering_assets.stream.open_range import TopicGone


def open_chain(stack: Stack, ml_name: str) -> Chain:
    """The open stream of a topic. RefusedError where it has none."""
    read = stack.topics.read(ml_name)
    found = None if read is None else read_stream(stack, ml_name, read[1].stat.czxid)
    if isinstance(found, Chain):
        return found
    raise RefusedError(f"{ml_name} has no open stream. Open one: tierkeeper stream on TOPIC")


def cut_if_streamed(stack: Stack, ml_name: str) -> list[Stored[SegmentOffloaded]]:
    """As cut_stream; nothing for a topic without an open stream."""
    read = stack.topics.read(ml_name)
    found = None if read is None else read_stream(stack, ml_name, read[1].stat.czxid)
    return cut_stream(stack, ml_name) if isinstance(found, Chain) else []


def cut_stream(stack: Stack, ml_name: str) -> list[Stored[SegmentOffloaded]]:
    """Bring everything that is proven now into segments; those that this run made, in order.

    Raises:
        RefusedError: the topic has no open stream, or is gone.
        TierkeeperError: whatever stopped a segment; those before it stay.
    """
    made: list[Stored[SegmentOffloaded]] = []
    try:
        while True:
            chain = open_chain(stack, ml_name)
            found = offload_next(stack, chain, _now(stack))
            if isinstance(found, Offloaded):
                made.append(found.segment)
                if found.is_last:
                    return made
            elif isinstance(found, NothingDue):
                return made
            elif isinstance(found, TopicGone):
                raise RefusedError(f"{ml_name} is gone: {found.why}")
            else:
                stack.tell(f"another run assigned segment {found.number}", topic=ml_name)
    except TierkeeperError:
        stack.book.note_failure()
        raise
    finally:
        stack.book.close_page()


def _now(stack: Stack) -> WhenToCut:
    now = stack.now()
    return WhenToCut(
        size_bytes=stack.settings.stream.segment_bytes,
        rollover=timedelta(seconds=stack.settings.stream.rollover_s),
        oldest_at=now,
        now=now,
        cut=True,
    )
