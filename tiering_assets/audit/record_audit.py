"""One record by itself: are these bytes a record, unchanged, and the one that its key says?

Owns: every byte of a record counts. Its bytes must be the canonical ones, its own digest must fit,
its schema must be known, its ledger and attempt must be those of its key, and its time must not be
later than the store says that it was written. A record that fails is a finding, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from tiering_assets.audit.audit_findings import About, AuditFinding, FindingKind
from tiering_assets.audit.streams.stream_place import (
    StreamPlace,
    parse_stream_key,
    said_by,
    segment_name,
)
from tiering_assets.records.bucket_models import DayBookPage
from tiering_assets.records.codec import decode_record, encode_record, schemas_of
from tiering_assets.records.keys import page_number, topic_hash
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    LedgerFailure,
    Outcome,
    Publication,
    Quarantine,
    Record,
    Release,
    ReleaseIntent,
)
from tiering_assets.records.signature import DIGEST, record_digest
from tiering_assets.records.stream_models import (
    SegmentAssigned,
    SegmentAttempt,
    SegmentFailed,
    SegmentGivenUp,
    SegmentOffloaded,
    StreamClosed,
    StreamOpened,
)
from tiering_assets.records.sweep_models import ForgetPlan, Removal
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.records import decode_record as decode_bytes
from tiering_assets.resources.object_store.records import encode_record as encode_bytes

_UUID = r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
_OF_ATTEMPT: Final = re.compile(rf"(\w+)/(0|[1-9][0-9]{{0,18}})/{_UUID}(\.intent)?\.json")
_OF_TOPIC: Final = re.compile(r"publications/([0-9a-f]{32})/[0-9]{10}\.json")
_OF_LEDGER: Final = re.compile(r"failures/(0|[1-9][0-9]{0,18})\.json")
_OF_PLAN: Final = re.compile(r"forget-plans/([0-9a-f]{64})\.json")
_OF_PAGE: Final = re.compile(r"day-book/[0-9]{19}\.json")
_FOLDERS: Final[Mapping[tuple[str, bool], type[Record]]] = {
    ("attempts", False): Attempt,
    ("certificates", False): Certificate,
    ("quarantines", False): Quarantine,
    ("outcomes", False): Outcome,
    ("releases", True): ReleaseIntent,
    ("releases", False): Release,
    ("removals", False): Removal,
}
FOLDERS: Final = (*dict.fromkeys(folder for folder, _intent in _FOLDERS), "publications")
"""The chain's records. Of others an audit judges failures, forget plans, pages of the day book and
streams, and not claims, holds, and so on."""

_TIMES: Final[Mapping[type[Record], Callable[[Any], datetime]]] = {
    Attempt: lambda record: record.started_at,
    Certificate: lambda record: record.verified_at,
    Quarantine: lambda record: record.found_at,
    Outcome: lambda record: record.decided_at,
    Publication: lambda record: record.confirmed_at,
    ReleaseIntent: lambda record: record.intended_at,
    Release: lambda record: record.released_at,
    Removal: lambda record: record.seen_again_at,
    ForgetPlan: lambda record: record.planned_at,
    LedgerFailure: lambda record: record.last_at,
    DayBookPage: lambda record: record.written_at,
    StreamOpened: lambda record: record.opened_at,
    StreamClosed: lambda record: record.closed_at,
    SegmentAssigned: lambda record: record.assigned_at,
    SegmentAttempt: lambda record: record.started_at,
    SegmentFailed: lambda record: record.failed_at,
    SegmentOffloaded: lambda record: record.offloaded_at,
    SegmentGivenUp: lambda record: record.given_up_at,
}


@dataclass(frozen=True, slots=True)
class KeyMeaning:
    """What a key says; `topic` is a publication's topic hash, `digest` the one of a plan.

    `page` is the number of a page of the day book, `stream` the place of a record of a stream.
    """

    record_type: type[Record]
    about: About
    topic: str | None = None
    digest: str | None = None
    page: int | None = None
    stream: StreamPlace | None = None

    @property
    def record_types(self) -> tuple[type[Record], ...]:
        """What may lie there: more than one where a stream goes on or ends."""
        return (self.record_type,) if self.stream is None else self.stream.record_types


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """A record that is what its key says. `key` is relative to the instance's prefix."""

    key: str
    record: Any
    body: Mapping[str, Any]
    sha256: str
    stored_at: datetime


