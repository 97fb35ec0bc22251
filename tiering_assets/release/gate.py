"""When exactly may a bookie copy be deleted? design section 6.3; there is no second place.

Owns: Release only when every condition is positively known to be met, right now. Anything unknown,
missing or different makes the ledger wait, with all reasons. Ensembles and versions are not
compared: autorecovery rewrites those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from tiering_assets.ground.evidence import lag_elapsed
from tiering_assets.ground.moments import moment
from tiering_assets.ground.reasons import NotNow
from tiering_assets.look.ledger.verification import version_differences
from tiering_assets.quality.ledger_facts import CopyFacts, TopicFacts
from tiering_assets.records.chain import is_intact
from tiering_assets.records.models import ObjectFacts
from tiering_assets.records.signature import PublicKeys
from tiering_assets.resources.metastore.offload_context import OffloadContext
from tiering_assets.resources.object_store.store import ObjectHead

CHECK_FAILED = "a check of this attempt failed"
CLOCKS_APART = timedelta(minutes=10)  # a large plan may take so long between its two looks


class Voucher(Enum):
    """What vouches for the bytes of a copy: an accepted key, else a new reading of all of them.

    With keys, a reading does so for what none of them is said to have signed, and only with
    `sign.require = false`. A bad signature by an accepted key is damage or forgery: no reading
    mends it.
    """

    KEY = "an accepted key"
    READING = "every byte is read again"
    RECORD = "the certificate alone"  # only where release.reread_without_key is off
    NOBODY = "nobody: it does not count"


def voucher_of(keys: PublicKeys, certificate: Mapping[str, Any], *, rereads: bool) -> Voucher:
    """`rereads` is release.reread_without_key: without it no reading replaces a signature."""
    if not keys:
        return Voucher.READING if rereads else Voucher.RECORD
    if keys.refusal(certificate) is not None:
        return Voucher.NOBODY
    if keys.problem(certificate) is None:
        return Voucher.KEY
    return Voucher.READING if rereads else Voucher.NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitesSaid:
    """`passed` is of all our suites, `findings` says why not.

    What users' suites say can only be `user_findings`, each of which holds the ledger.
    """

    passed: bool
    findings: tuple[str, ...]
    user_findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEvidence:
    """Everything the gate judges, as it was gathered. None means "not there" or "could not be
    learned".
    """

    topic: TopicFacts
    copy: CopyFacts
    suites: SuitesSaid


@dataclass(frozen=True, slots=True)
class MayRelease:
    uid: UUID


def decide_release(
    evidence: ReleaseEvidence, *, lag: timedelta, now: datetime
) -> MayRelease | NotNow[str]:
    """Return Release only when nothing speaks against it; the lag is judged by the slower clock."""
    topic, copy, suites = evidence.topic, evidence.copy, evidence.suites
    if copy.context is None or not copy.context.complete:
        return NotNow(("not published: the topic names no complete offload context",))
    uid = copy.context.uid
    if copy.certificate is None and copy.publication is None:
        return NotNow((_of_a_broker(uid), *_held(copy)))
    reasons = [
        *_publication(topic, copy, lag, now),
        *_certificate(copy, uid),
        *_suites(suites),
        *_ledger(copy),
        *_objects(copy),
        *_held(copy),
        *_surroundings(topic, copy, copy.context),
        *suites.user_findings,
        *(why for why in (topic.never_touched, topic.left_alone) if why is not None),
    ]
    return NotNow(tuple(reasons)) if reasons else MayRelease(uid)


def _of_a_broker(uid: UUID) -> str:
    return (
        f"a broker's own offloader made the copy {uid}, or all records of it are gone: it has "
        "no proof, so we delete nothing for it. The broker deletes after its own deletion lag"
    )


def _held(copy: CopyFacts) -> list[str]:
    return [] if copy.hold is None else [f"under a release hold: {copy.hold}"]


def _publication(topic: TopicFacts, copy: CopyFacts, lag: timedelta, now: datetime) -> list[str]:
    if copy.publication is None:
        return ["publication of this attempt is not confirmed"]
    published_at, stored_at = copy.publication.record.confirmed_at, copy.publication.stored_at
    store_now = topic.store_now
    if lag_elapsed(
        lag=lag, recorded_at=published_at, now=now, stored_at=stored_at, store_now=store_now
    ):
        return []
    due = max(published_at, stored_at) + lag
    return [f"deletion lag has not elapsed: due after {moment(due)}" + _clocks(now - store_now)]


def _clocks(off: timedelta) -> str:
    """A clock that stands wrong must be named: the ledger may wait for nothing else."""
    if abs(off) <= CLOCKS_APART:
        return ""
    way = "ahead of" if off > timedelta(0) else "behind"
    return (
        f" by both clocks, and this machine's is {abs(off).total_seconds():.0f} s {way} the store's; "
        f"set the one that is wrong"
    )


def _certificate(copy: CopyFacts, uid: UUID) -> list[str]:
    reasons = []
    if copy.certificate is None or copy.certificate.record.uid != uid:
        reasons.append("this attempt has no certificate")
    elif not is_intact(copy.attempt, copy.certificate, copy.outcome, copy.certified_entry):
        reasons.append("the chain of records behind the certificate is broken")
    reasons.extend(copy.certificate_faults)
    if copy.quarantine is not None:
        reasons.append(f"{CHECK_FAILED}: {copy.quarantine}")
    return reasons


def _suites(suites: SuitesSaid) -> list[str]:
    if suites.passed or suites.findings:
        return [*suites.findings]
    return ["the expectation suites do not pass now"]


def _ledger(copy: CopyFacts) -> list[str]:
    certified = None if copy.certificate is None else copy.certificate.record.ledger
    if copy.node is None:
        return ["the ledger's BookKeeper metadata cannot be read"]
    if copy.node != certified:
        return [f"the ledger differs from the certified one: {copy.node} instead of {certified}"]
    return []


def _objects(copy: CopyFacts) -> list[str]:
    record = None if copy.certificate is None else copy.certificate.record
    reasons = [
        *_object("data", None if record is None else record.data, copy.data, copy.data_reads),
        *_object("index", None if record is None else record.index, copy.index, copy.index_reads),
    ]
    if not copy.index_agrees:
        reasons.append("the index object does not decode, or it differs from the certificate")
    return reasons


def _object(
    name: str, certified: ObjectFacts | None, found: ObjectHead | None, reads: bool
) -> list[str]:
    if certified is None:
        return [f"the {name} object could not be looked at"]
    if found is None:
        return [f"the {name} object is gone"]
    if version_differences(certified, found):
        return [f"the {name} object is not the certified version"]
    if found.expiration is not None:
        return [f"the {name} object has an expiration date"]
    if not reads:
        return [f"the {name} object is in an archive class that no broker can read"]
    return []


def _surroundings(topic: TopicFacts, copy: CopyFacts, context: OffloadContext) -> list[str]:
    reasons = []
    if copy.under_replicated is None:
        reasons.append("under-replication is unknown")
    elif copy.under_replicated:
        reasons.append("the ledger is under-replicated; BookKeeper is still working on it")
    if topic.skips_unreadable_ledgers is None:
        reasons.append("a broker's autoSkipNonRecoverableData is unknown")
    elif topic.skips_unreadable_ledgers:
        reasons.append(
            "a broker skips unreadable ledgers (autoSkipNonRecoverableData=true): a passing read "
            "failure would lose messages"
        )
    if topic.place_differs is None:
        reasons.append("where brokers would read the topic's objects is unknown")
    elif differs := (*topic.place_differs, *_elsewhere(topic.bucket, copy, context)):
        reasons.append(f"place differs: {', '.join(differs)}")
    if topic.cannot_read is None:
        reasons.append("whether every broker can read our objects is unknown")
    elif topic.cannot_read:
        reasons.append(
            f"brokers that may serve the topic next cannot read our objects, their offload driver is "
            f"not ours: {', '.join(topic.cannot_read)}"
        )
    if topic.shadows:
        reasons.append(
            f"its shadow topics read the bookie copy and nothing else: {', '.join(topic.shadows)}"
        )
    return reasons


def _elsewhere(bucket: str, copy: CopyFacts, context: OffloadContext) -> list[str]:
    """Where brokers would look by the context, and where the copy lies: both must be our bucket."""
    found = []
    named = context.properties.get("bucket")
    if named is not None and named != bucket:
        found.append(f"its context names bucket {named!r}, ours is {bucket!r}")
    certified = None if copy.certificate is None else copy.certificate.record.bucket
    if certified is not None and certified != bucket:
        found.append(f"its copy is in bucket {certified!r}, ours is {bucket!r}")
    return found
