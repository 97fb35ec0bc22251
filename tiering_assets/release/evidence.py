"""Gather what the release gate judges, fresh, for some ledgers of a topic. Reads only.

A fact that could not be learned stays None and makes the ledger wait; no error here is turned into
a good answer. Ledgers are looked at in parallel, and judged by the expectation suites together: ours
pass only where each was run now and passed, a user's can only add reasons against a release, and one
validation of a suite costs a quarter of a second, however many ledgers there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from resources.metastore.ledgers import LedgerNode
from resources.metastore.offload_context import OffloadContext
from resources.metastore.topic_names import never_touched
from resources.object_store.store import ObjectHead
from tiering_assets.ground.evidence import Dated
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import facts_of
from tiering_assets.look.ledger.verification import head_differences
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.findings import findings
from tiering_assets.quality.ledger_facts import CopyFacts, TopicFacts
from tiering_assets.quality.ledger_frame import LedgerRow, ledger_rows
from tiering_assets.quality.ledger_suites import ledger_findings
from tiering_assets.quality.user_suites import user_findings, validate_user_suites
from tiering_assets.records.models import Certificate, ObjectFacts, Publication, SuiteResult
from tiering_assets.records.stored import Stored
from tiering_assets.release.gate import ObjectNow, ReleaseEvidence
from tiering_assets.release.look import Look, TopicEvidence, look_at_ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Of one ledger; None and empty where it was not judged."""

    index: SuiteResult | None = None
    index_facts: IndexFacts | None = None
    ledger: tuple[SuiteResult, ...] = ()
    row: LedgerRow | None = None
    user: tuple[SuiteResult, ...] = ()

    @property
    def suites(self) -> tuple[SuiteResult, ...]:
        """All results, those of users' suites last."""
        return (*(() if self.index is None else (self.index,)), *self.ledger, *self.user)

    def passed(self, certified: Sequence[SuiteResult]) -> bool:
        """Whether all of ours pass now, and those that the certificate names passed then."""
        if self.index is None or not self.ledger:
            return False
        return all(one.success for one in (self.index, *self.ledger, *certified))

    @property
    def suite_findings(self) -> tuple[str, ...]:
        """Why ours do not pass: suite, expectation, expected and found."""
        found: list[str] = []
        if self.index is not None and self.index_facts is not None:
            said = findings(self.index_facts, self.index)
            found += [f"suite {self.index.name}: {text}" for text in said]
        if self.row is not None:
            found += ledger_findings(self.row, self.ledger)
        return tuple(found)

    @property
    def user_findings(self) -> tuple[str, ...]:
        """Why users' suites hold the ledger."""
        return user_findings(self.user)


