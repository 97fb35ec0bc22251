"""What of a report's facts is no longer so, each difference by ledger, key, expected and found.
Pure.

Owns: a fact is what lay in the bucket when the report was begun. What came since is no difference;
what was there before and stands in no fact is one. An object that a record accounts for is told as
gone, and nothing else is excused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol
from uuid import UUID

from tiering_assets.audit.audit_findings import AuditFinding, AuditReport, FindingKind
from tiering_assets.audit.audit_sights import AttemptSeen, ObjectSeen, PublicationSeen, RecordSeen
from tiering_assets.audit.report.facts import (
    AttemptFacts,
    AuditFacts,
    PublicationFact,
    digests_of,
    record_key,
    record_name,
)
from tiering_assets.records import keys

_STAMP: Final = timedelta(seconds=2)  # stores date objects by whole seconds
_OF_BYTES: Final = frozenset({FindingKind.BLOCK_DIFFERS, FindingKind.INDEX_DIFFERS})
NOTHING: Final = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    ledger_id: int | None
    key: str
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        ledger = "-" if self.ledger_id is None else str(self.ledger_id)
        return (
            f"ledger {ledger}, {self.key}: {self.what}: expected {self.expected}, "
            f"found {self.found}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneSince:
    """`record` is the key of the record that accounts for it."""

    ledger_id: int
    key: str
    record: str

    def __str__(self) -> str:
        return f"ledger {self.ledger_id}, {self.key}: gone since, by record {self.record}"


@dataclass(slots=True)
class Compared:
    """`newer` are attempts that the report is too old to know."""

    differences: list[Difference] = field(default_factory=list)
    gone: list[GoneSince] = field(default_factory=list)
    newer: int = 0


class BucketNow(Protocol):
    """What an audit of the same ledgers did not look at."""

    def object_now(self, key: str) -> ObjectSeen: ...

    def publication_now(self, key: str) -> PublicationSeen | None: ...

    def why_gone(self, ledger_id: int, uid: UUID, key: str) -> str | None:
        """The key of the record that says so."""


def compare(then: AuditFacts, now: AuditReport, bucket: BucketNow) -> Compared:
    return _Comparison(then, now, bucket).run()


class _Comparison:
    def __init__(self, then: AuditFacts, now: AuditReport, bucket: BucketNow) -> None:
        self._then, self._now, self._bucket = then, now, bucket
        self._since = then.made_at - _STAMP
        self._same_keys = then.public_keys == now.sights.key_ids
        self._said = Compared()

    def run(self) -> Compared:
        seen = {(one.ledger_id, one.uid): one for one in self._now.sights.attempts}
        for line in self._then.ledgers:
            self._attempt(line, seen.pop(line.pair, None))
        for one in seen.values():
            self._unknown(one)
        self._publications()
        self._findings(newer=set(seen))
        return self._said

    def _attempt(self, line: AttemptFacts, seen: AttemptSeen | None) -> None:
        plan = self._now.sights.forgotten.get(line.pair)
        if seen is None and plan is not None:
            key = keys.attempt(line.ledger_id, line.uid)
            self._said.gone.append(GoneSince(ledger_id=line.ledger_id, key=key, record=plan))
        else:
            self._records(line, () if seen is None else seen.records)
        if seen is not None:
            self._of_line(line, seen)
        looked = {} if seen is None else {one.key: one for one in seen.objects}
        for was in line.objects:
            self._object(line, was, looked.get(was.key) or self._bucket.object_now(was.key), plan)

    def _of_line(self, line: AttemptFacts, seen: AttemptSeen) -> None:
        key = keys.attempt(line.ledger_id, line.uid)
        told: list[tuple[str, object, object]] = [("topic", line.topic, seen.topic)]
        if self._same_keys:
            told.append(("signed by", line.signed_by, seen.signed_by))
        if self._then.deep and self._now.deep:
            told.append(("bytes read", line.bytes_read, seen.bytes_read))
        if {one.key for one in seen.objects} - {one.key for one in line.objects}:
            told.append(("objects", _named(line.objects), _named(seen.objects)))
        for what, expected, found in told:
            self._differ(line.ledger_id, key, what, expected, found)

    def _records(self, line: AttemptFacts, records: Iterable[RecordSeen]) -> None:
        now = digests_of(records)
        for name, digest in sorted(line.records.items()):
            key = record_key(name, line.ledger_id, line.uid)
            found = _digest(now[name]) if name in now else NOTHING
            self._differ(line.ledger_id, key, "SHA-256 of the record", _digest(digest), found)
        for one in records:
            if record_name(one.key) not in line.records:
                self._older(line.ledger_id, one)

    def _object(
        self, line: AttemptFacts, was: ObjectSeen, found: ObjectSeen, plan: str | None
    ) -> None:
        if was.size is not None and found.size is None:
            record = plan or self._bucket.why_gone(line.ledger_id, line.uid, was.key)
            if record is not None:
                gone = GoneSince(ledger_id=line.ledger_id, key=was.key, record=record)
                self._said.gone.append(gone)
                return
        if (was.size is None) != (found.size is None):
            have = [NOTHING if one.size is None else f"{one.size} bytes" for one in (was, found)]
            self._differ(line.ledger_id, was.key, "object", *have)
            return
        for what, expected, there in (
            ("size", was.size, found.size),
            ("ETag", was.etag, found.etag),
            ("version id", was.version_id, found.version_id),
        ):
            self._differ(line.ledger_id, was.key, what, expected, there)

    def _unknown(self, one: AttemptSeen) -> None:
        before = len(self._said.differences)
        for record in one.records:
            self._older(one.ledger_id, record)
        self._said.newer += len(self._said.differences) == before

    def _older(self, ledger_id: int | None, one: RecordSeen | PublicationSeen) -> None:
        """What was written before the report was begun stands in it."""
        if one.stored_at is not None and one.stored_at < self._since:
            found = f"one of {one.stored_at.isoformat()}"
            self._differ(ledger_id, one.key, "record", f"{NOTHING}, as the report has none", found)

    def _publications(self) -> None:
        now = {one.key: one for one in self._now.sights.publications}
        for was in self._then.publications:
            found = now.pop(was.key, None) or self._bucket.publication_now(was.key)
            for what, expected, there in _of_publication(was, found):
                self._differ(None, was.key, what, expected, there)
        for one in now.values():
            self._older(None, one)

    def _findings(self, *, newer: set[tuple[int, UUID]]) -> None:
        """A difference that is told already says more than the finding that follows from it."""
        told = {one.key for one in self._said.differences} | {one.key for one in self._said.gone}
        then, now = {*self._then.findings}, {*self._now.findings}
        for one in sorted(now - then, key=str):
            of_new = one.ledger_id is not None and (one.ledger_id, one.uid) in newer
            if one.key not in told and not of_new:
                self._differ(one.ledger_id, one.key, one.what, one.expected, one.found)
        for one in sorted(then - now, key=str):
            if one.key not in told and self._judged_alike(one):
                said = f"{one.kind}: {one.what}: {one.found}"
                self._differ(one.ledger_id, one.key, "finding", said, "no such finding")

    def _judged_alike(self, one: AuditFinding) -> bool:
        """Whether this audit would have found it again."""
        if one.kind is FindingKind.UNSIGNED:
            return self._same_keys
        return self._now.deep or one.kind not in _OF_BYTES

    def _differ(
        self, ledger_id: int | None, key: str, what: str, expected: object, found: object
    ) -> None:
        if expected != found:
            self._said.differences.append(
                Difference(
                    ledger_id=ledger_id,
                    key=key,
                    what=what,
                    expected=str(expected),
                    found=str(found),
                )
            )


def _digest(digest: str | None) -> str:
    return "no readable record" if digest is None else digest


def _named(objects: Iterable[ObjectSeen]) -> str:
    return ", ".join(one.key for one in objects) or NOTHING


def _of_publication(
    was: PublicationFact, found: PublicationSeen | None
) -> Iterator[tuple[str, str, str]]:
    if found is None:
        yield "SHA-256 of the record", was.sha256, NOTHING
    else:
        yield "SHA-256 of the record", was.sha256, found.sha256
        yield "topic", was.topic, found.topic
