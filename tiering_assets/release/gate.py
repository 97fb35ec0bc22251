"""When exactly may a bookie copy be deleted? design section 6.3; there is no second place.

Owns: Release only when every condition is positively known to be met, right now. Anything unknown,
missing or different makes the ledger wait, with all reasons. Ensembles and versions are not
compared: autorecovery rewrites those.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from tiering_assets.ground.evidence import lag_elapsed
from tiering_assets.records.models import LedgerFacts

CLOCKS_APART = timedelta(minutes=10)  # a large plan may take so long between its two looks


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectNow:
    """One of the two objects as a HEAD finds it now, compared with its certificate."""

    present: bool
    equals_certificate: bool
    expires: bool = False
    archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEvidence:
    """Everything the gate judges. None means "not there" or "could not be learned".

    `suite_passed` is of all our suites, `suite_findings` says why not. What users' suites say can
    only be `user_findings`, each of which holds the ledger.
    """

    ledger_id: int
    context_uid: UUID | None
    context_complete: bool
    published_uid: UUID | None
    published_at: datetime | None
    publication_stored_at: datetime | None
    store_now: datetime
    certified_uid: UUID | None
    certificate_faults: tuple[str, ...]
    chain_intact: bool
    quarantine: str | None
    suite_passed: bool
    suite_findings: tuple[str, ...]
    user_findings: tuple[str, ...]
    certified_facts: LedgerFacts | None
    facts_now: LedgerFacts | None
    data: ObjectNow | None
    index: ObjectNow | None
    index_agrees: bool
    hold: str | None
    under_replicated: bool | None
    skips_unreadable_ledgers: bool | None
    place_differs: tuple[str, ...] | None
    cannot_read: tuple[str, ...] | None
    never_touched: str | None
    shadows: tuple[str, ...]
    left_alone: str | None


@dataclass(frozen=True, slots=True)
class MayRelease:
    uid: UUID


@dataclass(frozen=True, slots=True)
class NotYet:
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.reasons)


def decide_release(
    evidence: ReleaseEvidence, *, lag: timedelta, now: datetime
) -> MayRelease | NotYet:
    """Return Release only when nothing speaks against it; the lag is judged by the slower clock."""
    uid = evidence.context_uid
    if uid is None or not evidence.context_complete:
        return NotYet(("not published: the topic names no complete offload context",))
    if evidence.certified_uid is None and evidence.published_uid is None:
        return NotYet((_of_a_broker(uid), *_held(evidence)))
    reasons = [
        *_publication(evidence, uid, lag, now),
        *_certificate(evidence, uid),
        *_objects(evidence),
        *_surroundings(evidence),
    ]
    return NotYet(tuple(reasons)) if reasons else MayRelease(uid)


def _of_a_broker(uid: UUID) -> str:
    return (
        f"a broker's own offloader made the copy {uid}, or all records of it are gone: nothing proves "
        f"it, so we delete nothing for it; the broker does, after its own deletion lag"
    )


def _held(evidence: ReleaseEvidence) -> list[str]:
    return [] if evidence.hold is None else [f"under a release hold: {evidence.hold}"]


def _publication(evidence: ReleaseEvidence, uid: UUID, lag: timedelta, now: datetime) -> list[str]:
    published_at, stored_at = evidence.published_at, evidence.publication_stored_at
    if evidence.published_uid != uid or published_at is None or stored_at is None:
        return ["publication of this attempt is not confirmed"]
    store_now = evidence.store_now
    if lag_elapsed(
        lag=lag, recorded_at=published_at, now=now, stored_at=stored_at, store_now=store_now
    ):
        return []
    due = max(published_at, stored_at) + lag
    return [
        f"deletion lag has not elapsed: due after {due:%Y-%m-%d %H:%M:%S} UTC"
        + _clocks(now - store_now)
    ]


def _clocks(off: timedelta) -> str:
    """A clock that stands wrong must be named: the ledger may wait for nothing else."""
    if abs(off) <= CLOCKS_APART:
        return ""
    way = "ahead of" if off > timedelta(0) else "behind"
    return (
        f" by both clocks, and this machine's is {abs(off).total_seconds():.0f} s {way} the store's; "
        f"set the one that is wrong"
    )


def _certificate(evidence: ReleaseEvidence, uid: UUID) -> list[str]:
    reasons = []
    if evidence.certified_uid != uid:
        reasons.append("this attempt has no certificate")
    elif not evidence.chain_intact:
        reasons.append("the chain of records behind the certificate is broken")
    reasons.extend(evidence.certificate_faults)
    if evidence.quarantine is not None:
        reasons.append(f"a check of this attempt failed: {evidence.quarantine}")
    reasons.extend(evidence.suite_findings)
    if not evidence.suite_passed and not evidence.suite_findings:
        reasons.append("the expectation suites do not pass now")
    if evidence.facts_now is None:
        reasons.append("the ledger's BookKeeper metadata cannot be read")
    elif evidence.facts_now != evidence.certified_facts:
        reasons.append(
            f"the ledger differs from the certified one: {evidence.facts_now} "
            f"instead of {evidence.certified_facts}"
        )
    return reasons


def _objects(evidence: ReleaseEvidence) -> list[str]:
    reasons = []
    for name, found in (("data", evidence.data), ("index", evidence.index)):
        if found is None:
            reasons.append(f"the {name} object could not be looked at")
        elif not found.present:
            reasons.append(f"the {name} object is gone")
        elif not found.equals_certificate:
            reasons.append(f"the {name} object is not the certified version")
        elif found.expires:
            reasons.append(f"the {name} object has an expiration date")
        elif found.archived:
            reasons.append(f"the {name} object is in an archive class that no broker can read")
    if not evidence.index_agrees:
        reasons.append("the index object does not decode or does not agree with the certificate")
    return reasons


def _surroundings(evidence: ReleaseEvidence) -> list[str]:
    reasons = _held(evidence)
    if evidence.under_replicated is None:
        reasons.append("under-replication is unknown")
    elif evidence.under_replicated:
        reasons.append("the ledger is under-replicated; BookKeeper is still working on it")
    if evidence.skips_unreadable_ledgers is None:
        reasons.append("a broker's autoSkipNonRecoverableData is unknown")
    elif evidence.skips_unreadable_ledgers:
        reasons.append(
            "a broker skips unreadable ledgers (autoSkipNonRecoverableData=true): a passing read "
            "failure would lose messages"
        )
    if evidence.place_differs is None:
        reasons.append("where brokers would read the topic's objects is unknown")
    elif evidence.place_differs:
        reasons.append(f"place differs: {', '.join(evidence.place_differs)}")
    if evidence.cannot_read is None:
        reasons.append("whether every broker can read our objects is unknown")
    elif evidence.cannot_read:
        reasons.append(
            f"brokers that may serve the topic next cannot read our objects, their offload driver is "
            f"not ours: {', '.join(evidence.cannot_read)}"
        )
    if evidence.shadows:
        reasons.append(
            f"its shadow topics read the bookie copy and nothing else: {', '.join(evidence.shadows)}"
        )
    reasons.extend(evidence.user_findings)
    if evidence.never_touched is not None:
        reasons.append(evidence.never_touched)
    if evidence.left_alone is not None:
        reasons.append(evidence.left_alone)
    return reasons
