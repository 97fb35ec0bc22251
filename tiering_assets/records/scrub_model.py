"""The record of a look at an attempt's objects; see docs/records.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal
from uuid import UUID

from pydantic import AwareDatetime

from tiering_assets.records.writer import Writer


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
