"""What a topic's stream says of itself: its newest segment, what became of it, where it goes on.

Owns: reading, by one listing and one record, however long the stream. Of a chain that cannot be
read nothing follows: it is an error, and no stream without segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import (
    SegmentAssigned,
    StreamClosed,
    StreamOpened,
)
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.ledger_info import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment and what lies beside its assignment. An attempt that did not fail may go on."""

    assigned: Stored[SegmentAssigned]
    offloaded: bool
    given_up: bool
    attempts: frozenset[UUID]
    failed: frozenset[UUID]

    @property
    def number(self) -> int:
        return self.assigned.record.number

    @property
    def is_done(self) -> bool:
        """Whether the next one may be assigned."""
        return self.offloaded or self.given_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A stream up to its newest segment. `tip` is the SHA-256 that its next link names.

    `start` is where the next segment begins, `bytes_before` the payload bytes of that ledger before
    it.
    """

    ml_name: str
    ml_czxid: int
    stream: str
    newest: Segment | None
    tip: str
    start: Position
    bytes_before: int

    @property
    def next_number(self) -> int:
        return 1 if self.newest is None else self.newest.number + 1


def read_stream(stack: Stack, ml_name: str, ml_czxid: int) -> Chain | Stored[StreamClosed] | None:
    """The newest stream of a topic as it is in its node of that creation id, or its end.

    None where it never had one.

    Raises:
        FormatError: records of it are missing or damaged, or are another stream's.
    """
    parts = (
        keys.stream_and_rest(key)
        for key, _one in stack.book.listed(keys.streams_of(ml_name, ml_czxid))
    )
    for (stream, number), some in groupby(parts, lambda p: (p[0], keys.segment_number(p[1]))):
        if number is None:
            return _begun(stack, ml_name, stream)
        link = _link(stack, ml_name, stream, number)
        if isinstance(link.record, StreamClosed):
            return link
        return _chain(_segment(link, [rest for _stream, rest in some]))
    return None


def stream_of(stack: Stack, ml_name: str) -> Chain | Stored[StreamClosed] | None:
    """The same of a topic as it is in its node now; None for one without a node, too."""
    read = stack.topics.read(ml_name)
    return None if read is None else read_stream(stack, ml_name, read[1].stat.czxid)


def _begun(stack: Stack, ml_name: str, stream: str) -> Chain:
    """A stream without a segment."""
    opened = stack.book.require(StreamOpened, keys.stream_opened(ml_name, stream))
    record = opened.record
    return Chain(
        ml_name=ml_name,
        ml_czxid=record.ml_czxid,
        stream=stream,
        newest=None,
        tip=opened.sha256,
        start=Position(record.first_ledger_id, record.first_entry_id),
        bytes_before=0,
    )


def _chain(segment: Segment) -> Chain:
    record = segment.assigned.record
    last = record.ranges[-1]
    return Chain(
        ml_name=record.ml_name,
        ml_czxid=record.ml_czxid,
        stream=record.stream,
        newest=segment,
        tip=segment.assigned.sha256,
        start=Position(last.ledger_id, last.last_entry_id + 1),
        bytes_before=last.bytes_upto,
    )


def _link(stack: Stack, ml_name: str, stream: str, number: int) -> Stored[Any]:
    """An assignment, or the stream's end where that would be."""
    key = keys.stream_link(ml_name, stream, number)
    found = stack.book.require_one_of((SegmentAssigned, StreamClosed), key)
    record = found.record
    of_record = record.segments + 1 if isinstance(record, StreamClosed) else record.number
    said = (record.ml_name, record.stream, of_record)
    if said != (ml_name, stream, number):
        raise FormatError(f"record {key}: expected {(ml_name, stream, number)}, found {said}")
    return found


def _segment(assigned: Stored[SegmentAssigned], names: list[str]) -> Segment:
    return Segment(
        assigned=assigned,
        offloaded=any(name.endswith(keys.OFFLOADED) for name in names),
        given_up=any(name.endswith(keys.GIVEN_UP) for name in names),
        attempts=frozenset(keys.attempts_in(names)),
        failed=frozenset(keys.failed_in(names)),
    )
