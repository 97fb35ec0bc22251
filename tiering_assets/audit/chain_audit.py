"""Do the records of one attempt follow from each other? Judged from what lies in the bucket alone.

Owns: attempt -> certificate -> outcome -> publication entry -> release intent -> release, and
outcome -> removal, each naming the digest of the one before it and repeating its facts. A record
that is there but not readable is a finding of record_audit.py, and its links are not judged a
second time here.

What is under way is no fault: a record that only its successor would prove missing is not missed,
and a release may lack its record for `in_flight`, by the store's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tiering_assets.audit.audit_findings import About, AuditFinding, FindingKind
from tiering_assets.audit.record_audit import ReadRecord
from tiering_assets.clean.removal import removal_faults, too_many_gone
from tiering_assets.look.ledger.verification import inconsistencies
from tiering_assets.records import keys
from tiering_assets.records.chain import (
    BrokenLink,
    Link,
    certificate_links,
    decided_links,
    entry_certificate_links,
    entry_links,
    intent_links,
    intent_publication_links,
    outcome_links,
    release_faults,
    release_links,
)
from tiering_assets.records.models import PublishedLedger
from tiering_assets.records.signature import PublicKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptHistory:
    """All readable records of one attempt. `unreadable` are keys where a bad record lies."""

    ledger_id: int
    about: About
    attempt: ReadRecord | None = None
    certificate: ReadRecord | None = None
    quarantine: ReadRecord | None = None
    outcome: ReadRecord | None = None
    published: Sequence[tuple[ReadRecord, PublishedLedger]] = ()
    intent: ReadRecord | None = None
    release: ReadRecord | None = None
    removal: ReadRecord | None = None
    unreadable: frozenset[str] = frozenset()

    @property
    def objects_expected(self) -> bool:
        """Whether both certified objects must be in the bucket: clean-up takes abandoned ones."""
        if self.certificate is None:
            return False
        abandoned = self.outcome is not None and self.outcome.record.outcome == "abandon"
        return not abandoned or bool(self.published) or self.intent is not None

    def why_missed(self, share_max: float) -> str | None:
        """Why objects that are not there are missed; None where they went with their ledger.

        `share_max` is the share of all attempts that may have gone at once.
        """
        if self.removal is None:
            return "no record says that its ledger was removed from its topic"
        if [*_removal(self)]:
            return f"{self.removal.key} does not fit the other records"
        record = self.removal.record
        many = too_many_gone(record.gone, fleet=record.fleet, share_max=share_max)
        return many and f"{self.removal.key} was written for {many}"


def judge_history(
    history: AttemptHistory, *, store_now: datetime, in_flight: timedelta, public_keys: PublicKeys
) -> list[AuditFinding]:
    """Every broken link and contradiction of one attempt."""
    return [
        *_certificate(history, public_keys),
        *_quarantine(history),
        *_outcome(history),
        *_published(history),
        *_intent(history),
        *_release(history, store_now, in_flight),
        *_removal(history),
    ]


def judge_ledger(certificates: Sequence[ReadRecord]) -> list[AuditFinding]:
    """All certificates of one ledger must agree about it, unless it was made again meanwhile."""
    findings = []
    first: dict[int, ReadRecord] = {}
    for read in sorted(certificates, key=lambda one: one.key):
        facts = read.record.ledger
        known = first.setdefault(facts.czxid, read)
        if known.record.ledger != facts:
            findings.append(
                About(facts.ledger_id, read.record.uid).finding(
                    FindingKind.FACTS_DIFFER,
                    read.key,
                    f"ledger, as {known.key} certifies it",
                    known.record.ledger,
                    facts,
                )
            )
    return findings


def _certificate(history: AttemptHistory, public_keys: PublicKeys) -> Iterator[AuditFinding]:
    found, attempt, about = history.certificate, history.attempt, history.about
    if found is None:
        return
    record = found.record
    for said in inconsistencies(record):
        yield about.finding(
            FindingKind.CERTIFICATE_INCONSISTENT, found.key, "certificate", "no contradiction", said
        )
    unsigned = public_keys.refusal(found.body)
    if unsigned is not None:
        yield about.finding(
            FindingKind.UNSIGNED, found.key, "signature", "of an accepted key", unsigned
        )
    if attempt is None:
        yield from _missing(history, keys.attempt(history.ledger_id, record.uid))
        return
    yield from _broken(about, found.key, certificate_links(attempt, found))


def _quarantine(history: AttemptHistory) -> Iterator[AuditFinding]:
    found, about = history.quarantine, history.about
    if found is None or about.uid is None:
        return
    yield from _after_attempt(history, found)
    intent = history.intent
    if intent is not None and found.record.found_at < intent.record.intended_at:
        yield about.finding(
            FindingKind.RELEASED_QUARANTINED,
            intent.key,
            "release of an attempt whose check had failed",
            f"none after {found.record.found_at.isoformat()}",
            f"intended at {intent.record.intended_at.isoformat()}",
        )


def _outcome(history: AttemptHistory) -> Iterator[AuditFinding]:
    found, about = history.outcome, history.about
    if found is None or about.uid is None:
        return
    if found.record.outcome == "abandon":
        yield from _after_attempt(history, found)
    elif history.certificate is None:
        yield from _missing(history, keys.certificate(history.ledger_id, about.uid))
    else:
        yield from _broken(about, found.key, outcome_links(history.certificate, found))


def _after_attempt(history: AttemptHistory, found: ReadRecord) -> Iterator[AuditFinding]:
    """A record that may follow the attempt or its certificate."""
    about, before = history.about, [history.attempt, history.certificate]
    if history.attempt is None and about.uid is not None:
        yield from _missing(history, keys.attempt(history.ledger_id, about.uid))
    digests = [read.sha256 for read in before if read is not None]
    known = not any(one.startswith(("attempts/", "certificates/")) for one in history.unreadable)
    if digests and known and found.record.previous not in digests:
        yield from _link(about, found.key, "previous", " or ".join(digests), found.record.previous)


def _published(history: AttemptHistory) -> Iterator[AuditFinding]:
    about, outcome, certificate = history.about, history.outcome, history.certificate
    for read, entry in history.published:
        if outcome is None:
            yield from _missing(history, keys.outcome(history.ledger_id, entry.uid))
        else:
            yield from _decided(about, outcome, f"{read.key} publishes")
            yield from _broken(about, read.key, entry_links(outcome, entry))
        if certificate is not None:
            yield from _broken(about, read.key, entry_certificate_links(certificate, entry))
            named = ("ml_name", certificate.record.ml_name, read.record.ml_name)
            yield from _differ(about, read.key, named)
        if history.attempt is not None:
            made = ("node_czxid", history.attempt.record.ml_czxid, read.record.node_czxid)
            yield from _differ(about, read.key, made)


def _intent(history: AttemptHistory) -> Iterator[AuditFinding]:
    found, about, certificate = history.intent, history.about, history.certificate
    if found is None or about.uid is None:
        return
    if history.outcome is not None:
        yield from _decided(about, history.outcome, f"{found.key} releases")
    if certificate is None:
        yield from _missing(history, keys.certificate(history.ledger_id, about.uid))
    else:
        yield from _broken(about, found.key, intent_links(certificate, found))
    if history.published:
        yield from _broken(about, found.key, intent_publication_links(history.published, found))
        return
    yield about.finding(
        FindingKind.RECORD_MISSING,
        keys.publications_of(found.record.ml_name),
        f"publication that {found.key} relies on",
        "a record",
        "none",
    )


def _release(
    history: AttemptHistory, store_now: datetime, in_flight: timedelta
) -> Iterator[AuditFinding]:
    found, about, intent = history.release, history.about, history.intent
    if about.uid is None:
        return
    release_key = keys.release(history.ledger_id, about.uid)
    if found is None:
        late = intent is not None and store_now - intent.stored_at >= in_flight
        if intent is not None and late and release_key not in history.unreadable:
            yield about.finding(
                FindingKind.RELEASE_UNFINISHED,
                release_key,
                "release record",
                f"one, {in_flight.total_seconds():g} s after its intent",
                "none",
            )
        return
    if history.unreadable:
        return  # what cannot be read is said already; the rest would only follow from it
    for fault in release_faults(history.certificate, intent, found):
        yield about.finding(FindingKind.RELEASE_BROKEN, found.key, "release", "by the rules", fault)
    if intent is not None:
        facts = (one for one in release_links(intent, found) if one.kind is Link.FACT)
        yield from _broken(about, found.key, facts)


def _removal(history: AttemptHistory) -> Iterator[AuditFinding]:
    found, about = history.removal, history.about
    if found is None or about.uid is None:
        return
    outcome = history.outcome
    if outcome is None:
        yield from _missing(history, keys.outcome(history.ledger_id, about.uid))
    if history.certificate is not None:
        named = ("ml_name", history.certificate.record.ml_name, found.record.ml_name)
        yield from _differ(about, found.key, named)
    for what, expected, said in removal_faults(
        found.record,
        outcome_sha256=None if outcome is None else outcome.sha256,
        published_czxids={read.record.node_czxid for read, _entry in history.published},
    ):
        kind = FindingKind.CHAIN_BROKEN if what.startswith("previous") else FindingKind.FACTS_DIFFER
        yield about.finding(kind, found.key, what, expected, said)


def _missing(history: AttemptHistory, key: str) -> Iterator[AuditFinding]:
    if key not in history.unreadable:
        yield history.about.finding(
            FindingKind.RECORD_MISSING, key, "record that later ones name", "a record", "none"
        )


def _decided(about: About, outcome: ReadRecord, what: str) -> Iterator[AuditFinding]:
    for broken in decided_links(outcome):
        yield about.finding(
            FindingKind.OUTCOME_CONFLICT,
            outcome.key,
            f"outcome of an attempt that {what}",
            broken.expected,
            broken.found,
        )


def _broken(about: About, key: str, links: Iterable[BrokenLink]) -> Iterator[AuditFinding]:
    for one in links:
        kind = FindingKind.FACTS_DIFFER if one.kind is Link.FACT else FindingKind.CHAIN_BROKEN
        yield about.finding(kind, key, one.what, one.expected, one.found)


def _link(about: About, key: str, what: str, expected: str, found: str) -> Iterator[AuditFinding]:
    if expected != found:
        yield about.finding(FindingKind.CHAIN_BROKEN, key, what, expected, found)


def _differ(about: About, key: str, *facts: tuple[str, object, object]) -> Iterator[AuditFinding]:
    for what, expected, found in facts:
        if expected != found:
            yield about.finding(FindingKind.FACTS_DIFFER, key, what, expected, found)
