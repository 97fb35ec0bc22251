"""Make a topic's certified copies what its broker reads. design section 6.2.

The order is the contract: gate, outcome of each attempt, one compare-and-set of all contexts, unload
at once, first and last entry of each ledger read through the broker, publication record. A crash
between any two is finished by the next run: it finds the context and confirms again. What the broker
cannot read is taken out again: the bookie copy is still there, and readers go back to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from resources.errors import (
    MetadataConflictError,
    ObjectExistsError,
    RefusedError,
    TierkeeperError,
)
from resources.metastore.cas import EditResult
from resources.metastore.ledger_info import ManagedLedger
from resources.metastore.offload_context import (
    OffloadContext,
    driver_properties,
    publish_contexts,
    remove_contexts,
)
from tiering_assets.records import keys
from tiering_assets.records.models import (
    Canary,
    Certificate,
    Outcome,
    Publication,
    PublishedLedger,
)
from tiering_assets.steps.confirm import NOT_LOADED, rehearse, reload_topic
from tiering_assets.steps.crash_points import reach
from tiering_assets.steps.node_edit import edit_topic
from tiering_assets.steps.outcome import win_outcome
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.topic_evidence import publish_evidence, topic_of
from tiering_assets.tiering.publication import PublicationPlan, plan_publication
from tiering_assets.tiering.publish_gate import Refuse, decide_publish
from tiering_assets.tiering.reasons import Wait
from tiering_assets.tiering.topic_policy import place_digest

Certificates = Mapping[int, Stored[Certificate]]


@dataclass(frozen=True, slots=True)
class Published:
    """The broker reads this ledger from our objects. `noop` when an earlier run did it."""

    publication_key: str
    noop: bool = False


PublishResult = Published | Wait | TierkeeperError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Won:
    certificate: Stored[Certificate]
    outcome: Stored[Outcome]


def publish_topic(
    stack: Stack, ml_name: str, certificates: Certificates, *, ml_czxid: int
) -> dict[int, PublishResult]:
    """Publish certified attempts of one topic; safe to run twice.

    Raises:
        RefusedError: a rule forbids publishing the topic; every reason says what lifts it.
        MetadataConflictError: the topic was deleted and made again since planning.
    """
    found = stack.topics.read(ml_name)
    if found is None or found[1].stat.czxid != ml_czxid:
        raise MetadataConflictError(
            f"{topic_of(ml_name)}: its metadata node is {'gone' if found is None else 'a new one'}: "
            f"the topic was deleted since the copy was planned; nothing was published"
        )
    topic_info, node = found
    decision = decide_publish(evidence := publish_evidence(stack, ml_name, topic_info))
    if isinstance(decision, Refuse):
        raise RefusedError(str(decision))
    results: dict[int, PublishResult] = {}
    plan = plan_publication(topic_info, {i: c.record.uid for i, c in certificates.items()})
    results.update(plan.waiting)
    recorded = recorded_publications(stack, ml_name)
    for ledger_id in plan.already:
        uid = certificates[ledger_id].record.uid
        if (ledger_id, uid) in recorded:
            results[ledger_id] = Published(recorded[ledger_id, uid].key, noop=True)
    open_ids = [i for i in (*plan.write, *plan.already) if i not in results]
    won, lost = _win_all(stack, {i: certificates[i] for i in open_ids})
    results.update(lost)
    place = place_digest(evidence.policy)
    proven = _canary_stands(stack, ml_name, place)
    for batch in _batches(won, proven=proven):
        done = _publish_batch(stack, ml_name, node.stat.czxid, batch, proven=proven)
        results.update(done)
        sung = next((i for i, result in done.items() if isinstance(result, Published)), None)
        if not proven and sung is not None:
            _record_canary(stack, ml_name, batch[sung].certificate.record, place)
            proven = True
    return results


def _win_all(
    stack: Stack, certificates: Certificates
) -> tuple[dict[int, _Won], dict[int, TierkeeperError]]:
    won: dict[int, _Won] = {}
    lost: dict[int, TierkeeperError] = {}
    for ledger_id, certificate in certificates.items():
        outcome = win_outcome(stack, certificate, "publish", reason="certified")
        if outcome is None:
            lost[ledger_id] = RefusedError(
                f"ledger {ledger_id}: attempt {certificate.record.uid} was abandoned by another run; "
                f"offload the ledger again"
            )
        else:
            won[ledger_id] = _Won(certificate=certificate, outcome=outcome)
    reach("publish.outcome_won")
    return won, lost


def _batches(won: Mapping[int, _Won], *, proven: bool) -> Sequence[Mapping[int, _Won]]:
    """All ledgers together, but the smallest alone first where the namespace has no canary yet."""
    if not won:
        return []
    if proven or len(won) == 1:
        return [won]
    first = min(won, key=lambda i: (won[i].certificate.record.data.size, i))
    rest = {i: w for i, w in won.items() if i != first}
    return [{first: won[first]}, rest]


def _publish_batch(
    stack: Stack, ml_name: str, czxid: int, batch: Mapping[int, _Won], *, proven: bool
) -> dict[int, PublishResult]:
    topic = topic_of(ml_name)
    wanted = {i: w.certificate.record.uid for i, w in batch.items()}
    contexts = _contexts(stack, wanted)
    seen: list[PublicationPlan] = []

    def edit(topic_info: ManagedLedger) -> ManagedLedger | None:
        plan = plan_publication(topic_info, wanted)
        seen.append(plan)
        if not plan.write:
            return None
        return publish_contexts(topic_info, {i: contexts[i] for i in plan.write})

    def applied(topic_info: ManagedLedger) -> bool:
        return not plan_publication(topic_info, wanted).write

    edited = edit_topic(stack, ml_name, edit, czxid=czxid, applied=applied)
    reach("publish.context_set")
    waiting = seen[-1].waiting
    ours = {i: uid for i, uid in wanted.items() if i not in waiting}
    results: dict[int, PublishResult] = dict(waiting)
    if not ours:
        return results
    stack.narrate(f"{topic}: {len(ours)} ledgers published in node version {edited.version}")
    confirmed_by = reload_topic(stack, topic, point="publish.unloaded")
    if confirmed_by != NOT_LOADED or not proven:
        _rehearse_or_withdraw(stack, ml_name, czxid, ours, batch)
    reach("publish.confirmed")
    publication = _record(stack, ml_name, edited, {i: batch[i] for i in ours}, confirmed_by)
    reach("publish.recorded")
    results.update({i: Published(publication.key) for i in ours})
    return results


def _contexts(stack: Stack, wanted: Mapping[int, UUID]) -> dict[int, OffloadContext]:
    store, driver = stack.settings.store, stack.settings.offload.driver
    properties = driver_properties(
        driver=driver, bucket=store.bucket, region=store.region, endpoint=store.endpoint
    )
    stamp = int(stack.now().timestamp() * 1000)
    return {
        ledger_id: OffloadContext(
            uid=uid,
            complete=True,
            timestamp_ms=stamp,
            driver_name=driver,
            properties=properties,
        )
        for ledger_id, uid in wanted.items()
    }


def _rehearse_or_withdraw(
    stack: Stack, ml_name: str, czxid: int, ours: Mapping[int, UUID], batch: Mapping[int, _Won]
) -> None:
    topic = topic_of(ml_name)
    lasts = {i: batch[i].certificate.record.ledger.last_entry_id for i in ours}
    try:
        rehearse(stack, topic, lasts)
    except RefusedError as error:
        withdraw(stack, ml_name, ours, czxid=czxid)
        raise RefusedError(
            f"{error}; the contexts were taken out again and readers are back on the bookies. "
            f"Check the broker's offloader: driver, bucket, credentials and its log"
        ) from error


def withdraw(stack: Stack, ml_name: str, ours: Mapping[int, UUID], *, czxid: int) -> None:
    """Take our contexts out of the node again and make the broker see it."""

    def edit(topic_info: ManagedLedger) -> ManagedLedger | None:
        there = {
            i: uid
            for i, uid in ours.items()
            if (listed := topic_info.ledger(i)) is not None
            and listed.offload is not None
            and listed.offload.uid == uid
        }
        return remove_contexts(topic_info, there) if there else None

    edit_topic(stack, ml_name, edit, czxid=czxid, applied=lambda info: edit(info) is None)
    reload_topic(stack, topic_of(ml_name), point="publish.withdrawn")


def _record(
    stack: Stack, ml_name: str, edited: EditResult, ours: Mapping[int, _Won], confirmed_by: str
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
        node_version=edited.version,
        node_czxid=edited.czxid,
        confirmed_by=confirmed_by,
        confirmed_at=stack.now(),
        writer=stack.writer,
    )
    number = len(stack.book.keys(keys.publications_of(ml_name))) + 1
    while True:
        try:
            return stack.book.create(keys.publication(ml_name, number), publication)
        except ObjectExistsError:  # another run of the same topic; numbers only order them
            number += 1


def _canary_stands(stack: Stack, ml_name: str, place_digest: str) -> bool:
    found = stack.book.read(Canary, keys.canary(ml_name))
    return found is not None and found.record.policy_digest == place_digest


def _record_canary(stack: Stack, ml_name: str, certificate: Certificate, place_digest: str) -> None:
    canary = Canary(
        namespace=keys.namespace_of(ml_name),
        policy_digest=place_digest,
        ledger_id=certificate.ledger.ledger_id,
        uid=certificate.uid,
        proven_at=stack.now(),
        writer=stack.writer,
    )
    stored, ours = stack.book.create_or_read(keys.canary(ml_name), canary)
    if not ours and stored.record.policy_digest != place_digest:
        stack.book.replace(stored, canary)


def recorded_publications(
    stack: Stack, ml_name: str
) -> dict[tuple[int, UUID], Stored[Publication]]:
    """Confirmed publications of a topic by (ledger, attempt); the first confirmation counts."""
    found: dict[tuple[int, UUID], Stored[Publication]] = {}
    for stored in stack.book.iter_records(Publication, keys.publications_of(ml_name)):
        for ledger in stored.record.ledgers:
            found.setdefault((ledger.ledger_id, ledger.uid), stored)
    return found
