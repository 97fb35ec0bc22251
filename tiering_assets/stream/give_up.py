"""A person skips the segment that a stream is stuck at.

Owns: only the newest one, and only while it is not offloaded. Its entries are in no segment then;
the copy of the whole ledger covers them once that is sealed.
"""

from __future__ import annotations

from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import SegmentGivenUp
from tiering_assets.resources.errors import RefusedError
from tiering_assets.stream.chain import Chain, Segment


def stuck_segment(chain: Chain) -> Segment:
    """The segment that may be given up. RefusedError where all of the stream are done."""
    if chain.newest is None or chain.newest.is_done:
        raise RefusedError(f"each segment of {chain.ml_name} is offloaded or given up")
    return chain.newest


def give_up_segment(
    stack: Stack, segment: Segment, *, reason: str, author: str
) -> Stored[SegmentGivenUp]:
    """Record that it is given up, or find that it was."""
    record = segment.assigned.record
    key = keys.segment_given_up(record.ml_name, record.stream, record.number)
    given_up = SegmentGivenUp(
        ml_name=record.ml_name,
        stream=record.stream,
        number=record.number,
        ledger_ids=tuple(one.ledger_id for one in record.ranges),
        reason=reason,
        author=author,
        given_up_at=stack.now(),
        writer=stack.writer,
        previous=segment.assigned.sha256,
    )
    try:
        return stack.book.create_or_read(key, given_up)[0]
    finally:
        stack.book.close_page()