def judge_ledgers(
    stack: Stack, facts: Sequence[IndexFacts], rows: Sequence[LedgerRow]
) -> dict[int, Verdicts]:
    """Run every suite once over all of them; ledgers that no facts are of have no verdict."""
    indexes = stack.judge(facts) if facts else {}
    ledgers = stack.judge_ledgers(rows) if rows else {}
    users = validate_user_suites(rows, stack.user_suites)
    facts_of = {one.ledger_id: one for one in facts}
    row_of = {row.ledger_id: row for row in rows}
    return {
        ledger_id: Verdicts(
            index=indexes.get(ledger_id),
            index_facts=facts_of.get(ledger_id),
            ledger=ledgers.get(ledger_id, ()),
            row=row_of.get(ledger_id),
            user=users.get(ledger_id, ()),
        )
        for ledger_id in facts_of.keys() | row_of.keys()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One ledger's evidence with the records and nodes that the release itself needs.

    `look` and `verdicts` are what it was made of, for a second look. `dated` is when it was asked.
    """

    judged: ReleaseEvidence
    look: Look
    verdicts: Verdicts
    dated: Dated

    @property
    def certificate(self) -> Stored[Certificate] | None:
        return self.look.certificate

    @property
    def publication(self) -> Stored[Publication] | None:
        return self.look.publication

    @property
    def ledger(self) -> LedgerNode | None:
        return self.look.ledger

    @property
    def suites(self) -> tuple[SuiteResult, ...]:
        """Results of our suites and, behind them, of users'."""
        return self.verdicts.suites


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedLedgers:
    """Ledgers of one topic, looked at and not judged yet."""

    about: TopicEvidence
    looks: Mapping[int, Look]
    before: Mapping[int, Evidence] = field(default_factory=dict)


def gather(
    stack: Stack,
    about: TopicEvidence,
    ledger_ids: Iterable[int],
    *,
    before: Mapping[int, Evidence] | None = None,
) -> dict[int, Evidence]:
    """Everything about some ledgers. Only a metadata store that cannot be read is an error.

    `before` is an earlier look of the same run: what its suites said of the same facts still holds.
    """
    [evidence] = judge_all(stack, [look_at_ledgers(stack, about, ledger_ids, before=before)])
    return evidence


def look_at_ledgers(
    stack: Stack,
    about: TopicEvidence,
    ledger_ids: Iterable[int],
    *,
    before: Mapping[int, Evidence] | None = None,
) -> UnjudgedLedgers:
    known = before or {}

    def look(ledger_id: int) -> Look:
        earlier = known.get(ledger_id)
        return look_at_ledger(stack, about, ledger_id, None if earlier is None else earlier.look)

    wanted = list(ledger_ids)
    looks = dict(zip(wanted, stack.in_parallel(look, wanted), strict=True))
    copies = [
        _copy_facts(stack, about, look, look.certificate, look.publication, look.ledger)
        for look in looks.values()
        if look.certificate is not None and look.publication is not None and look.ledger is not None
    ]
    topic = TopicFacts(
        ml_name=about.ml_name,
        ledgers=about.topic.ledgers,
        published=frozenset(ledger_id for ledger_id, _uid in about.publications.pairs),
    )
    for row in ledger_rows(topic, copies):
        looks[row.ledger_id] = replace(looks[row.ledger_id], row=row)
    return UnjudgedLedgers(about=about, looks=looks, before=known)


def judge_all(stack: Stack, looked: Sequence[UnjudgedLedgers]) -> list[dict[int, Evidence]]:
    """The evidence of several topics' ledgers, in their order, judged by every suite together."""
    verdicts: dict[int, Verdicts] = {}
    new: list[Look] = []
    for one in looked:
        for ledger_id, look in one.looks.items():
            earlier = one.before.get(ledger_id)
            if earlier is not None and not stack.user_suites and _same_facts(earlier.look, look):
                verdicts[ledger_id] = earlier.verdicts
            else:
                new.append(look)
    if new:
        verdicts |= judge_ledgers(
            stack,
            [look.index_now.facts for look in new if look.index_now.facts is not None],
            [look.row for look in new if look.row is not None],
        )
    return [
        {
            ledger_id: _evidence(
                stack.objects.bucket,
                one.about,
                ledger_id,
                look,
                verdicts.get(ledger_id, Verdicts()),
            )
            for ledger_id, look in one.looks.items()
        }
        for one in looked
    ]


def _same_facts(before: Look, now: Look) -> bool:
    """The suites would say the same: only the store's clock has gone on."""
    return before.index_now.facts is now.index_now.facts and _timeless(before.row) == _timeless(
        now.row
    )


def _timeless(row: LedgerRow | None) -> LedgerRow | None:
    return None if row is None else row._replace(store_now_ms=0, store_latest_ms=0)


def _copy_facts(
    stack: Stack,
    about: TopicEvidence,
    look: Look,
    certificate: Stored[Certificate],
    publication: Stored[Publication],
    ledger: LedgerNode,
) -> CopyFacts:
    index = look.index
    return CopyFacts(
        ledger_id=ledger.metadata.ledger_id,
        node=facts_of(ledger),
        attempt=None if look.attempt is None else look.attempt.record,
        attempt_sha256="" if look.attempt is None else look.attempt.sha256,
        attempt_stored_at=None if look.attempt is None else look.attempt.stored_at,
        certificate=certificate.record,
        certificate_sha256=certificate.sha256,
        certificate_stored_at=certificate.stored_at,
        outcome=None if look.outcome is None else look.outcome.record,
        outcome_sha256="" if look.outcome is None else look.outcome.sha256,
        publication=publication.record,
        publication_stored_at=publication.stored_at,
        data=look.data,
        index=look.index_head,
        index_sha256="" if index is None else sha256(index.body).hexdigest(),
        store_now=about.store_now,
        skew_s=stack.settings.publish.clock_skew_max_s,
    )


def _evidence(
    bucket: str, about: TopicEvidence, ledger_id: int, look: Look, verdicts: Verdicts
) -> Evidence:
    context, publication = look.context, look.publication
    uid = None if context is None else context.uid
    record = None if look.certificate is None else look.certificate.record
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
        quarantine=look.quarantine,
        suite_passed=record is not None and verdicts.passed(record.suites),
        suite_findings=verdicts.suite_findings,
        user_findings=verdicts.user_findings,
        certified_facts=None if record is None else record.ledger,
        facts_now=None if look.ledger is None else facts_of(look.ledger),
        data=None
        if record is None
        else _object_now("data", look.data, record.data, look.data_reads),
        index=None
        if record is None
        else _object_now("index", look.index_head, record.index, look.index_reads),
        index_agrees=look.index_now.agrees,
        hold=about.holds.why(ledger_id, about.ml_name),
        under_replicated=look.under_replicated,
        skips_unreadable_ledgers=about.skips_unreadable_ledgers,
        place_differs=_place_differs(bucket, context, record, about.place_differs),
        cannot_read=about.cannot_read,
        never_touched=never_touched(about.ml_name, about.topic.properties),
        shadows=about.shadows,
        left_alone=None if about.left_alone is None else str(about.left_alone),
    )
    return Evidence(
        judged=judged,
        look=look,
        verdicts=verdicts,
        dated=look.evidence.and_(about.evidence),
    )


def _chain_intact(look: Look) -> bool:
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


def _place_differs(
    bucket: str,
    context: OffloadContext | None,
    certificate: Certificate | None,
    brokers: tuple[str, ...] | None,
) -> tuple[str, ...] | None:
    """Where brokers would look, and where the copy lies: all of it must be our bucket."""
    if brokers is None:
        return None
    found = [*brokers]
    named = None if context is None else context.properties.get("bucket")
    if named is not None and named != bucket:
        found.append(f"its context names bucket {named!r}, ours is {bucket!r}")
    if certificate is not None and certificate.bucket != bucket:
        found.append(f"its copy is in bucket {certificate.bucket!r}, ours is {bucket!r}")
    return tuple(found)


def _object_now(
    name: str, head: ObjectHead | None, certified: ObjectFacts, reads: bool
) -> ObjectNow:
    if head is None:
        return ObjectNow(present=False, equals_certificate=False)
    return ObjectNow(
        present=True,
        equals_certificate=not head_differences(name, certified, head),
        expires=head.expiration is not None,
        archived=not reads,
    )
