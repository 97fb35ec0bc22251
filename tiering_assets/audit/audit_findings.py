"""What an audit can find: a closed list, the same one that tools/check_bucket.py has.

Owns: a finding names the record or object by key, what was expected and what is there, and as
closely as records and format allow the ledger, the attempt, the block and the entry. docs/audit.md
says what each kind means and what to do about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from tiering_assets.audit.audit_sights import Sights
from tiering_assets.audit.topic_figures import TopicFigures


class FindingKind(StrEnum):
    RECORD_DAMAGED = "record_damaged"
    SCHEMA_UNKNOWN = "schema_unknown"
    RECORD_MISPLACED = "record_misplaced"
    RECORD_MISSING = "record_missing"
    RECORD_IN_FUTURE = "record_in_future"
    CHAIN_BROKEN = "chain_broken"
    FACTS_DIFFER = "facts_differ"
    CERTIFICATE_INCONSISTENT = "certificate_inconsistent"
    UNSIGNED = "unsigned"
    OUTCOME_CONFLICT = "outcome_conflict"
    RELEASE_BROKEN = "release_broken"
    RELEASE_UNFINISHED = "release_unfinished"
    RELEASED_QUARANTINED = "released_quarantined"
    OBJECT_MISSING = "object_missing"
    OBJECT_DIFFERS = "object_differs"
    INDEX_DIFFERS = "index_differs"
    BLOCK_DIFFERS = "block_differs"
    PAGE_CHAIN_BROKEN = "page_chain_broken"
    CHAIN_MISSING = "chain_missing"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One fault. `block` is a part number; `entry` is the first entry that is surely not as
    certified.
    """

    kind: FindingKind
    ledger_id: int | None
    uid: UUID | None
    key: str
    what: str
    expected: str
    found: str
    block: int | None = None
    entry: int | None = None

    def __str__(self) -> str:
        ledger = "-" if self.ledger_id is None else str(self.ledger_id)
        where = "" if self.block is None else f", block {self.block}"
        where += "" if self.entry is None else f", entry {self.entry}"
        return (
            f"{self.kind}: ledger {ledger}, attempt {self.uid or '-'}, {self.key}{where}: "
            f"{self.what}: expected {self.expected}, found {self.found}"
        )


@dataclass(frozen=True, slots=True)
class About:
    """The attempt that findings are about; makes them. `of` names a segment of a stream instead."""

    ledger_id: int | None
    uid: UUID | None
    of: str = ""

    def finding(
        self,
        kind: FindingKind,
        key: str,
        what: str,
        expected: object,
        found: object,
        *,
        block: int | None = None,
        entry: int | None = None,
    ) -> AuditFinding:
        return AuditFinding(
            kind=kind,
            ledger_id=self.ledger_id,
            uid=self.uid,
            key=key,
            what=f"{self.of}: {what}" if self.of else what,
            expected=str(expected),
            found=str(found),
            block=block,
            entry=entry,
        )


@dataclass(slots=True, kw_only=True)
class AuditReport:
    """What was read, and what is wrong with it. No findings: everything is as it was certified.

    `forgotten` are attempts of ledgers that are gone, by a recorded plan: they are not judged.
    `removed` are those whose ledgers are on record as gone: their objects may be missing.
    `segments` are those of streams; `records` counts their `stream_records`, too.
    `recorded` are copies that are on record as damaged by now. `topics` counts it all by topic, and
    `sights` has what the counts are of.
    """

    instance: str
    deep: bool
    sights: Sights = field(repr=False)
    ledgers: int = 0
    attempts: int = 0
    forgotten: int = 0
    removed: int = 0
    records: int = 0
    objects: int = 0
    segments: int = 0
    stream_records: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    recorded: int = 0
    topics: list[TopicFigures] = field(default_factory=list)
    findings: list[AuditFinding] = field(default_factory=list)
