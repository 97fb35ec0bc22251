"""What is the same for all ledgers of one topic in one release run. Reads only.

A fact that could not be learned stays None and makes the ledgers wait. Holds are read each time;
what moves slowly and costs a question to every broker is asked again when half of its time is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from resources.errors import BrokerError, FormatError
from resources.metastore.ledger_info import ManagedLedger
from resources.pulsar.offload_policies import EffectiveOffloadPolicies
from tiering_assets.change.disturb import Seen, must_wait
from tiering_assets.ground.evidence import Dated, Kind
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.signing import load_public_keys
from tiering_assets.ground.stack import Stack, asking, is_young
from tiering_assets.look.brakes.holds import Holds, read_holds
from tiering_assets.look.topic.publications import Publications, recorded_publications
from tiering_assets.look.topic.publish_gate import BrokerSeen, cannot_read, place_differences
from tiering_assets.look.topic.topic_evidence import Shadows, look_at_brokers, our_place, topic_of
from tiering_assets.records.signature import PublicKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEvidence:
    """None is unknown. `place_differs` says where brokers would look instead of our bucket.

    `brokers` are the settings of each; `evidence` dates all of it, and each ledger's look adds its
    own.
    """

    ml_name: str
    topic: ManagedLedger
    publications: Publications
    store_now: datetime
    brokers: tuple[BrokerSeen, ...] | None
    skips_unreadable_ledgers: bool | None
    cannot_read: tuple[str, ...] | None
    place_differs: tuple[str, ...] | None
    shadows: tuple[str, ...]
    left_alone: Wait | None
    public_keys: PublicKeys
    holds: Holds
    evidence: Dated


def gather_topic(
    stack: Stack,
    ml_name: str,
    topic: ManagedLedger,
    shadows: Shadows,
    seen: Seen,
    *,
    before: TopicEvidence | None = None,
    publications: Publications | None = None,
) -> TopicEvidence:
    """Everything anew, but for what is SLOW, was asked `before` and is young still.

    Where brokers read is asked each time: it decides whether readers find the copy at all.
    `publications` are those that matter, if they are known already.
    """
    asked = asking(stack, Kind.HOLDS, Kind.NODE, Kind.POLICY, Kind.BROKERS)
    if before is not None and is_young(stack, before.evidence, Kind.BROKERS):
        brokers = before.brokers
        asked = asked.and_(before.evidence.only(Kind.BROKERS))
    else:
        brokers = _brokers(stack)
    shadows.renew()
    policy = _policy(stack, ml_name)
    return TopicEvidence(
        ml_name=ml_name,
        topic=topic,
        # They are only ever added: what is published anew meanwhile is not counted, and waits.
        publications=_publications(stack, ml_name, before, publications),
        store_now=stack.objects.server_time(),
        brokers=brokers,
        skips_unreadable_ledgers=_skips_unreadable_ledgers(brokers),
        cannot_read=_cannot_read(stack, brokers, policy),
        place_differs=_place_differs(stack, policy),
        shadows=shadows.of(topic_of(ml_name)),
        left_alone=must_wait(stack, ml_name, seen) if before is None else before.left_alone,
        public_keys=load_public_keys(stack.settings),
        holds=read_holds(stack),
        evidence=asked.and_(shadows.evidence),
    )


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
