"""Records of streaming (PIP-76) outside the broker: a topic's stream and its segments.

Owns: a segment is assigned by one record, which never changes; everything that happens to it later
names that record, by a chain of digests: opened -> assigned -> assigned of the next one, and
assigned -> attempt -> offloaded. A segment's state is computed from what lies beside it. None of
these permits the release of a bookie copy.

docs/records.md explains their fields, models.py has the rules of every record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal
from uuid import UUID

from pydantic import AwareDatetime, PositiveInt

from tiering_assets.offload_format.digests import DigestKind
from tiering_assets.records.scrub_model import BlockFacts, ObjectFacts, Signature, SuiteResult
from tiering_assets.records.writer import Writer

Trigger = Literal["size", "time", "manual"]
Beginning = Literal["open-ledger"]
Stage = Literal["copy", "verify"]
Proof = Literal["closed", "newest ensemble", "last add confirmed", "broker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOpened:
    """Streaming was switched on for a topic as it is in its node of `ml_czxid`.

    `stream` is its name in the keys of its records. It begins with entry `first_entry_id` of
    ledger `first_ledger_id`, which may not be written yet. That is the ledger which the topic then
    wrote to: sealed ones go the way of whole ledgers.
    """

    kind: ClassVar[str] = "tierkeeper/stream-opened/1"
    ml_name: str
    ml_czxid: int
    stream: str
    first_ledger_id: int
    first_entry_id: int
    begins: Beginning
    author: str
    opened_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamClosed:
    """A stream gets no more segments: it stands where the assignment of the next one would.

    `segments` counts those before it. `previous` is the newest assignment, or the opening.
    """

    kind: ClassVar[str] = "tierkeeper/stream-closed/1"
    ml_name: str
    stream: str
    segments: int
    reason: str
    author: str
    closed_at: AwareDatetime
    writer: Writer
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedRange:
    """Entries of one ledger in a segment, both ends included, and why they are known to stay.

    `bytes_before` are the payload bytes of all entries before the first, `bytes_upto` those with
    the last one. `bound_entry_id` was proven by `bound_by` from metadata of that version.
    """

    ledger_id: int
    first_entry_id: int
    last_entry_id: int
    bytes_before: int
    bytes_upto: int
    bound_by: Proof
    bound_entry_id: int
    metadata_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRange:
    """From one position to another, which is not part of it: nothing of it is in the stream."""

    from_ledger_id: int
    from_entry_id: int
    to_ledger_id: int
    to_entry_id: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentAssigned:
    """The commit point of a segment: its entries are these for ever, whoever copies them.

    Segments of a stream are numbered from 1 without gaps. `previous` is the assignment of the one
    before, or the stream's opening. `skipped` lies before its first entry.
    """

    kind: ClassVar[str] = "tierkeeper/segment-assigned/1"
    ml_name: str
    ml_czxid: int
    stream: str
    number: PositiveInt
    ranges: tuple[AssignedRange, ...]
    trigger: Trigger
    assigned_at: AwareDatetime
    writer: Writer
    previous: str
    skipped: SkippedRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentAttempt:
    """Written before the first byte is sent, so that everything an attempt leaves can be found.

    `previous` is the segment's assignment.
    """

    kind: ClassVar[str] = "tierkeeper/segment-attempt/1"
    ml_name: str
    stream: str
    number: PositiveInt
    ledger_ids: tuple[int, ...]
    uid: UUID
    bucket: str
    data_key: str
    index_key: str
    block_bytes: int
    blocks: int
    object_bytes: int
    started_at: AwareDatetime
    writer: Writer
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFailed:
    """An attempt ended badly, and is never gone on with. `previous` is the attempt."""

    kind: ClassVar[str] = "tierkeeper/segment-failed/1"
    ml_name: str
    stream: str
    number: PositiveInt
    ledger_ids: tuple[int, ...]
    uid: UUID
    stage: Stage
    error: str
    error_class: str
    failed_at: AwareDatetime
    writer: Writer
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedLedger:
    """What the objects hold of one ledger, as it was read back.

    `info_hex` is the LedgerInfo in the index.
    """

    ledger_id: int
    first_entry_id: int
    last_entry_id: int
    bytes_before: int
    bytes_upto: int
    info_hex: str
    blocks: tuple[BlockFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOffloaded:
    """The certificate of a segment: every byte was read back and equals what the bookies served.

    Digests are as those of Certificate. `previous` is the attempt, `assigned_sha256` what it did.
    """

    kind: ClassVar[str] = "tierkeeper/segment-offloaded/1"
    ml_name: str
    ml_czxid: int
    stream: str
    number: PositiveInt
    uid: UUID
    bucket: str
    entries: int
    payload_bytes: int
    data: ObjectFacts
    index: ObjectFacts
    ledgers: tuple[CertifiedLedger, ...]
    suites: tuple[SuiteResult, ...]
    offloaded_at: AwareDatetime
    seconds: float
    writer: Writer
    assigned_sha256: str
    previous: str
    block_digest: DigestKind
    signature: Signature | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentGivenUp:
    """A person skips a segment that cannot be copied: its entries are in no segment.

    `previous` is its assignment.
    """

    kind: ClassVar[str] = "tierkeeper/segment-given-up/1"
    ml_name: str
    stream: str
    number: PositiveInt
    ledger_ids: tuple[int, ...]
    reason: str
    author: str
    given_up_at: AwareDatetime
    writer: Writer
    previous: str


StreamRecord = (
    StreamOpened
    | StreamClosed
    | SegmentAssigned
    | SegmentAttempt
    | SegmentFailed
    | SegmentOffloaded
    | SegmentGivenUp
)
