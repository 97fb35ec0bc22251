"""Make a topic's certified copies what its broker reads. design section 6.2.

The order is the contract: gate, a look at every copy, outcome of each attempt, one change of the
topic (topic_change.py: compare-and-set, unload, first and last entry read through the broker),
publication record. A crash between any two is finished by the next run: it finds the context and
confirms again. What the broker cannot read is taken out again: the bookie copy is still there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from tiering_assets.change.change_topic import NOTHING, Half, carry_out
from tiering_assets.change.confirm import settle_undos
from tiering_assets.change.copies_now import CopiesNow, look_at_copies, quarantine_changed
from tiering_assets.change.disturb import Seen, must_wait
from tiering_assets.change.publish_record import (
    canary_stands,
    record_canary,
    record_publication,
)
from tiering_assets.change.topic_change import Confirmed, withdraw_standing
from tiering_assets.change.topic_edit import Copy, TopicChange, plan_publication
from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Dated, Kind
from tiering_assets.ground.reasons import NotNow, Reason, Wait
from tiering_assets.ground.stack import Stack, asking, is_young
from tiering_assets.look.brakes.pauses import why_off
from tiering_assets.look.ledger.quarantine import Won, win_outcome
from tiering_assets.look.topic.publications import recorded_publications
from tiering_assets.look.topic.publish_gate import decide_publish, not_skipping, place_digest
from tiering_assets.look.topic.topic_evidence import deleted, publish_evidence, topic_of
from tiering_assets.records.keys import namespace_of
from tiering_assets.records.models import Certificate, Outcome
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import (
    CopyChangedError,
    MetadataConflictError,
    RefusedError,
    TierkeeperError,
)
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, ManagedLedger

Certificates = Mapping[int, Stored[Certificate]]


@dataclass(frozen=True, slots=True)
class Published:
    """The broker reads this ledger from our objects. `noop` when an earlier run did it.

    `released`: it is the only copy.
    """

    publication_key: str
    noop: bool = False
    released: bool = False


PublishResult = Published | Wait | TierkeeperError


@dataclass(frozen=True, slots=True, kw_only=True)
class ToPublish:
    """Certified attempts of one topic, and the topic's node that they were planned on.

    `replacing` names, by ledger, the broken attempt whose context the new one takes the place of.
    """

    certificates: Certificates
    ml_czxid: int
    replacing: Mapping[int, UUID] = field(default_factory=dict)

    @property
    def ledger_ids(self) -> Collection[int]:
        return self.certificates.keys()

    def prepare(self, stack: Stack, ml_name: str, seen: Seen) -> Half[PublishResult]:
        """What may be published now, behind the namespace's canary.

        Raises:
            RefusedError: a rule forbids publishing the topic; every reason says what lifts it.
            MetadataConflictError: the topic was deleted and made again since planning.
        """
        work = prepare_publication(stack, ml_name, self, seen)
        with stack.memory.turns.of(("canary", namespace_of(ml_name))):
            work = replace(work, proven=canary_stands(stack, ml_name, work.place))
            return publish_canary(stack, work).half


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationWork:
    """What is left to publish of a topic, and what was settled without touching it.

    `proven` says that the namespace's canary stands for the place with this digest: asked when it
    is the topic's turn, as another topic's canary may be on its way. `evidence` is what all of it
    stands on.
    """

    ml_name: str
    czxid: int
    place: str
    won: Mapping[int, Won]
    settled: Mapping[int, PublishResult]
    seen: Seen
    evidence: Dated
    proven: bool = False
    replacing: Mapping[int, UUID] = field(default_factory=dict)

    @property
    def half(self) -> Half[PublishResult]:
        return Half(self.settled, self if self.won else None)

    @property
    def ledger_ids(self) -> Collection[int]:
        return self.won.keys()

    @property
    def change(self) -> TopicChange:
        """The contexts of everything that is won."""
        copies = {i: _copy(won.certificate.record) for i, won in self.won.items()}
        return TopicChange(contexts=copies, replacing=self.replacing)

    @property
    def rehearse_unloaded(self) -> bool:
        """A canary is read even where nobody has loaded the topic."""
        return not self.proven

    def look_again(self, stack: Stack) -> Half[PublishResult]:
        return look_again(stack, self).half

    def finish(self, stack: Stack, confirmed: Confirmed) -> Mapping[int, PublishResult]:
        return finish_publication(stack, self, confirmed)

    def waits(self, wait: Wait) -> PublishResult:
        return wait

    def all_settled(self, result: PublishResult) -> PublicationWork:
        """One result for all that is left: the topic waits or fails, not the ledger."""
        return replace(self, won={}, settled={**self.settled, **dict.fromkeys(self.won, result)})


def prepare_publication(
    stack: Stack, ml_name: str, order: ToPublish, seen: Seen
) -> PublicationWork:
    """Gate, look at every copy, then win the outcome of each attempt. Raises as the order does."""
    certificates, ml_czxid, broken = order.certificates, order.ml_czxid, order.replacing
    topic_info = _read_topic(stack, ml_name, ml_czxid)
    place, evidence = _gate(stack, ml_name, topic_info, replaces=bool(broken))
    plan = plan_publication(topic_info, {i: c.record.uid for i, c in certificates.items()}, broken)
    settled: dict[int, PublishResult] = {**plan.waiting}
    recorded = recorded_publications(stack, ml_name)
    for ledger_id in plan.already:
        listed = topic_info.ledger(ledger_id)
        stands = recorded.counted(ledger_id, None if listed is None else listed.offload)
        if stands is not None:
            settled[ledger_id] = Published(
                stands.key, noop=True, released=_is_released(stack, listed)
            )
    off = why_off(stack, ml_name) if plan.write and not broken else None
    if off is not None:  # set since the run began; what readers see already goes on
        settled.update(dict.fromkeys(plan.write, off))
    wanted = {i: certificates[i] for i in (*plan.write, *plan.already) if i not in settled}
    copies = look_at_copies(stack, wanted)
    settled.update(_settle_copies(stack, ml_name, ml_czxid, copies, wanted))
    won: dict[int, Won] = {}
    if copies.sound:
        wait = settle_undos(stack, ml_name) or must_wait(stack, ml_name, seen)
        if wait is None:
            won, lost = _win_all(stack, {i: wanted[i] for i in copies.sound})
            settled.update(lost)
        else:
            settled.update(dict.fromkeys(copies.sound, wait))
    return PublicationWork(
        ml_name=ml_name,
        czxid=ml_czxid,
        place=place,
        won=won,
        settled=settled,
        replacing=broken,
        seen=seen,
        evidence=evidence.and_(copies.evidence),
    )


def _is_released(stack: Stack, listed: LedgerInfo | None) -> bool:
    if listed is None or listed.offload is None or not listed.offload.bookkeeper_deleted:
        return False
    return stack.ledgers.read(listed.ledger_id) is None


def _read_topic(stack: Stack, ml_name: str, czxid: int) -> ManagedLedger:
    found = stack.topics.read(ml_name)
    if found is None:
        raise deleted(ml_name, "published")
    if found[1].stat.czxid != czxid:
        raise MetadataConflictError(
            f"{topic_of(ml_name)}: its metadata node is a new one: the topic was deleted since the copy "
            f"was planned, and made again; nothing was published"
        )
    return found[0]


def _gate(
    stack: Stack, ml_name: str, topic_info: ManagedLedger, *, replaces: bool
) -> tuple[str, Dated]:
    """The digest of the place that brokers read, and how old that is; RefusedError without
    leave.
    """
    dated = asking(stack, Kind.POLICY, Kind.BROKERS)
    evidence = publish_evidence(stack, ml_name, topic_info)
    if replaces:
        # The brokers' lag, their own offloads and their skipping run on the broken contexts
        # already; a sound copy in their place is the one thing that still helps.
        evidence = replace(
            evidence,
            broker_may_release=True,
            coexist=True,
            brokers=not_skipping(evidence.brokers),
        )
    decision = decide_publish(evidence)
    if isinstance(decision, NotNow):
        raise RefusedError(str(decision))
    return place_digest(evidence.policy), dated


def _settle_copies(
    stack: Stack, ml_name: str, czxid: int, copies: CopiesNow, certificates: Certificates
) -> dict[int, PublishResult]:
    """What becomes of the ledgers whose copies are not sound, or were not looked at.

    A context that a run which died had written for such a copy is taken out again, while the
    bookies have the ledger.
    """
    quarantine_changed(stack, copies.wrong, certificates)
    results: dict[int, PublishResult] = {**copies.wrong}
    changed = {i for i, why in copies.wrong.items() if isinstance(why, CopyChangedError)}
    standing = {i: _copy(certificates[i].record) for i in changed}
    if standing:
        withdraw_standing(stack, ml_name, standing, czxid=czxid, why="its copy has changed")
    said = f"{len(copies.sound)} copies were looked at within half of evidence.age_max_s"
    results.update(dict.fromkeys(copies.later, Wait(Reason.WAITING_TO_DISTURB, said)))
    return results


def look_again(stack: Stack, work: PublicationWork) -> PublicationWork:
    """The same work on new evidence; what has changed since is settled."""
    if not work.won:
        return work
    evidence = work.evidence
    if not is_young(stack, evidence, Kind.POLICY):  # asked together with the brokers' settings
        topic_info = _read_topic(stack, work.ml_name, work.czxid)
        _place, newer = _gate(stack, work.ml_name, topic_info, replaces=bool(work.replacing))
        evidence = evidence.renewed(newer)
    certificates = {i: won.certificate for i, won in work.won.items()}
    copies = look_at_copies(stack, certificates)
    settled = _settle_copies(stack, work.ml_name, work.czxid, copies, certificates)
    return replace(
        work,
        won={i: work.won[i] for i in copies.sound},
        settled={**work.settled, **settled},
        evidence=evidence.renewed(copies.evidence),
    )


def _win_all(
    stack: Stack, certificates: Certificates
) -> tuple[dict[int, Won], dict[int, TierkeeperError]]:
    def win(ledger_id: int) -> Stored[Outcome] | None:
        return win_outcome(stack, certificates[ledger_id], "publish", reason="certified")

    ledger_ids = list(certificates)
    won: dict[int, Won] = {}
    lost: dict[int, TierkeeperError] = {}
    for ledger_id, outcome in zip(ledger_ids, stack.in_parallel(win, ledger_ids), strict=True):
        if outcome is None:
            lost[ledger_id] = RefusedError(
                f"ledger {ledger_id}: attempt {certificates[ledger_id].record.uid} was abandoned "
                f"by another run; offload the ledger again"
            )
        else:
            certificate = certificates[ledger_id]
            record = certificate.record
            reach("publish.outcome_won", ledger_id, topic=record.ml_name, attempt=record.uid)
            won[ledger_id] = Won(certificate=certificate, outcome=outcome)
    return won, lost


def publish_canary(stack: Stack, work: PublicationWork) -> PublicationWork:
    """Where the namespace has no canary, publish the smallest ledger alone until one was read.

    The work that is left may go out together.
    """
    while work.won and not work.proven:
        first = min(work.won, key=lambda i: (work.won[i].certificate.record.data.size, i))
        alone = replace(work, won={first: work.won[first]}, settled={})
        done, _nothing = carry_out(stack, work.ml_name, work.seen, alone.half, NOTHING)
        left = replace(
            work,
            won={i: won for i, won in work.won.items() if i != first},
            settled={**work.settled, **done.settled},
        )
        work = _behind_canary(stack, left, done.settled[first], done.failed)
    return work


def _behind_canary(
    stack: Stack, left: PublicationWork, canary: PublishResult, failed: TierkeeperError | None
) -> PublicationWork:
    if failed is not None:
        return left.all_settled(failed)
    if isinstance(canary, Wait) and canary.reason is Reason.BOOKIES_SHORT:
        return left.all_settled(canary)
    try:
        return look_again(stack, replace(left, proven=isinstance(canary, Published)))
    except TierkeeperError as error:
        return left.all_settled(error)


def _copy(certificate: Certificate) -> Copy:
    return Copy(certificate.uid, certificate.ledger.last_entry_id)


def finish_publication(
    stack: Stack, work: PublicationWork, confirmed: Confirmed
) -> dict[int, PublishResult]:
    """Record what was confirmed, and the namespace's canary if it was the first."""
    results: dict[int, PublishResult] = {**confirmed.waiting}
    ours = {i: won for i, won in work.won.items() if i not in confirmed.waiting}
    if not ours:
        return results
    recorded = record_publication(stack, work.ml_name, ours, confirmed)
    if not work.proven:
        first = next(iter(ours.values())).certificate.record
        record_canary(stack, work.ml_name, work.place, first)
    results.update({i: Published(key) for i, key in recorded.items()})
    return results
