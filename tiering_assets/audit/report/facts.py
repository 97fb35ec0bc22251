"""What an audit saw, found and went by: the facts of a report, all that it stands on. Pure.

Owns: nothing that a reader is shown comes from elsewhere. Each attempt is one line: its records by
digest, its objects as the store had them, and a verdict that follows from the findings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal
from uuid import UUID

from pydantic import AwareDatetime

from tiering_assets.audit.audit_findings import AuditFinding, AuditReport
from tiering_assets.audit.audit_sights import AttemptSeen, ObjectSeen, RecordSeen

SCHEMA: Final = "tierkeeper/audit-report/1"
_INTENT: Final = ".intent"


class LedgerVerdict(StrEnum):
    """EQUAL: both objects are as certified. GONE: a record says why they may be missing.

    NOTHING: no object is asked of it, as it is under way or was given up.
    """

    EQUAL = "equal"
    FINDINGS = "findings"
    GONE = "gone"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFor:
    """What to audit. `ledger_ids` are those that topics and namespaces meant, too."""

    everything: bool = False
    ledger_ids: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationFact:
    key: str
    sha256: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """`records` maps a folder's name (`releases.intent` for intents) to the record's SHA-256.

    It is None where the record cannot be read. Object sizes are None where no object is.
    """

    ledger_id: int
    uid: UUID
    topic: str
    verdict: LedgerVerdict
    records: dict[str, str | None]
    objects: tuple[ObjectSeen, ...]
    bytes_read: int
    signed_by: str | None

    @property
    def pair(self) -> tuple[int, UUID]:
        return self.ledger_id, self.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFacts:
    """`other_records` are failures, forget plans and pages of the day book. Of streams it has the
    findings alone.

    `other_ledgers` have no attempt here.

    `forgotten` are attempts that a recorded plan takes out of the audit.
    """

    schema: Literal["tierkeeper/audit-report/1"]
    instance: str
    bucket: str
    made_at: AwareDatetime
    tool_version: str
    asked: AskedFor
    deep: bool
    in_flight_s: float
    public_keys: tuple[str, ...]
    forgotten: int
    other_records: int
    other_ledgers: int
    publications: tuple[PublicationFact, ...]
    findings: tuple[AuditFinding, ...]
    ledgers: tuple[AttemptFacts, ...]


def facts_of(
    report: AuditReport, asked: AskedFor, *, tool_version: str, in_flight_s: float
) -> AuditFacts:
    sights = report.sights
    wrong = pairs_of(report.findings)
    lines = [_line(seen, wrong) for seen in sights.attempts]
    published = sorted(sights.publications, key=lambda one: one.key)
    own = sum(len(one.records) for one in sights.attempts) + len(published)
    return AuditFacts(
        schema=SCHEMA,
        instance=report.instance,
        bucket=sights.bucket,
        made_at=sights.began_at,
        tool_version=tool_version,
        asked=asked,
        deep=report.deep,
        in_flight_s=in_flight_s,
        public_keys=sights.key_ids,
        forgotten=report.forgotten,
        other_records=report.records - own - report.stream_records,
        other_ledgers=report.ledgers - len({one.ledger_id for one in lines}),
        publications=tuple(
            PublicationFact(key=one.key, sha256=one.sha256, topic=one.topic) for one in published
        ),
        findings=tuple(report.findings),
        ledgers=tuple(sorted(lines, key=lambda one: one.pair)),
    )


def pairs_of(findings: Iterable[AuditFinding]) -> set[tuple[int, UUID]]:
    """Attempts that have a finding."""
    return {
        (one.ledger_id, one.uid)
        for one in findings
        if one.ledger_id is not None and one.uid is not None
    }


def verdict_of(objects: Iterable[ObjectSeen], *, findings: bool) -> LedgerVerdict:
    if findings:
        return LedgerVerdict.FINDINGS
    there = [one.size is not None for one in objects]
    if not there:
        return LedgerVerdict.NOTHING
    return LedgerVerdict.EQUAL if all(there) else LedgerVerdict.GONE


def record_name(key: str) -> str:
    """`releases/4711/<uuid>.intent.json` -> `releases.intent`"""
    return key.partition("/")[0] + (_INTENT if key.endswith(f"{_INTENT}.json") else "")


def record_key(name: str, ledger_id: int, uid: UUID) -> str:
    """The key that record_name() made this name of."""
    folder, intent, _rest = name.partition(_INTENT)
    return f"{folder}/{ledger_id}/{uid}{intent}.json"


def digests_of(records: Iterable[RecordSeen]) -> dict[str, str | None]:
    return {record_name(one.key): one.sha256 for one in records}


def _line(seen: AttemptSeen, wrong: set[tuple[int, UUID]]) -> AttemptFacts:
    return AttemptFacts(
        ledger_id=seen.ledger_id,
        uid=seen.uid,
        topic=seen.topic,
        verdict=verdict_of(seen.objects, findings=(seen.ledger_id, seen.uid) in wrong),
        records=digests_of(seen.records),
        objects=seen.objects,
        bytes_read=seen.bytes_read,
        signed_by=seen.signed_by,
    )
