"""A release under way: which ledgers of a topic, on what evidence, proven once more, and its end.

Owns: each group is proven again from scratch right before its delete, and is as large as can be
looked at in time. What may not go any more, or cannot be proven in time, gets its mark taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from tiering_assets.change.change_topic import Half
from tiering_assets.change.disturb import Seen
from tiering_assets.change.topic_change import Confirmed, undo
from tiering_assets.change.topic_edit import Copy, TopicChange
from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Dated, Kind, all_of
from tiering_assets.ground.reasons import NotNow, Wait, not_now
from tiering_assets.ground.stack import REQUESTS_AT_ONCE, Stack, is_young
from tiering_assets.look.topic.topic_evidence import Shadows, deleted, topic_of
from tiering_assets.records import keys
from tiering_assets.records.models import Release, ReleaseIntent
from tiering_assets.records.stored import Stored
from tiering_assets.release.evidence import Evidence, gather
from tiering_assets.release.gate import MayRelease, decide_release
from tiering_assets.release.guarded_delete import delete_ledgers
from tiering_assets.release.look import TopicEvidence, gather_topic
from tiering_assets.resources.errors import RefusedError, StaleEvidenceError, TierkeeperError
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.resources.metastore.store import Node

LATER = NotNow(("there was no time to look at it again: the next run goes on from here",))
AT_ONCE = REQUESTS_AT_ONCE  # ledgers between two looks at the clock


@dataclass(frozen=True, slots=True)
class Released:
    """The bookie copy is gone from BookKeeper's metadata. `noop` when an earlier run did it."""

    bytes_released: int
    noop: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A ledger that the gate lets go, with its intent record written.

    `read` is when every byte of it was read again; nothing where none has to be.
    """

    evidence: Evidence
    uid: UUID
    intent: Stored[ReleaseIntent]
    ledger: LedgerNode
    read: Dated = field(default_factory=Dated)

    def dated(self, evidence: Evidence) -> Dated:
        """How old a look at it is, with the reading of its bytes, which no look repeats."""
        return evidence.dated.and_(self.read)


ReleaseResult = Released | NotNow[str] | TierkeeperError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWork:
    """Ledgers of a topic to release now, and what was settled without touching the topic.

    `about` is the newest evidence about the topic.
    """

    ml_name: str
    czxid: int
    due: Mapping[int, Due]
    settled: Mapping[int, ReleaseResult]
    seen: Seen
    about: TopicEvidence
    shadows: Shadows

    @property
    def half(self) -> Half[ReleaseResult]:
        return Half(self.settled, self if self.due else None)

    @property
    def ledger_ids(self) -> Collection[int]:
        return self.due.keys()

    @property
    def change(self) -> TopicChange:
        return TopicChange(marks=copies_of(self.due))

    @property
    def evidence(self) -> Dated:
        """How old the oldest of each kind is, over all due ledgers."""
        return all_of(item.dated(item.evidence) for item in self.due.values())

    @property
    def rehearse_unloaded(self) -> bool:
        """What was published has been read; nobody loads a topic to delete its bookie copies."""
        return False

    def look_again(self, stack: Stack) -> Half[ReleaseResult]:
        """What the other half of the change has learned meanwhile counts for this one, too."""
        return gate_again(stack, self, at_once=1, anew=True).half

    def finish(self, stack: Stack, confirmed: Confirmed) -> Mapping[int, ReleaseResult]:
        return finish_release(stack, self)

    def waits(self, wait: Wait) -> ReleaseResult:
        return not_now(str(wait))


def decide_now(stack: Stack, evidence: Evidence) -> MayRelease | NotNow[str]:
    """The gate's decision, with the withdrawal window on top of the lag."""
    window = timedelta(seconds=stack.settings.release.withdrawal_window_s)
    return decide_release(evidence.judged, lag=stack.deletion_lag + window, now=stack.now())


def copies_of(due: Mapping[int, Due]) -> dict[int, Copy]:
    """What a change of the topic needs to know of these ledgers."""
    return {i: Copy(item.uid, item.ledger.metadata.last_entry_id) for i, item in due.items()}


def gate_again(
    stack: Stack, work: ReleaseWork, *, at_once: int = AT_ONCE, anew: bool = False
) -> ReleaseWork:
    """The same work on new evidence; what may not go any more is settled, with its reasons.

    `anew`: brokers are asked for their settings even if they were just now.

    What could not be looked at in time waits for the next run, so that a topic is reloaded once.
    """
    about, evidence = gate_group(stack, work, sorted(work.due), at_once, anew=anew)
    stopped = stopped_since(stack, work.due, evidence)
    later = {i: LATER for i in work.due if i not in evidence}
    due = {i: replace(work.due[i], evidence=e) for i, e in evidence.items() if i not in stopped}
    return replace(work, about=about, due=due, settled={**work.settled, **stopped, **later})


def gate_group(
    stack: Stack, work: ReleaseWork, left: Sequence[int], at_once: int, *, anew: bool = False
) -> tuple[TopicEvidence, dict[int, Evidence]]:
    """New evidence of as many of the ledgers as can be looked at in time; of one at least."""
    about = look_again(stack, work, anew=anew)
    before = {i: work.due[i].evidence for i in left}
    group: dict[int, Evidence] = {}
    for start in range(0, len(left), at_once):
        if group and not is_young(stack, about.evidence, Kind.HOLDS):
            break
        some = left[start : start + at_once]
        group.update(gather(stack, about, some, before=before))
    return about, group


