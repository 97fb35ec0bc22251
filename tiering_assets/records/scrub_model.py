"""The records of looks at an attempt's objects, and what certificates, too, say of objects.

docs/records.md explains them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal
from uuid import UUID

from pydantic import AwareDatetime

from tiering_assets.offload_format.digests import DigestKind
from tiering_assets.records.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFacts:
    """One block: where it lies, and the digests of its bytes and of its verified entries.

    `entries_sha256` is of its record's `block_digest`. `messages` and the publish times
    are as offload_format/message_facts.py has them. Older versions wrote none: no proof uses them.
    """

    part_number: int
    first_entry_id: int
    last_entry_id: int
    offset: int
    block_length: int
    payload_bytes: int
    sha256: str
    entries_sha256: str
    messages: int | None = None
    publish_min_ms: int | None = None
    publish_max_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """One object version exactly as it was proven."""

    key: str
    size: int
    etag: str
    sha256: str
    version_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """Outcome of one expectation suite over the index frame, with its own digest."""

    name: str
    digest: str
    success: bool
    evaluated: int
    successful: int
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Ed25519 over the record's canonical bytes without `signature` and `digest`; see
    signature.py.
    """

    key_id: str
    value: str


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Entries of a ledger, both ends included."""

    first_entry_id: int
    last_entry_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A broker's own copy was found broken, twice in a row; gone once every byte was read well
    again.

    Copies of ours are quarantined instead. `found_by` is the command or job.
    """

    kind: ClassVar[str] = "tierkeeper/damage/1"
    ledger_id: int
    uid: UUID
    ml_name: str | None
    findings: tuple[str, ...]
    found_by: str
    found_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrub:
    """The newest look at an attempt's objects, shallow or deep, whoever wrote them.

    `blocks_read` below `blocks` is a deep one that a budget ended. The next run goes on behind it;
    `entries` and `payload_bytes` count what was read so far. `lost` is empty while the bookie
    copy lives. `previous` is the digest of the certificate, None for objects that a broker wrote.
    """

    kind: ClassVar[str] = "tierkeeper/scrub/1"
    ledger_id: int
    uid: UUID
    ml_name: str
    depth: Literal["shallow", "deep"]
    data_bytes: int
    data_etag: str | None
    data_version_id: str | None
    blocks: int
    blocks_read: int
    entries: int
    payload_bytes: int
    scrubbed_at: AwareDatetime
    seconds: float
    writer: Writer
    findings: tuple[str, ...] = ()
    lost: tuple[EntryRange, ...] = ()
    previous: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCopy:
    """What a broker's own copy is: one deep look read every byte of it, and found nothing wrong.

    It proves less than a certificate, and nothing is released on it. `data.sha256` is over the
    blocks' SHA-256 digests in order. `bookies_compared` says whether bookies still had the ledger:
    then they served the very same entries. `entries_sha256` of the blocks is of `block_digest`.
    """

    kind: ClassVar[str] = "tierkeeper/broker-copy/1"
    ledger_id: int
    uid: UUID
    ml_name: str
    bucket: str
    entries: int
    payload_bytes: int
    data: ObjectFacts
    index: ObjectFacts
    blocks: tuple[BlockFacts, ...]
    block_digest: DigestKind
    bookies_compared: bool
    read_at: AwareDatetime
    writer: Writer
