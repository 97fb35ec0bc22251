"""Make a topic's certified copies what its broker reads. design section 6.2.

The order is the contract: gate, outcome of each attempt, one change of the topic (topic_change.py:
compare-and-set, unload, first and last entry of each ledger read through the broker), publication
record. A crash between any two is finished by the next run: it finds the context and confirms
again. What the broker cannot read is taken out again: the bookie copy is still there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from resources.errors import (
    MetadataConflictError,
    ObjectExistsError,
    RefusedError,
    TierkeeperError,
)
from tiering_assets.records import keys
from tiering_assets.records.models import (
    Canary,
    Certificate,
    Outcome,
    Publication,
    PublishedLedger,
)
from tiering_assets.steps.confirm import settle_undos
from tiering_assets.steps.crash_points import reach
from tiering_assets.steps.disturb import Seen, must_wait, see
from tiering_assets.steps.outcome import win_outcome
from tiering_assets.steps.pauses import why_off
from tiering_assets.steps.publications import recorded_publications
from tiering_assets.steps.quarantine import is_quarantined
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.topic_change import Confirmed, make_change
from tiering_assets.steps.topic_evidence import publish_evidence, topic_of
from tiering_assets.tiering.brokers import not_skipping
from tiering_assets.tiering.publication import plan_publication
from tiering_assets.tiering.publish_gate import Refuse, decide_publish
from tiering_assets.tiering.reasons import Reason, Wait
from tiering_assets.tiering.topic_edit import Copy, TopicChange
from tiering_assets.tiering.topic_policy import place_digest

Certificates = Mapping[int, Stored[Certificate]]


@dataclass(frozen=True, slots=True)
class Published:
    """The broker reads this ledger from our objects. `noop` when an earlier run did it."""

    publication_key: str
    noop: bool = False


PublishResult = Published | Wait | TierkeeperError


@dataclass(frozen=True, slots=True, kw_only=True)
class Won:
    """An attempt whose outcome is `publish`: no sweep can take it away any more."""

    certificate: Stored[Certificate]
    outcome: Stored[Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationWork:
    """What is left to publish of a topic, and what was settled without touching it.

    `proven` says that the namespace's canary stands for the place with this digest.
    """

    ml_name: str
    czxid: int
    place: str
    proven: bool
    won: Mapping[int, Won]
    settled: Mapping[int, PublishResult]
    seen: Seen
    replacing: Mapping[int, UUID] = field(default_factory=dict)


def publish_topic(
    stack: Stack,
    ml_name: str,
    certificates: Certificates,
    *,
    ml_czxid: int,
    replacing: Mapping[int, UUID] | None = None,
) -> dict[int, PublishResult]:
    """Publish certified attempts of one topic; safe to run twice.

    `replacing` names, by ledger, the broken attempt whose context the new one takes the place of.

    Raises:
        RefusedError: a rule forbids publishing the topic; every reason says what lifts it.
        MetadataConflictError: the topic was deleted and made again since planning.
    """
    work = prepare_publication(stack, ml_name, certificates, ml_czxid=ml_czxid, replacing=replacing)
    results, work = publish_canary(stack, work)
    if work.won:
        results.update(_publish(stack, work, work.won))
    return {**work.settled, **results}


def prepare_publication(
    stack: Stack,
    ml_name: str,
    certificates: Certificates,
    *,
    ml_czxid: int,
    replacing: Mapping[int, UUID] | None = None,
    seen: Seen | None = None,
) -> PublicationWork:
    """Gate, then win the outcome of each attempt. Raises as `publish_topic`."""
    broken = replacing or {}
    seen = seen or see(stack, ml_name)
    found = stack.topics.read(ml_name)
    if found is None or found[1].stat.czxid != ml_czxid:
        raise MetadataConflictError(
            f"{topic_of(ml_name)}: its metadata node is {'gone' if found is None else 'a new one'}: "
            f"the topic was deleted since the copy was planned; nothing was published"
        )
    topic_info, node = found
    evidence = publish_evidence(stack, ml_name, topic_info)
    if broken:
        # The brokers' lag, their own offloads and their skipping run on the broken contexts already;
        # a sound copy in their place is the one thing that still helps.
        evidence = replace(
            evidence,
            broker_may_release=True,
            coexist=True,
            brokers=not_skipping(evidence.brokers),
        )
    decision = decide_publish(evidence)
    if isinstance(decision, Refuse):
        raise RefusedError(str(decision))
    plan = plan_publication(topic_info, {i: c.record.uid for i, c in certificates.items()}, broken)
    settled: dict[int, PublishResult] = {**plan.waiting}
    recorded = recorded_publications(stack, ml_name)
    for ledger_id in plan.already:
        uid = certificates[ledger_id].record.uid
        if (ledger_id, uid) in recorded:
            settled[ledger_id] = Published(recorded[ledger_id, uid].key, noop=True)
    off = why_off(stack, ml_name) if plan.write and not broken else None
    if off is not None:  # set since the run began; what readers see already goes on
        settled.update(dict.fromkeys(plan.write, off))
    open_ids = [i for i in (*plan.write, *plan.already) if i not in settled]
    won: dict[int, Won] = {}
    if open_ids:
        wait = settle_undos(stack, ml_name) or must_wait(stack, ml_name, seen)
        if wait is None:
            won, lost = _win_all(stack, {i: certificates[i] for i in open_ids})
            settled.update(lost)
        else:
            settled.update(dict.fromkeys(open_ids, wait))
    place = place_digest(evidence.policy)
    return PublicationWork(
        ml_name=ml_name,
        czxid=node.stat.czxid,
        place=place,
        proven=_canary_stands(stack, ml_name, place),
        won=won,
        settled=settled,
        replacing=broken,
        seen=seen,
    )


def _win_all(
    stack: Stack, certificates: Certificates
) -> tuple[dict[int, Won], dict[int, TierkeeperError]]:
    won: dict[int, Won] = {}
    lost: dict[int, TierkeeperError] = {}
    for ledger_id, certificate in certificates.items():
        uid = certificate.record.uid
        if is_quarantined(stack, ledger_id, uid):
            lost[ledger_id] = RefusedError(
                f"ledger {ledger_id}: attempt {uid} is quarantined since it was certified; "
                f"offload the ledger again"
            )
            continue
        outcome = win_outcome(stack, certificate, "publish", reason="certified")
        if outcome is None:
            lost[ledger_id] = RefusedError(
                f"ledger {ledger_id}: attempt {certificate.record.uid} was abandoned by another run; "
                f"offload the ledger again"
            )
        else:
            reach("publish.outcome_won")
            won[ledger_id] = Won(certificate=certificate, outcome=outcome)
    return won, lost


def publish_canary(
    stack: Stack, work: PublicationWork
) -> tuple[dict[int, PublishResult], PublicationWork]:
    """Where the namespace has no canary, publish the smallest ledger alone until one was read.

    Returns what that settled and the work that is left, which may go out together.
    """
    results: dict[int, PublishResult] = {}
    while work.won and not work.proven:
        first = min(work.won, key=lambda i: (work.won[i].certificate.record.data.size, i))
        done = _publish(stack, work, {first: work.won[first]})
        results.update(done)
        left = {i: won for i, won in work.won.items() if i != first}
        result = done[first]
        if isinstance(result, Wait) and result.reason is Reason.BOOKIES_SHORT:
            results.update(dict.fromkeys(left, result))  # the topic waits, not the ledger
            left = {}
        work = replace(work, won=left, proven=isinstance(result, Published))
    return results, work


def _publish(
    stack: Stack, work: PublicationWork, batch: Mapping[int, Won]
) -> dict[int, PublishResult]:
    confirmed = make_change(
        stack,
        work.ml_name,
        TopicChange(contexts=copies_of(batch), replacing=work.replacing),
        czxid=work.czxid,
        seen=work.seen,
        rehearse_unloaded=not work.proven,
    )
    if isinstance(confirmed, Wait):
        return dict.fromkeys(batch, confirmed)
    return finish_publication(stack, work, batch, confirmed)


def copies_of(batch: Mapping[int, Won]) -> dict[int, Copy]:
    """What a change of the topic needs to know of these attempts."""
    return {
        i: Copy(won.certificate.record.uid, won.certificate.record.ledger.last_entry_id)
        for i, won in batch.items()
    }


def finish_publication(
    stack: Stack, work: PublicationWork, batch: Mapping[int, Won], confirmed: Confirmed
) -> dict[int, PublishResult]:
    """Record what was confirmed, and the namespace's canary if it was the first."""
    results: dict[int, PublishResult] = {**confirmed.waiting}
    ours = {i: won for i, won in batch.items() if i not in confirmed.waiting}
    if not ours:
        return results
    publication = _record(stack, work.ml_name, ours, confirmed)
    reach("publish.recorded")
    if not work.proven:
        _record_canary(stack, work, next(iter(ours.values())).certificate.record)
    results.update({i: Published(publication.key) for i in ours})
    return results