def look_again(stack: Stack, work: ReleaseWork, *, anew: bool = False) -> TopicEvidence:
    found = stack.topics.read(work.ml_name)
    if found is None or found[1].stat.czxid != work.czxid:
        raise deleted(work.ml_name, "released")
    topic, node = found
    about = gather_topic(
        stack, work.ml_name, topic, work.shadows, work.seen, before=work.about, anew=anew
    )
    refuse_old_metadata(about, node)
    return about


def stopped_since(
    stack: Stack, due: Mapping[int, Due], evidence: Mapping[int, Evidence]
) -> dict[int, NotNow[str]]:
    """Ledgers that the gate does not let go any more, or that are not those of their intents."""
    stopped: dict[int, NotNow[str]] = {}
    for ledger_id, now in evidence.items():
        item, decision = due[ledger_id], decide_now(stack, now)
        digest = None if now.certificate is None else now.certificate.sha256
        if isinstance(decision, NotNow):
            stopped[ledger_id] = NotNow(
                tuple(f"since it was begun: {reason}" for reason in decision.reasons)
            )
        elif (decision.uid, digest) != (item.uid, item.intent.record.certificate_sha256):
            stopped[ledger_id] = NotNow(
                (f"since it was begun: attempt {decision.uid} took its place",)
            )
    return stopped


def refuse_old_metadata(about: TopicEvidence, node: Node) -> None:
    """A store restored from an old snapshot knows less than our records: nothing is deleted."""
    recorded = max(
        (
            stored.record.node_version
            for stored in about.publications.records
            if stored.record.node_czxid == node.stat.czxid
        ),
        default=0,
    )
    if node.stat.version < recorded:
        raise RefusedError(
            f"{topic_of(about.ml_name)}: node version {node.stat.version} is below the recorded "
            f"{recorded}: the metadata store went back in time; nothing is released"
        )


def finish_release(stack: Stack, work: ReleaseWork) -> dict[int, ReleaseResult]:
    """Delete marked ledgers that the broker has just read from their objects, and record it.

    They go in groups that can be looked at within half of the evidence's age; each is proven again
    from scratch right before. Where that took too long it is tried once more with fewer at once,
    and then the marks are taken back.
    """
    results: dict[int, ReleaseResult] = {}
    left, at_once = sorted(work.due), AT_ONCE
    while left:
        _about, group = gate_group(stack, work, left, at_once)
        results.update(_take_back(stack, work, stopped_since(stack, work.due, group)))
        going = [i for i in group if i not in results]
        try:
            if going:
                results.update(_delete(stack, work, {i: group[i] for i in going}))
        except StaleEvidenceError as error:
            if at_once > 1:
                at_once = 1
                left = [i for i in left if i not in results]
                continue
            late = NotNow((f"the marks were taken back: {error}",))
            results.update(_take_back(stack, work, {i: late for i in left if i not in results}))
            return results
        except TierkeeperError as error:
            if not any(isinstance(one, Released) for one in results.values()):
                raise
            return {**dict.fromkeys(left, error), **results}  # an earlier group is gone already
        left = [i for i in left if i not in results]
    return results


def _delete(
    stack: Stack, work: ReleaseWork, group: Mapping[int, Evidence]
) -> dict[int, ReleaseResult]:
    items = {i: work.due[i] for i in group}
    delete_ledgers(
        stack,
        work.ml_name,
        {i: (item.uid, item.intent.record.ledger) for i, item in items.items()},
        czxid=work.czxid,
        evidence=all_of(items[i].dated(one) for i, one in group.items()),
    )
    reach("release.deleted", *items, topic=work.ml_name)
    stack.in_parallel(
        lambda item: record_release(stack, work.ml_name, item.intent), list(items.values())
    )
    stack.tell(f"{topic_of(work.ml_name)}: {len(items)} ledgers released", topic=work.ml_name)
    return {i: Released(bytes_released=item.ledger.metadata.length) for i, item in items.items()}


def _take_back(
    stack: Stack, work: ReleaseWork, stopped: Mapping[int, NotNow[str]]
) -> Mapping[int, NotNow[str]]:
    """Take the marks of these ledgers back; their bookie copies stay."""
    if stopped:
        marks = copies_of({i: work.due[i] for i in stopped})
        why = "; ".join(f"ledger {i}: {reason}" for i, reason in sorted(stopped.items()))
        undo(stack, work.ml_name, TopicChange(marks=marks), czxid=work.czxid, why=why)
    return stopped


def record_release(
    stack: Stack,
    ml_name: str,
    intent: Stored[ReleaseIntent],
    *,
    notes: tuple[str, ...] = (),
) -> None:
    record = intent.record
    stack.book.create_or_read(
        keys.release(record.ledger.ledger_id, record.uid),
        Release(
            ledger_id=record.ledger.ledger_id,
            uid=record.uid,
            ml_name=ml_name,
            ml_version=record.ml_version,
            bytes_released=record.ledger.length,
            released_at=stack.now(),
            writer=stack.writer,
            previous=intent.sha256,
            notes=notes,
        ),
    )
    reach("release.recorded", record.ledger.ledger_id, topic=ml_name, attempt=record.uid)
