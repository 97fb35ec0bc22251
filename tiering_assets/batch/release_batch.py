"""Release a batch of ledgers of any topics: one outcome each, topics side by side.

Owns: one topic's failure is its own, and every outcome comes with the records that prove it.
release.py decides and deletes. What waits to be published of a topic goes out with its reload.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tiering_assets.automation.tick_memory import CertifiedAttempts
from tiering_assets.batch.withdrawn import read_withdrawn
from tiering_assets.change.change_topic import TopicResults, change_topic
from tiering_assets.change.publish import Published, PublishResult, ToPublish
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.claims import read_claim
from tiering_assets.look.ledger.resume import Certified, find_resumable
from tiering_assets.look.ledger.survey import ml_names_of
from tiering_assets.look.topic.topic_evidence import find_shadows
from tiering_assets.look.topic.user_topics import readable_topics
from tiering_assets.records import keys
from tiering_assets.records.chain import release_faults
from tiering_assets.records.models import Certificate, Release, ReleaseIntent
from tiering_assets.records.stored import Stored
from tiering_assets.release.approval import Approval
from tiering_assets.release.gate import MayRelease
from tiering_assets.release.release import ToRelease
from tiering_assets.release.work import Released, ReleaseResult
from tiering_assets.resources.errors import LedgerNotFoundError, TierkeeperError


@dataclass(frozen=True, slots=True)
class ReleaseRecords:
    """The records of one ledger's newest release."""

    certificate: Stored[Certificate] | None
    intent: Stored[ReleaseIntent] | None
    release: Stored[Release]

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with this release by its records; nothing, if the rules were kept."""
        return release_faults(self.certificate, self.intent, self.release)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOutcome:
    """`records` are there when the ledger is released; a plan's preview says what it would do."""

    ledger_id: int
    ml_name: str | None
    result: ReleaseResult | MayRelease
    records: ReleaseRecords | None = None


@dataclass(frozen=True, slots=True)
class PublishedAlong:
    """A ledger that waited and went out with a release's reload, and what certified it."""

    certificate: Stored[Certificate]
    published: Published


@dataclass(frozen=True, slots=True)
class ReleaseResults:
    """One outcome per ledger asked for, in id order, and what was published with their reloads."""

    outcomes: list[ReleaseOutcome]
    along: dict[int, PublishedAlong]


def release_batch(
    stack: Stack,
    ledger_ids: Iterable[int],
    *,
    publish_waiting: bool = False,
    approval: Approval | None = None,
) -> ReleaseResults:
    """Release what the gate lets go.

    With `publish_waiting`, certified ledgers of a topic that is reloaded anyway are published with
    the same reload. With `approval` only what a plan lists is released.
    """
    wanted = sorted(set(ledger_ids))
    owners = ml_names_of(stack, wanted)
    topics: dict[str, list[int]] = defaultdict(list)
    results: dict[int, ReleaseResult] = {}
    for ledger_id in wanted:
        if ledger_id in owners:
            topics[owners[ledger_id]].append(ledger_id)
        else:
            results[ledger_id] = LedgerNotFoundError(
                f"ledger {ledger_id}: neither BookKeeper nor a record names its topic"
            )
    shadows = find_shadows(stack)
    waiting = waiting_certificates(stack, topics) if publish_waiting else {}
    along: dict[int, PublishedAlong] = {}

    def change(ml_name: str) -> TopicResults[PublishResult, ReleaseResult]:
        order = ToRelease(ledger_ids=topics[ml_name], shadows=shadows, approval=approval)
        return change_topic(stack, ml_name, publish=waiting.get(ml_name), release=order)

    stack.book.take_up(ledger_id for of_topic in topics.values() for ledger_id in of_topic)
    names = sorted(topics)
    for ml_name, changed in zip(names, stack.topics_in_parallel(change, names), strict=True):
        results.update(changed.released)
        if ml_name in waiting:
            along.update(_along(stack, waiting[ml_name], changed.published))
    if any(isinstance(one, TierkeeperError) for one in results.values()):
        stack.book.note_failure()
    return ReleaseResults(_outcomes(stack, results, owners), along)


def _along(
    stack: Stack, waiting: ToPublish, results: Mapping[int, PublishResult]
) -> dict[int, PublishedAlong]:
    for ledger_id, result in sorted(results.items()):
        said = "published along" if isinstance(result, Published) else f"not published: {result}"
        stack.tell(f"ledger {ledger_id}: {said}", ledger_id)
    return {
        ledger_id: PublishedAlong(waiting.certificates[ledger_id], result)
        for ledger_id, result in results.items()
        if isinstance(result, Published)
    }


def waiting_certificates(stack: Stack, topics: Iterable[str]) -> dict[str, ToPublish]:
    """Certified ledgers of these topics that no context names yet, by topic.

    Those of one topic are planned on the same node as the first.
    """
    certified = CertifiedAttempts(stack)
    found: dict[str, ToPublish] = {}
    for topic in readable_topics(stack, sorted(topics)):
        closed = [one for one in topic.info.ledgers if one.offload is None and not one.is_open]
        ledger_ids = [one.ledger_id for one in closed]
        certified.ask(ledger_ids)
        proven = {i: _proven(stack, i) for i in filter(certified.attempts, ledger_ids)}
        ready = {i: one for i, one in proven.items() if one is not None}
        if ready:
            czxid = next(iter(ready.values())).attempt.record.ml_czxid
            found[topic.ml_name] = ToPublish(
                ml_czxid=czxid,
                certificates={
                    i: one.certificate
                    for i, one in ready.items()
                    if one.attempt.record.ml_czxid == czxid
                },
            )
    return found


def _proven(stack: Stack, ledger_id: int) -> Certified | None:
    """A proven copy that may go along, unless another run works on its ledger."""
    claim = read_claim(stack, ledger_id)
    if claim is not None and claim.record.expires_at > stack.objects.server_time():
        return None
    resumable = find_resumable(stack, ledger_id)
    if isinstance(resumable, Certified) and _may_go_along(stack, ledger_id, resumable):
        return resumable
    return None


def _may_go_along(stack: Stack, ledger_id: int, proven: Certified) -> bool:
    """What may not says so, and holds up neither the release nor other ledgers."""
    why: Wait | TierkeeperError | None = None
    try:
        node = stack.ledgers.read(ledger_id)
        if node is not None:
            why = read_withdrawn(stack, proven.certificate, node)
    except TierkeeperError as error:
        why = error
    if why is not None:
        stack.tell(f"ledger {ledger_id}: not published along: {why}", ledger_id)
    return why is None


def _outcomes(
    stack: Stack, results: Mapping[int, ReleaseResult], owners: Mapping[int, str]
) -> list[ReleaseOutcome]:
    """Each result with the records behind it, in id order."""
    return [
        ReleaseOutcome(
            ledger_id=ledger_id,
            ml_name=owners.get(ledger_id),
            result=result,
            records=release_records(stack, ledger_id) if isinstance(result, Released) else None,
        )
        for ledger_id, result in sorted(results.items())
    ]


def release_records(stack: Stack, ledger_id: int) -> ReleaseRecords | None:
    """The newest release of a ledger with what stands before it; None when it was never
    released.
    """
    found = [
        stack.book.require(Release, key)
        for key in stack.book.keys(keys.releases_of(ledger_id))
        if keys.is_release(key)
    ]
    if not found:
        return None
    newest = max(found, key=lambda stored: stored.stored_at)
    uid = newest.record.uid
    return ReleaseRecords(
        certificate=stack.book.read(Certificate, keys.certificate(ledger_id, uid)),
        intent=stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, uid)),
        release=newest,
    )
