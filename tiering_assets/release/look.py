"""One ledger and its topic as they are now, for the release gate. Reads only.

Owns: a second look asks everything again, and reads the index and the block headers again only
where a HEAD shows another object than the one that they were read from. What is the same for all
ledgers of a topic is asked once: holds each time, and what moves slowly and costs a question to
every broker when half of its time is over. A fact that could not be learned stays None and makes
the ledgers wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from uuid import UUID

from tiering_assets.change.disturb import Seen, must_wait
from tiering_assets.ground.evidence import Dated, Kind
from tiering_assets.ground.signing import load_public_keys
from tiering_assets.ground.stack import Stack, asking, is_young
from tiering_assets.look.brakes.brake import HOLD, Brakes, read_brakes
from tiering_assets.look.ledger.object_class import can_be_read, read_unless_archived
from tiering_assets.look.ledger.plan import facts_of
from tiering_assets.look.ledger.quarantine import why_quarantined
from tiering_assets.look.ledger.verification import gate_faults
from tiering_assets.look.topic.publications import Publications, recorded_publications
from tiering_assets.look.topic.publish_gate import BrokerSeen, cannot_read, place_differences
from tiering_assets.look.topic.topic_evidence import Shadows, look_at_brokers, our_place, topic_of
from tiering_assets.quality.ledger_facts import CopyFacts, TopicFacts
from tiering_assets.quality.ledger_frame import LedgerRow
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate, Outcome
from tiering_assets.records.signature import PublicKeys
from tiering_assets.records.stored import Stored
from tiering_assets.release.gate import Voucher, voucher_of
from tiering_assets.resources.errors import BrokerError, FormatError, MetadataError
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.resources.metastore.topic_names import never_touched
from tiering_assets.resources.object_store.store import ObjectHead, StoredObject
from tiering_assets.resources.pulsar.offload_policies import EffectiveOffloadPolicies
from tiering_assets.verify.reverify import IndexNow, look_at_index


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEvidence:
    """The facts about a topic, and what the looks at its ledgers need besides.

    `brokers` are the settings of each, None where one did not tell; `evidence` dates all of it, and
    each ledger's look adds its own.
    """

    facts: TopicFacts
    topic: ManagedLedger
    publications: Publications
    brokers: tuple[BrokerSeen, ...] | None
    public_keys: PublicKeys
    holds: Brakes
    evidence: Dated

    @property
    def ml_name(self) -> str:
        return self.facts.ml_name


def gather_topic(
    stack: Stack,
    ml_name: str,
    topic: ManagedLedger,
    shadows: Shadows,
    seen: Seen,
    *,
    before: TopicEvidence | None = None,
    publications: Publications | None = None,
    anew: bool = False,
) -> TopicEvidence:
    """Everything anew, but for what is SLOW, was asked `before` and is young still.

    With `anew` brokers are asked for their settings all the same.

    Where brokers read is asked each time: it decides whether readers find the copy at all.
    `publications` are those that matter, if they are known already.
    """
    asked = asking(stack, Kind.HOLDS, Kind.NODE, Kind.POLICY, Kind.BROKERS)
    if not anew and before is not None and is_young(stack, before.evidence, Kind.BROKERS):
        brokers = before.brokers
        asked = asked.and_(before.evidence.only(Kind.BROKERS))
    else:
        brokers = _brokers(stack)
    shadows.renew()
    asked = asked.and_(shadows.evidence)
    policy = _policy(stack, ml_name)
    # They are only ever added: what is published anew meanwhile is not counted, and waits.
    recorded = _publications(stack, ml_name, before, publications)
    return TopicEvidence(
        facts=TopicFacts(
            ml_name=ml_name,
            ledgers=topic.ledgers,
            published=frozenset(ledger_id for ledger_id, _uid in recorded.pairs),
            bucket=stack.objects.bucket,
            store_now=stack.objects.server_time(),
            skew_s=stack.settings.publish.clock_skew_max_s,
            place_differs=_place_differs(stack, policy),
            cannot_read=_cannot_read(stack, brokers, policy),
            skips_unreadable_ledgers=_skips_unreadable_ledgers(brokers),
            shadows=shadows.of(topic_of(ml_name)),
            never_touched=never_touched(ml_name, topic.properties),
            left_alone=_left_alone(stack, ml_name, seen)
            if before is None
            else before.facts.left_alone,
        ),
        topic=topic,
        publications=recorded,
        brokers=brokers,
        public_keys=load_public_keys(stack.settings),
        holds=read_brakes(stack, HOLD),
        evidence=asked,
    )


def _left_alone(stack: Stack, ml_name: str, seen: Seen) -> str | None:
    wait = must_wait(stack, ml_name, seen)
    return None if wait is None else str(wait)


def _publications(
    stack: Stack, ml_name: str, before: TopicEvidence | None, known: Publications | None
) -> Publications:
    if before is not None:
        return before.publications
    return recorded_publications(stack, ml_name) if known is None else known


def _brokers(stack: Stack) -> tuple[BrokerSeen, ...] | None:
    """None: not every one of them told its settings."""
    try:
        return look_at_brokers(stack)
    except (BrokerError, FormatError):
        return None


def _policy(stack: Stack, ml_name: str) -> EffectiveOffloadPolicies | None:
    try:
        return stack.broker.effective_offload_policies(topic_of(ml_name))
    except (BrokerError, FormatError):
        return None


def _skips_unreadable_ledgers(brokers: tuple[BrokerSeen, ...] | None) -> bool | None:
    if brokers is None or any(broker.skips is None for broker in brokers):
        return None
    return any(broker.skips for broker in brokers)


def _cannot_read(
    stack: Stack,
    brokers: tuple[BrokerSeen, ...] | None,
    policy: EffectiveOffloadPolicies | None,
) -> tuple[str, ...] | None:
    if brokers is None or policy is None:
        return None
    return tuple(b.name for b in cannot_read(brokers, policy, stack.settings.offload.driver))


def _place_differs(stack: Stack, policy: EffectiveOffloadPolicies | None) -> tuple[str, ...] | None:
    if policy is None:
        return None
    return tuple(
        f"{name} is {theirs!r}, ours is {mine!r}"
        for name, theirs, mine in place_differences(policy, our_place(stack))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One ledger before the expectation suites have judged it.

    `index_body` is None where the index object is not there or archived. `row` is None where no
    suite is needed to refuse the ledger. `voucher` is what vouches for the bytes of the copy.
    """

    facts: CopyFacts
    ledger: LedgerNode | None
    index_body: StoredObject | None
    index_now: IndexNow
    evidence: Dated
    voucher: Voucher
    row: LedgerRow | None = None


