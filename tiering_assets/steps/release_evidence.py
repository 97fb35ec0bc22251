"""Gather what the release gate judges, fresh, for one ledger. Reads only.

A fact that could not be learned stays None and makes the ledger wait; no error here is turned into
a good answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID

from resources.errors import BrokerError, FormatError, MetadataError
from resources.metastore.ledger_info import ManagedLedger
from resources.metastore.ledgers import LedgerNode
from resources.metastore.offload_context import OffloadContext
from resources.metastore.topic_names import never_touched
from resources.object_store.store import ObjectHead, StoredObject
from tiering_assets.quality.ledger_facts import CopyFacts, TopicFacts
from tiering_assets.quality.ledger_frame import LedgerRow, ledger_rows
from tiering_assets.records import keys
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    ObjectFacts,
    Outcome,
    Publication,
    SuiteResult,
)
from tiering_assets.records.signature import PublicKeys
from tiering_assets.steps.disturb import Seen, must_wait
from tiering_assets.steps.holds import Holds, read_holds
from tiering_assets.steps.index_evidence import IndexNow, look_at_index
from tiering_assets.steps.object_class import can_be_read, read_unless_archived
from tiering_assets.steps.plan import facts_of
from tiering_assets.steps.publications import recorded_publications
from tiering_assets.steps.quarantine import why_quarantined
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.shadows import Shadows
from tiering_assets.steps.signing import load_public_keys
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.suite_evidence import Verdicts, judge_ledgers
from tiering_assets.steps.topic_evidence import look_at_brokers, topic_of
from tiering_assets.tiering.brokers import BrokerSeen, cannot_read, without_driver
from tiering_assets.tiering.certificate_facts import gate_faults
from tiering_assets.tiering.reasons import Wait
from tiering_assets.tiering.release_gate import ObjectNow, ReleaseEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One ledger's evidence with the records and nodes that the release itself needs.

    `suites` are the results of ours and, behind them, of users' suites.
    """

    judged: ReleaseEvidence
    certificate: Stored[Certificate] | None
    publication: Stored[Publication] | None
    ledger: LedgerNode | None
    marked: bool
    suites: tuple[SuiteResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEvidence:
    """What is the same for all ledgers of one topic in one run."""

    ml_name: str
    topic: ManagedLedger
    publications: Mapping[tuple[int, UUID], Stored[Publication]]
    store_now: datetime
    skips_unreadable_ledgers: bool | None
    cannot_read: tuple[str, ...] | None
    shadows: tuple[str, ...]
    left_alone: Wait | None
    public_keys: PublicKeys
    holds: Holds


def gather_topic(
    stack: Stack, ml_name: str, topic: ManagedLedger, shadows: Shadows, seen: Seen
) -> TopicEvidence:
    brokers = _brokers(stack)
    return TopicEvidence(
        ml_name=ml_name,
        topic=topic,
        publications=recorded_publications(stack, ml_name),
        store_now=stack.objects.server_time(),
        skips_unreadable_ledgers=_skips_unreadable_ledgers(brokers),
        cannot_read=_cannot_read(stack, ml_name, brokers),
        shadows=tuple(shadows.get(topic_of(ml_name), ())),
        left_alone=must_wait(stack, ml_name, seen),
        public_keys=load_public_keys(stack.settings),
        holds=read_holds(stack),
    )


def _brokers(stack: Stack) -> tuple[BrokerSeen, ...] | None:
    """None: not every one of them told its settings."""
    try:
        return look_at_brokers(stack)
    except (BrokerError, FormatError):
        return None


def _skips_unreadable_ledgers(brokers: tuple[BrokerSeen, ...] | None) -> bool | None:
    if brokers is None or any(broker.skips is None for broker in brokers):
        return None
    return any(broker.skips for broker in brokers)


def _cannot_read(
    stack: Stack, ml_name: str, brokers: tuple[BrokerSeen, ...] | None
) -> tuple[str, ...] | None:
    """The topic's policy is asked for only where a broker depends on it."""
    driver = stack.settings.offload.driver
    if brokers is None:
        return None
    if not without_driver(brokers, driver):
        return ()
    try:
        policy = stack.broker.effective_offload_policies(topic_of(ml_name))
    except (BrokerError, FormatError):
        return None
    return tuple(broker.name for broker in cannot_read(brokers, policy, driver))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One ledger before the expectation suites have judged it.

    `row` is None where certificate, publication or ledger is not there: the gate needs no suite to
    refuse that.
    """

    context: OffloadContext | None
    publication: Stored[Publication] | None
    certificate: Stored[Certificate] | None
    certificate_faults: tuple[str, ...]
    attempt: Stored[Attempt] | None
    outcome: Stored[Outcome] | None
    ledger: LedgerNode | None
    data: ObjectHead | None
    index_head: ObjectHead | None
    index: StoredObject | None
    index_now: IndexNow
    row: LedgerRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Ledgers of one topic, looked at and not judged yet."""

    about: TopicEvidence
    looks: Mapping[int, _Look]


def gather(stack: Stack, about: TopicEvidence, ledger_ids: Iterable[int]) -> dict[int, Evidence]:
    """Everything about some ledgers. Only a metadata store that cannot be read is an error."""
    [evidence] = judge_all(stack, [look_at_ledgers(stack, about, ledger_ids)])
    return evidence


def look_at_ledgers(stack: Stack, about: TopicEvidence, ledger_ids: Iterable[int]) -> Looked:
    looks = {ledger_id: _look(stack, about, ledger_id) for ledger_id in ledger_ids}
    copies = [
        _copy_facts(stack, about, ledger_id, look, look.certificate)
        for ledger_id, look in looks.items()
        if look.certificate is not None and look.publication is not None and look.ledger is not None
    ]
    topic = TopicFacts(
        ml_name=about.ml_name,
        ledgers=about.topic.ledgers,
        published=frozenset(ledger_id for ledger_id, _uid in about.publications),
    )
    for row in ledger_rows(topic, copies):
        looks[row.ledger_id] = replace(looks[row.ledger_id], row=row)
    return Looked(about=about, looks=looks)


def judge_all(stack: Stack, looked: Sequence[Looked]) -> list[dict[int, Evidence]]:
    """The evidence of several topics' ledgers, in their order, judged by every suite together."""
    looks = [look for one in looked for look in one.looks.values()]
    verdicts = judge_ledgers(
        stack,
        [look.index_now.facts for look in looks if look.index_now.facts is not None],
        [look.row for look in looks if look.row is not None],
    )
    return [
        {
            ledger_id: _evidence(
                stack, one.about, ledger_id, look, verdicts.get(ledger_id, Verdicts())
            )
            for ledger_id, look in one.looks.items()
        }
        for one in looked
    ]


def _copy_facts(
    stack: Stack,
    about: TopicEvidence,
    ledger_id: int,
    look: _Look,
    certificate: Stored[Certificate],
) -> CopyFacts:
    index = look.index
    return CopyFacts(
        ledger_id=ledger_id,
        node=None if look.ledger is None else facts_of(look.ledger),
        attempt=None if look.attempt is None else look.attempt.record,
        attempt_sha256="" if look.attempt is None else look.attempt.sha256,
        attempt_stored_at=None if look.attempt is None else look.attempt.stored_at,
        certificate=certificate.record,
        certificate_sha256=certificate.sha256,
        certificate_stored_at=certificate.stored_at,
        outcome=None if look.outcome is None else look.outcome.record,
        outcome_sha256="" if look.outcome is None else look.outcome.sha256,
        publication=None if look.publication is None else look.publication.record,
        publication_stored_at=None if look.publication is None else look.publication.stored_at,
        data=look.data,
        index=look.index_head,
        index_sha256="" if index is None else sha256(index.body).hexdigest(),
        store_now=about.store_now,
        skew_s=stack.settings.publish.clock_skew_max_s,
    )


def _look(stack: Stack, about: TopicEvidence, ledger_id: int) -> _Look:
    listed = about.topic.ledger(ledger_id)
    context = None if listed is None else listed.offload
    uid = None if context is None else context.uid
    certificate, faults = (None, []) if uid is None else _certificate(stack, about, ledger_id, uid)
    data, index_head, index = _objects(stack, certificate)
    record = None if certificate is None else certificate.record
    publication = None if uid is None else about.publications.get((ledger_id, uid))
    attempt, outcome = (
        (None, None)
        if record is None or publication is None
        else _neighbours(stack, ledger_id, record.uid)
    )
    return _Look(
        context=context,
        publication=publication,
        certificate=certificate,
        certificate_faults=tuple(faults),
        attempt=attempt,
        outcome=outcome,
        ledger=stack.ledgers.read(ledger_id),
        data=data,
        index_head=index_head,
        index=index,
        index_now=look_at_index(stack, record, data, index, listed),
    )


def _evidence(
    stack: Stack, about: TopicEvidence, ledger_id: int, look: _Look, verdicts: Verdicts
) -> Evidence:
    context, publication, certificate = look.context, look.publication, look.certificate
    uid = None if context is None else context.uid
    record = None if certificate is None else certificate.record
    judged = ReleaseEvidence(
        ledger_id=ledger_id,
        context_uid=uid,
        context_complete=context is not None and context.complete,
        published_uid=None if publication is None else uid,
        published_at=None if publication is None else publication.record.confirmed_at,
        publication_stored_at=None if publication is None else publication.stored_at,
        store_now=about.store_now,
        certified_uid=None if record is None else record.uid,
        certificate_faults=look.certificate_faults,
        chain_intact=_chain_intact(look),
        quarantine=None if uid is None else why_quarantined(stack, ledger_id, uid),
        suite_passed=record is not None and verdicts.passed(record.suites),
        suite_findings=verdicts.suite_findings,
        user_findings=verdicts.user_findings,
        certified_facts=None if record is None else record.ledger,
        facts_now=None if look.ledger is None else facts_of(look.ledger),
        data=None if record is None else _object_now(stack, look.data, record.data),
        index=None if record is None else _object_now(stack, look.index_head, record.index),
        index_agrees=look.index_now.agrees,
        hold=about.holds.why(ledger_id, about.ml_name),
        under_replicated=_under_replicated(stack, ledger_id),
        skips_unreadable_ledgers=about.skips_unreadable_ledgers,
        cannot_read=about.cannot_read,
        never_touched=never_touched(about.ml_name, about.topic.properties),
        shadows=about.shadows,
        left_alone=None if about.left_alone is None else str(about.left_alone),
    )
    return Evidence(
        judged=judged,
        certificate=certificate,
        publication=publication,
        ledger=look.ledger,
        marked=context is not None and context.bookkeeper_deleted,
        suites=verdicts.suites,
    )


def _certificate(
    stack: Stack, about: TopicEvidence, ledger_id: int, uid: UUID
) -> tuple[Stored[Certificate] | None, list[str]]:
    """The certificate of an attempt and what speaks against it."""
    try:
        found = stack.book.read(Certificate, keys.certificate(ledger_id, uid))
    except FormatError as error:  # damaged or of a newer schema: as good as none
        return None, [f"the certificate cannot be read: {error}"]
    if found is None:
        return None, []
    skew = timedelta(seconds=stack.settings.publish.clock_skew_max_s)
    faults = gate_faults(found.record, ledger_id=ledger_id, uid=uid, now=about.store_now, skew=skew)
    unsigned = about.public_keys.problem(found.body)
    if unsigned is not None:
        faults.append(f"the certificate does not count: {unsigned}")
    return found, faults


def _neighbours(
    stack: Stack, ledger_id: int, uid: UUID
) -> tuple[Stored[Attempt] | None, Stored[Outcome] | None]:
    """The records before and behind a certificate; None for what is not there or not readable."""
    try:
        return (
            stack.book.read(Attempt, keys.attempt(ledger_id, uid)),
            stack.book.read(Outcome, keys.outcome(ledger_id, uid)),
        )
    except FormatError:
        return None, None


def _chain_intact(look: _Look) -> bool:
    """Attempt -> certificate -> outcome -> publication, each naming the digest of the one before."""
    certificate, publication = look.certificate, look.publication
    attempt, outcome = look.attempt, look.outcome
    if certificate is None or publication is None:
        return False
    record = certificate.record
    ledger_id, uid = record.ledger.ledger_id, record.uid
    entry = next(
        (p for p in publication.record.ledgers if (p.ledger_id, p.uid) == (ledger_id, uid)), None
    )
    return (
        attempt is not None
        and outcome is not None
        and entry is not None
        and outcome.record.outcome == "publish"
        and record.previous == attempt.sha256
        and outcome.record.previous == certificate.sha256
        and entry.previous == outcome.sha256
        and entry.certificate_sha256 == certificate.sha256
    )


def _objects(
    stack: Stack, certificate: Stored[Certificate] | None
) -> tuple[ObjectHead | None, ObjectHead | None, StoredObject | None]:
    """Data object and index object by HEAD, and the index itself; an archived one has no body."""
    if certificate is None:
        return None, None, None
    record = certificate.record
    return (stack.objects.head(record.data.key), *read_unless_archived(stack, record.index.key))


def _object_now(stack: Stack, head: ObjectHead | None, certified: ObjectFacts) -> ObjectNow:
    if head is None:
        return ObjectNow(present=False, equals_certificate=False)
    return ObjectNow(
        present=True,
        equals_certificate=(head.size, head.etag, head.version_id)
        == (certified.size, certified.etag, certified.version_id),
        expires=head.expiration is not None,
        archived=not can_be_read(stack, head),
    )


def _under_replicated(stack: Stack, ledger_id: int) -> bool | None:
    try:
        return stack.ledgers.under_replicated(ledger_id)
    except MetadataError:
        return None
