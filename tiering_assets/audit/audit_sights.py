"""What an audit saw of each attempt, to be counted by topic and told in a report. Pure.

Owns: what lies there, as it was found: digests of records, heads of objects. Whether it is right is
a matter of findings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSeen:
    """`key` is relative to the instance's prefix; no digest where nothing readable lies there."""

    key: str
    sha256: str | None
    stored_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSeen:
    """A certified object as the store has it now; all but the key are None where it is not."""

    key: str
    size: int | None = None
    etag: str | None = None
    version_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSeen:
    """`removal` is the key of the record by which its objects may be missing.

    `signed_by` is the accepted key whose signature of the certificate is good.
    """

    ledger_id: int
    uid: UUID
    topic: str
    records: tuple[RecordSeen, ...]
    objects: tuple[ObjectSeen, ...] = ()
    bytes_read: int = 0
    removal: str | None = None
    signed_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationSeen:
    key: str
    sha256: str
    topic: str
    stored_at: datetime


@dataclass(slots=True, kw_only=True)
class Sights:
    """All of one audit. `began_at` is by the store's clock, before anything was listed.

    `forgotten` maps attempts whose records may be gone to the plans that say so.
    """

    bucket: str
    began_at: datetime
    key_ids: tuple[str, ...] = ()
    attempts: list[AttemptSeen] = field(default_factory=list)
    publications: list[PublicationSeen] = field(default_factory=list)
    forgotten: dict[tuple[int, UUID], str] = field(default_factory=dict)
