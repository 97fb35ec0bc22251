"""Gather what the release gate judges, fresh, for one ledger. Reads only.

A fact that could not be learned stays None and makes the ledger wait; no error here is turned into
a good answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from resources.errors import BrokerError, FormatError, MetadataError, ObjectStoreError
from resources.metastore.ledger_info import ManagedLedger
from resources.metastore.ledgers import LedgerNode
from resources.metastore.topic_names import never_touched
from resources.object_store.store import ObjectHead, StoredObject
from tiering_assets.offload_format.decoder import decode_index
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.suites import validate_indexes
from tiering_assets.records import keys
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    Hold,
    ObjectFacts,
    Outcome,
    Publication,
    Quarantine,
)
from tiering_assets.steps.plan import facts_of
from tiering_assets.steps.publish import recorded_publications
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.verify import read_headers
from tiering_assets.tiering.release_gate import ObjectNow, ReleaseEvidence

# Storage classes that a GET answers at once; anything else needs a restore that no broker does.
READABLE_CLASSES = frozenset(
    {None, "", "STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "REDUCED_REDUNDANCY"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One ledger's evidence with the records and nodes that the release itself needs."""

    judged: ReleaseEvidence
    certificate: Stored[Certificate] | None
    publication: Stored[Publication] | None
    ledger: LedgerNode | None
    marked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEvidence:
    """What is the same for all ledgers of one topic in one run."""

    ml_name: str
    topic: ManagedLedger
    publications: Mapping[tuple[int, UUID], Stored[Publication]]
    store_now: datetime
    skips_unreadable_ledgers: bool | None


def gather_topic(stack: Stack, ml_name: str, topic: ManagedLedger) -> TopicEvidence:
    return TopicEvidence(
        ml_name=ml_name,
        topic=topic,
        publications=recorded_publications(stack, ml_name),
        store_now=stack.objects.server_time(),
        skips_unreadable_ledgers=_skips_unreadable_ledgers(stack),
    )


def _skips_unreadable_ledgers(stack: Stack) -> bool | None:
    try:
        said = stack.broker.runtime_config().get("autoSkipNonRecoverableData", "").lower()
    except BrokerError:
        return None
    return {"true": True, "false": False}.get(said)


def gather(stack: Stack, about: TopicEvidence, ledger_id: int) -> Evidence:
    """Everything about one ledger. Only a metadata store that cannot be read is an error."""
    listed = about.topic.ledger(ledger_id)
    context = None if listed is None else listed.offload
    uid = None if context is None else context.uid
    publication = None if uid is None else about.publications.get((ledger_id, uid))
    certificate = None if uid is None else _certificate(stack, ledger_id, uid)
    ledger = stack.ledgers.read(ledger_id)
    data, index = _objects(stack, certificate)
    suite_passed, index_agrees = _judge_index(stack, about, certificate, data, index)
    judged = ReleaseEvidence(
        ledger_id=ledger_id,
        context_uid=uid,
        context_complete=context is not None and context.complete,
        published_uid=None if publication is None else uid,
        published_at=None if publication is None else publication.record.confirmed_at,
        publication_stored_at=None if publication is None else publication.stored_at,
        store_now=about.store_now,
        certified_uid=None if certificate is None else certificate.record.uid,
        chain_intact=_chain_intact(stack, certificate, publication),
        quarantine=None if uid is None else _quarantine(stack, ledger_id, uid),
        suite_passed=suite_passed,
        certified_facts=None if certificate is None else certificate.record.ledger,
        facts_now=None if ledger is None else facts_of(ledger),
        data=None if certificate is None else _object_now(data, certificate.record.data),
        index=None
        if certificate is None
        else _object_now(None if index is None else index.head, certificate.record.index),
        index_agrees=index_agrees,
        hold=_hold(stack, ledger_id),
        under_replicated=_under_replicated(stack, ledger_id),
        skips_unreadable_ledgers=about.skips_unreadable_ledgers,
        never_touched=never_touched(about.ml_name, about.topic.properties),
    )
    return Evidence(
        judged=judged,
        certificate=certificate,
        publication=publication,
        ledger=ledger,
        marked=context is not None and context.bookkeeper_deleted,
    )