def parse_place(key: str) -> KeyMeaning | None:
    """What a key below the instance's prefix names; None for one of no such form."""
    match = _OF_ATTEMPT.fullmatch(key)
    if match is not None:
        kind = _FOLDERS.get((match[1], match[4] is not None))
        return None if kind is None else KeyMeaning(kind, About(int(match[2]), UUID(match[3])))
    match = _OF_LEDGER.fullmatch(key)
    if match is not None:
        return KeyMeaning(LedgerFailure, About(int(match[1]), None))
    match = _OF_PLAN.fullmatch(key)
    if match is not None:
        return KeyMeaning(ForgetPlan, About(None, None), digest=match[1])
    if _OF_PAGE.fullmatch(key) is not None:
        return KeyMeaning(DayBookPage, About(None, None), page=page_number(key))
    stream = parse_stream_key(key)
    if stream is not None:
        about = About(None, None, segment_name(stream.stream, stream.number))
        return KeyMeaning(stream.record_types[0], about, stream=stream)
    match = _OF_TOPIC.fullmatch(key)
    return None if match is None else KeyMeaning(Publication, About(None, None), match[1])


def judge_record(
    key: str, body: bytes, *, stored_at: datetime, skew: timedelta
) -> tuple[ReadRecord | None, list[AuditFinding]]:
    """The record, unless it is not what its key says, and what is wrong with it."""
    place = parse_place(key)
    if place is None:
        said = About(None, None).finding(
            FindingKind.RECORD_MISPLACED, key, "key", "one of a record's", "another"
        )
        return None, [said]
    about, kind = place.about, place.record_type.kind
    try:
        found = decode_bytes(body, key=key)
    except FormatError as error:
        return None, [
            about.finding(FindingKind.RECORD_DAMAGED, key, "bytes", "a JSON record", error)
        ]
    digest = record_digest(found)
    if found.get(DIGEST) != digest:
        have = str(found.get(DIGEST))[:80]
        return None, [about.finding(FindingKind.RECORD_DAMAGED, key, "digest", digest, have)]
    if encode_bytes(found) != body:
        said = about.finding(
            FindingKind.RECORD_DAMAGED, key, "bytes", "canonical", "other spelling"
        )
        return None, [said]
    known = (one for one in place.record_types if found["schema"] in schemas_of(one))
    record_type = next(known, None)
    if record_type is None:
        schema = str(found["schema"])[:80]
        return None, [about.finding(FindingKind.SCHEMA_UNKNOWN, key, "schema", kind, schema)]
    try:
        record = decode_record(record_type, found, key=key)
    except FormatError as error:
        return None, [about.finding(FindingKind.RECORD_DAMAGED, key, "fields", kind, error)]
    strayed = _strayed(place, key, record)
    if strayed is not None:
        return None, [strayed]
    read = ReadRecord(
        key=key,
        record=record,
        body=found,
        sha256=sha256(body).hexdigest(),
        stored_at=stored_at,
    )
    at = _TIMES[record_type](record)
    if at > stored_at + skew:
        return read, [
            about.finding(
                FindingKind.RECORD_IN_FUTURE,
                key,
                "time",
                f"at most {stored_at.isoformat()}, when the store got it",
                at.isoformat(),
            )
        ]
    return read, []


def _strayed(place: KeyMeaning, key: str, record: Any) -> AuditFinding | None:
    if place.digest is not None:
        expected, found = place.digest, record_digest(encode_record(record))
    elif place.topic is not None:
        expected, found = place.topic, topic_hash(record.ml_name)
    elif place.page is not None:
        expected, found = f"page {place.page}", f"page {record.number}"
    elif place.stream is not None:
        expected, found = place.stream.meant, said_by(record, place.stream)
    elif place.about.uid is None:
        expected, found = f"ledger {place.about.ledger_id}", f"ledger {record.ledger_id}"
    else:
        facts = getattr(record, "ledger", record)
        expected = f"ledger {place.about.ledger_id}, attempt {place.about.uid}"
        found = f"ledger {facts.ledger_id}, attempt {record.uid}"
    if expected == found:
        return None
    what = "topic" if place.topic is not None else "names"
    return place.about.finding(FindingKind.RECORD_MISPLACED, key, what, expected, found)
