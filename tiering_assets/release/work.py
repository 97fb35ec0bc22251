"""A release under way: which ledgers of a topic, on what evidence, and the same proven once more.

Owns: what the gate let go is gated again before each effect; what may not go any more is settled
with its reasons, and nothing of an earlier look is believed but what cannot have changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from resources.errors import RefusedError, TierkeeperError
from resources.metastore.ledgers import LedgerNode
from resources.metastore.store import Node
from tiering_assets.change.disturb import Seen
from tiering_assets.change.topic_edit import Copy
from tiering_assets.ground.evidence import Dated, Kind, all_of
from tiering_assets.ground.record_book import Stored
from tiering_assets.ground.stack import REQUESTS_AT_ONCE, Stack, is_young
from tiering_assets.look.topic.topic_evidence import Shadows, deleted, topic_of
from tiering_assets.records.models import ReleaseIntent
from tiering_assets.release.evidence import Evidence, gather
from tiering_assets.release.gate import NotYet, Release, decide_release
from tiering_assets.release.surroundings import TopicEvidence, gather_topic

LATER = NotYet(("there was no time to look at it again: the next run goes on from here",))
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


ReleaseResult = Released | NotYet | TierkeeperError


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
    def evidence(self) -> Dated:
        """How old the oldest of each kind is, over all due ledgers."""
        return all_of(item.dated(item.evidence) for item in self.due.values())


def decide_now(stack: Stack, evidence: Evidence) -> Release | NotYet:
    """The gate's decision, with the withdrawal window on top of the lag."""
    window = timedelta(seconds=stack.settings.release.withdrawal_window_s)
    return decide_release(evidence.judged, lag=stack.deletion_lag + window, now=stack.now())


def copies_of(due: Mapping[int, Due]) -> dict[int, Copy]:
    """What a change of the topic needs to know of these ledgers."""
    return {i: Copy(item.uid, item.ledger.metadata.last_entry_id) for i, item in due.items()}


def gate_again(stack: Stack, work: ReleaseWork, *, at_once: int = AT_ONCE) -> ReleaseWork:
    """The same work on new evidence; what may not go any more is settled, with its reasons.

    What could not be looked at in time waits for the next run, so that a topic is reloaded once.
    """
    about, evidence = gate_group(stack, work, sorted(work.due), at_once)
    stopped = stopped_since(stack, work.due, evidence)
    later = {i: LATER for i in work.due if i not in evidence}
    due = {i: replace(work.due[i], evidence=e) for i, e in evidence.items() if i not in stopped}
    return replace(work, about=about, due=due, settled={**work.settled, **stopped, **later})


def gate_group(
    stack: Stack, work: ReleaseWork, left: Sequence[int], at_once: int
) -> tuple[TopicEvidence, dict[int, Evidence]]:
    """New evidence of as many of the ledgers as can be looked at in time; of one at least."""
    about = look_again(stack, work)
    before = {i: work.due[i].evidence for i in left}
    group: dict[int, Evidence] = {}
    for start in range(0, len(left), at_once):
        if group and not is_young(stack, about.evidence, Kind.HOLDS):
            break
        some = left[start : start + at_once]
        group.update(gather(stack, about, some, before=before))
    return about, group


def look_again(stack: Stack, work: ReleaseWork) -> TopicEvidence:
    found = stack.topics.read(work.ml_name)
    if found is None or found[1].stat.czxid != work.czxid:
        raise deleted(work.ml_name, "released")
    topic, node = found
    about = gather_topic(stack, work.ml_name, topic, work.shadows, work.seen, before=work.about)
    refuse_old_metadata(about, node)
    return about


def stopped_since(
    stack: Stack, due: Mapping[int, Due], evidence: Mapping[int, Evidence]
) -> dict[int, NotYet]:
    """Ledgers that the gate does not let go any more, or that are not those of their intents."""
    stopped: dict[int, NotYet] = {}
    for ledger_id, now in evidence.items():
        item, decision = due[ledger_id], decide_now(stack, now)
        digest = None if now.certificate is None else now.certificate.sha256
        if isinstance(decision, NotYet):
            stopped[ledger_id] = NotYet(
                tuple(f"since it was begun: {reason}" for reason in decision.reasons)
            )
        elif (decision.uid, digest) != (item.uid, item.intent.record.certificate_sha256):
            stopped[ledger_id] = NotYet(
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
