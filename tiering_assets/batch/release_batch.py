"""Release a batch of ledgers of any topics: one outcome each, topic by topic.

Owns: one topic's failure is its own, and every outcome comes with the records that prove it.
release.py decides and deletes. What waits to be published of a topic goes out with its reload.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from resources.errors import LedgerNotFoundError, TierkeeperError
from tiering_assets.automation.tick_memory import CertifiedAttempts
from tiering_assets.batch.withdrawn import read_withdrawn
from tiering_assets.change.publish import Published
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.record_book import Stored
from tiering_assets.ground.release_audit import find_release_faults
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.claims import read_claim
from tiering_assets.look.ledger.resume import Certified, find_resumable
from tiering_assets.look.ledger.survey import ml_names_of
from tiering_assets.look.topic.topic_evidence import Shadows, find_shadows
from tiering_assets.look.topic.user_topics import readable_topics
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, Release, ReleaseIntent
from tiering_assets.release.approval import Approval
from tiering_assets.release.gate import MayRelease
from tiering_assets.release.release import release_topic
from tiering_assets.release.tier_topic import tier_topic
from tiering_assets.release.work import Released, ReleaseResult


@dataclass(frozen=True, slots=True)
class ReleaseRecords:
    """The records of one ledger's newest release."""

    certificate: Stored[Certificate] | None
    intent: Stored[ReleaseIntent] | None
    release: Stored[Release]

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with this release by its records; nothing, if the rules were kept."""
        certificate, intent = self.certificate, self.intent
        return find_release_faults(
            None if certificate is None else certificate.record,
            None if certificate is None else certificate.sha256,
            None if intent is None else intent.record,
            None if intent is None else intent.sha256,
            self.release.record,
        )


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
class Waiting:
    """Certified ledgers of a topic, and the node they were planned on."""

    ml_czxid: int
    certificates: dict[int, Stored[Certificate]]


def release_batch(
    stack: Stack,
    ledger_ids: Iterable[int],
    *,
    publish_waiting: bool = False,
    approval: Approval | None = None,
    along: dict[int, PublishedAlong] | None = None,
) -> list[ReleaseOutcome]:
    """Release what the gate lets go; one outcome per ledger, in id order.

    With `publish_waiting`, certified ledgers of a topic that is reloaded anyway are published with
    the same reload; progress tells which, and `along` gets them. With `approval` only what a plan
    lists is released.
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
    for ml_name, ids in sorted(topics.items()):
        try:
            if ml_name in waiting:
                released, published = _with_waiting(
                    stack, ml_name, ids, shadows, waiting[ml_name], approval
                )
                results.update(released)
                if along is not None:
                    along.update(published)
            else:
                results.update(
                    release_topic(stack, ml_name, ids, shadows=shadows, approval=approval)
                )
        except TierkeeperError as error:
            results.update(dict.fromkeys(ids, error))
    return _outcomes(stack, results, owners)


def _with_waiting(
    stack: Stack,
    ml_name: str,
    ledger_ids: list[int],
    shadows: Shadows,
    waiting: Waiting,
    approval: Approval | None,
) -> tuple[Mapping[int, ReleaseResult], dict[int, PublishedAlong]]:
    results = tier_topic(
        stack,
        ml_name,
        waiting.certificates,
        ledger_ids,
        ml_czxid=waiting.ml_czxid,
        shadows=shadows,
        approval=approval,
    )
    for ledger_id, result in sorted(results.published.items()):
        said = "published along" if isinstance(result, Published) else f"not published: {result}"
        stack.narrate(f"ledger {ledger_id}: {said}")
    published = {
        ledger_id: PublishedAlong(waiting.certificates[ledger_id], result)
        for ledger_id, result in results.published.items()
        if isinstance(result, Published)
    }
    return results.released, published


def waiting_certificates(stack: Stack, topics: Iterable[str]) -> dict[str, Waiting]:
    """Certified ledgers of these topics that no context names yet, by topic."""
    certified = CertifiedAttempts(stack)
    found: dict[str, Waiting] = {}
    for topic in readable_topics(stack, sorted(topics)):
        closed = [one for one in topic.info.ledgers if one.offload is None and not one.is_open]
        ledger_ids = [one.ledger_id for one in closed]
        certified.ask(ledger_ids)
        for ledger_id in filter(certified.attempts, ledger_ids):
            proven = _proven(stack, ledger_id)
            if proven is None:
                continue
            record = proven.attempt.record
            known = found.setdefault(topic.ml_name, Waiting(record.ml_czxid, {}))
            if known.ml_czxid == record.ml_czxid:
                known.certificates[ledger_id] = proven.certificate
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
        stack.narrate(f"ledger {ledger_id}: not published along: {why}")
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
    """The newest release of a ledger with what stands before it; None when it was never released."""
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
