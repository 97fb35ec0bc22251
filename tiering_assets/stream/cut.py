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
from tiering_assets.stream.chain import Chain, stream_of
from tiering_assets.stream.offload_segment import Offloaded, offload_next
from tiering_assets.stream.open_range import TopicGone


def open_chain(stack: Stack, ml_name: str) -> Chain:
    """The open stream of a topic. RefusedError where it has none."""
    found = stream_of(stack, ml_name)
    if isinstance(found, Chain):
        return found
    raise RefusedError(f"{ml_name} has no open stream. Open one: tierkeeper stream on TOPIC")


def by_hand(stack: Stack) -> WhenToCut:
    """Now, whatever the age; in segments of the size that the settings say."""
    now = stack.now()
    return WhenToCut(
        size_bytes=stack.settings.stream.segment_bytes,
        rollover=timedelta(seconds=stack.settings.stream.rollover_s),
        oldest_at=now,
        now=now,
        cut=True,
    )


def cut_if_streamed(stack: Stack, ml_name: str) -> list[Stored[SegmentOffloaded]]:
    """As cut_stream; nothing for a topic without an open stream."""
    found = stream_of(stack, ml_name)
    return _cut(stack, found) if isinstance(found, Chain) else []


def cut_stream(stack: Stack, ml_name: str) -> list[Stored[SegmentOffloaded]]:
    """Bring everything that is proven now into segments; those that this run made, in order.

    Raises:
        RefusedError: the topic has no open stream, or is gone.
        TierkeeperError: whatever stopped a segment; those before it stay.
    """
    return _cut(stack, open_chain(stack, ml_name))


def _cut(stack: Stack, chain: Chain) -> list[Stored[SegmentOffloaded]]:
    made: list[Stored[SegmentOffloaded]] = []
    ml_name = chain.ml_name
    try:
        while True:
            found = offload_next(stack, chain, by_hand(stack))
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
            chain = open_chain(stack, ml_name)
    except TierkeeperError:
        stack.book.note_failure()
        raise
    finally:
        stack.book.close_page()