def look_at_ledger(
    stack: Stack,
    about: TopicEvidence,
    ledger_id: int,
    before: Look | None = None,
    *,
    hold: str | None,
) -> Look:
    """Look at one ledger; `before` is an earlier look of the same run, `hold` what holds it now."""
    dated = asking(stack, Kind.LEDGER, Kind.REPLICATION, Kind.RECORDS, Kind.OBJECTS)
    bytes_too = dated.and_(asking(stack, Kind.BYTES))
    listed = about.topic.ledger(ledger_id)
    context = None if listed is None else listed.offload
    uid = None if context is None else context.uid
    certificate, voucher, faults = (
        (None, Voucher.NOBODY, []) if uid is None else _certificate(stack, about, ledger_id, uid)
    )
    record = None if certificate is None else certificate.record
    publication = about.publications.counted(ledger_id, context)
    attempt, outcome = (
        (None, None)
        if record is None or publication is None
        else _neighbours(stack, ledger_id, record.uid)
    )
    data = None if record is None else stack.objects.head(record.data.key)
    index, body = _index(stack, record, before)
    same = before is not None and _is_same(before, data, index)
    quarantine = None if uid is None else why_quarantined(stack, ledger_id, uid)
    ledger = stack.ledgers.read(ledger_id)
    under_replicated = _under_replicated(stack, ledger_id)
    data_reads = data is not None and can_be_read(stack, data)
    index_reads = index is not None and can_be_read(stack, index)
    index_now = (
        before.index_now
        if before is not None and same
        else look_at_index(stack, record, data, body, listed)
    )
    return Look(
        facts=CopyFacts(
            ledger_id=ledger_id,
            context=context,
            node=None if ledger is None else facts_of(ledger),
            under_replicated=under_replicated,
            attempt=attempt,
            certificate=certificate,
            certificate_faults=tuple(faults),
            outcome=outcome,
            publication=publication,
            quarantine=quarantine,
            data=data,
            data_reads=data_reads,
            index=index,
            index_reads=index_reads,
            index_sha256="" if body is None else sha256(body.body).hexdigest(),
            index_agrees=index_now.agrees,
            hold=hold,
        ),
        ledger=ledger,
        index_body=body,
        index_now=index_now,
        # Where they are read again, they are dated by that.
        evidence=dated if voucher is Voucher.READING else bytes_too,
        voucher=voucher,
    )


def _index(
    stack: Stack, certificate: Certificate | None, before: Look | None
) -> tuple[ObjectHead | None, StoredObject | None]:
    """HEAD of the index object, and its body; an archived one has none."""
    if certificate is None:
        return None, None
    if before is not None and before.index_body is not None:
        head = stack.objects.head(certificate.index.key)
        if _version(head) == _version(before.facts.index):
            return head, before.index_body
    return read_unless_archived(stack, certificate.index.key)


def _is_same(before: Look, data: ObjectHead | None, index: ObjectHead | None) -> bool:
    was = before.facts
    return _version(data) == _version(was.data) and _version(index) == _version(was.index)


def _version(head: ObjectHead | None) -> tuple[object, ...] | None:
    return None if head is None else (head.size, head.etag, head.version_id, head.last_modified)


def _certificate(
    stack: Stack, about: TopicEvidence, ledger_id: int, uid: UUID
) -> tuple[Stored[Certificate] | None, Voucher, list[str]]:
    """The certificate of an attempt, who vouches for it, and what speaks against it."""
    try:
        found = stack.book.read(Certificate, keys.certificate(ledger_id, uid))
    except FormatError as error:  # damaged or of a newer schema: as good as none
        return None, Voucher.NOBODY, [f"the certificate cannot be read: {error}"]
    if found is None:
        return None, Voucher.NOBODY, []
    skew = timedelta(seconds=about.facts.skew_s)
    faults = gate_faults(
        found.record, ledger_id=ledger_id, uid=uid, now=about.facts.store_now, skew=skew
    )
    rereads = stack.settings.release.reread_without_key
    voucher = voucher_of(about.public_keys, found.body, rereads=rereads)
    if voucher is Voucher.NOBODY:
        faults.append(f"the certificate does not count: {about.public_keys.problem(found.body)}")
    return found, voucher, faults


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


def _under_replicated(stack: Stack, ledger_id: int) -> bool | None:
    try:
        return stack.ledgers.under_replicated(ledger_id)
    except MetadataError:
        return None