def _certificate(stack: Stack, ledger_id: int, uid: UUID) -> Stored[Certificate] | None:
    try:
        return stack.book.read(Certificate, keys.certificate(ledger_id, uid))
    except FormatError:  # damaged or of a newer schema: as good as none
        return None


def _quarantine(stack: Stack, ledger_id: int, uid: UUID) -> str | None:
    try:
        found = stack.book.read(Quarantine, keys.quarantine(ledger_id, uid))
    except FormatError as error:
        return f"a quarantine record that cannot be read: {error}"
    return None if found is None else found.record.reason


def _chain_intact(
    stack: Stack,
    certificate: Stored[Certificate] | None,
    publication: Stored[Publication] | None,
) -> bool:
    """Attempt -> certificate -> outcome -> publication, each naming the digest of the one before."""
    if certificate is None or publication is None:
        return False
    record = certificate.record
    ledger_id, uid = record.ledger.ledger_id, record.uid
    try:
        attempt = stack.book.read(Attempt, keys.attempt(ledger_id, uid))
        outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
    except FormatError:
        return False
    entry = next(p for p in publication.record.ledgers if (p.ledger_id, p.uid) == (ledger_id, uid))
    return (
        attempt is not None
        and outcome is not None
        and outcome.record.outcome == "publish"
        and record.previous == attempt.sha256
        and outcome.record.previous == certificate.sha256
        and entry.previous == outcome.sha256
        and entry.certificate_sha256 == certificate.sha256
    )


def _objects(
    stack: Stack, certificate: Stored[Certificate] | None
) -> tuple[ObjectHead | None, StoredObject | None]:
    if certificate is None:
        return None, None
    record = certificate.record
    return stack.objects.head(record.data.key), stack.objects.get(record.index.key)


def _object_now(head: ObjectHead | None, certified: ObjectFacts) -> ObjectNow:
    if head is None:
        return ObjectNow(present=False, equals_certificate=False)
    return ObjectNow(
        present=True,
        equals_certificate=(head.size, head.etag, head.version_id)
        == (certified.size, certified.etag, certified.version_id),
        expires=head.expiration is not None,
        archived=head.storage_class not in READABLE_CLASSES,
    )


def _judge_index(
    stack: Stack,
    about: TopicEvidence,
    certificate: Stored[Certificate] | None,
    data: ObjectHead | None,
    index: StoredObject | None,
) -> tuple[bool, bool]:
    """(suite passes on what lies there now, index agrees with the certificate)."""
    if certificate is None or data is None or index is None:
        return False, False
    record = certificate.record
    listed = about.topic.ledger(record.ledger.ledger_id)
    try:
        headers = read_headers(stack, record)
        found = decode_index(index.body)
    except (FormatError, ObjectStoreError):
        return False, False
    table = [(e.first_entry_id, e.part_number, e.offset) for e in found.entries]
    agrees = (
        sha256(index.body).hexdigest() == record.index.sha256
        and found.data_object_length == record.data.size
        and table == [(b.first_entry_id, b.part_number, b.offset) for b in record.blocks]
    )
    suite = validate_indexes(
        [
            IndexFacts(
                ledger_id=record.ledger.ledger_id,
                index=index.body,
                index_size=index.head.size,
                data_size=data.size,
                headers=headers,
                last_entry_id=record.ledger.last_entry_id,
                ledger_length=record.ledger.length,
                topic_entries=None if listed is None else listed.entries,
                topic_bytes=None if listed is None else listed.size,
            )
        ]
    )[record.ledger.ledger_id]
    return suite.success and all(s.success for s in record.suites), agrees


def _hold(stack: Stack, ledger_id: int) -> str | None:
    try:
        found = stack.book.read(Hold, keys.hold(ledger_id))
    except FormatError as error:
        return f"a hold record that cannot be read: {error}"
    return None if found is None else f"{found.record.reason} ({found.record.author})"


def _under_replicated(stack: Stack, ledger_id: int) -> bool | None:
    try:
        return stack.ledgers.under_replicated(ledger_id)
    except MetadataError:
        return None
