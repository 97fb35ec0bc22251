"""What a key below `streams/` says: whose stream, which segment, which attempt. Pure.

Owns: a key has one meaning, and a record must say the same of itself. The record in the place of a
link is an assignment or the stream's end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from tiering_assets.records import keys
from tiering_assets.records.models import Record
from tiering_assets.records.stream_models import (
    SegmentAssigned,
    SegmentAttempt,
    SegmentFailed,
    SegmentGivenUp,
    SegmentOffloaded,
    StreamClosed,
    StreamOpened,
)

_UUID = r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
_KEY: Final = re.compile(
    r"streams/([0-9a-f]{32})/([0-9]{19}\.[0-9]{4})/"
    rf"(?:opened|[0-9]{{10}}\.(?:(link|offloaded|given-up)|(attempts|failed)/{_UUID}))\.json"
)
_TYPES: Final[Mapping[str, tuple[type[Record], ...]]] = {
    "opened": (StreamOpened,),
    "link": (SegmentAssigned, StreamClosed),
    "offloaded": (SegmentOffloaded,),
    "given-up": (SegmentGivenUp,),
    "attempts": (SegmentAttempt,),
    "failed": (SegmentFailed,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlace:
    """`topic` is the hash in the key. `number` is None for the stream's opening; `uid` is that of
    an attempt.
    """

    topic: str
    stream: str
    number: int | None
    uid: UUID | None
    record_types: tuple[type[Record], ...]

    @property
    def prefix(self) -> str:
        """What all keys of the stream begin with."""
        return f"{keys.STREAMS}{self.topic}/{self.stream}/"

    @property
    def meant(self) -> str:
        """What the record must say of itself."""
        czxid = int(self.stream.partition(".")[0])
        return _meant(self.topic, czxid, self.stream, self.number, self.uid)


def parse_stream_key(key: str) -> StreamPlace | None:
    """None for a key of no such form."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    topic, stream, beside, folder, uid = match.groups()
    number = keys.segment_number(keys.stream_and_rest(key)[1])
    return StreamPlace(
        topic=topic,
        stream=stream,
        number=number,
        uid=None if uid is None else UUID(uid),
        record_types=_TYPES[beside or folder or "opened"],
    )


def said_by(record: Any, place: StreamPlace) -> str:
    """What a record says of itself, in the words of `StreamPlace.meant`."""
    ends = isinstance(record, StreamClosed)
    number = record.segments + 1 if ends else getattr(record, "number", None)
    return _meant(
        keys.topic_hash(record.ml_name),
        getattr(record, "ml_czxid", int(place.stream.partition(".")[0])),
        record.stream,
        number,
        None if place.uid is None else record.uid,
    )


def segment_name(stream: str, number: int | None, topic: str = "") -> str:
    """What findings call a segment, or with None its stream."""
    whose = f"stream {stream} of {topic}" if topic else f"stream {stream}"
    return whose if number is None else f"segment {number} of {whose}"


def _meant(topic: str, czxid: int, stream: str, number: int | None, uid: UUID | None) -> str:
    which = "" if number is None else f", segment {number}"
    which += "" if uid is None else f", attempt {uid}"
    return f"topic {topic} of creation id {czxid}, stream {stream}{which}"