def _record(
    stack: Stack, ml_name: str, ours: Mapping[int, Won], confirmed: Confirmed
) -> Stored[Publication]:
    publication = Publication(
        ml_name=ml_name,
        ledgers=tuple(
            PublishedLedger(
                ledger_id=i,
                uid=won.certificate.record.uid,
                certificate_sha256=won.certificate.sha256,
                previous=won.outcome.sha256,
            )
            for i, won in sorted(ours.items())
        ),
        node_version=confirmed.edited.version,
        node_czxid=confirmed.edited.czxid,
        confirmed_by=confirmed.by,
        confirmed_at=stack.now(),
        writer=stack.writer,
    )
    number = len(stack.book.keys(keys.publications_of(ml_name))) + 1
    while True:
        try:
            return stack.book.create(keys.publication(ml_name, number), publication)
        except ObjectExistsError:  # another run of the same topic; numbers only order them
            number += 1


def _canary_stands(stack: Stack, ml_name: str, place: str) -> bool:
    found = stack.book.read(Canary, keys.canary(ml_name))
    return found is not None and found.record.policy_digest == place


def _record_canary(stack: Stack, work: PublicationWork, certificate: Certificate) -> None:
    canary = Canary(
        namespace=keys.namespace_of(work.ml_name),
        policy_digest=work.place,
        ledger_id=certificate.ledger.ledger_id,
        uid=certificate.uid,
        proven_at=stack.now(),
        writer=stack.writer,
    )
    stored, ours = stack.book.create_or_read(keys.canary(work.ml_name), canary)
    if not ours and stored.record.policy_digest != work.place:
        stack.book.replace(stored, canary)
    reach("publish.canary_recorded")
