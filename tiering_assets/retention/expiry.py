"""What retention and TTL let go of, topic by topic. Reads only.

Owns: where a topic is gets asked before its own policy level, which makes a broker own its bundle;
so that level is asked only of topics that somebody named, all of them located before. Of the others
the namespace's retention counts, and a broker is asked only where something is overdue by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic import brokers_seen
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.look.topic.user_topics import Topic, read_topics
from tiering_assets.policy.policies import Policies, open_policies
from tiering_assets.policy.policy import EffectivePolicy
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.errors import (
    BrokerError,
    FormatError,
    ObjectStoreError,
    TierkeeperError,
)
from tiering_assets.resources.metastore.cursors import CursorInfo
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, ManagedLedger
from tiering_assets.resources.metastore.topic_names import never_touched
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace
from tiering_assets.retention.expiry_rules import (
    AgingLedger,
    DurableCursor,
    ExpiryLimits,
    TopicExpiry,
    topic_expiry,
)

UNKNOWN = TopicPlace(TopicLoad.UNKNOWN)
_INTERNAL = "pulsar."  # cursors of replication and deduplication: no subscriptions


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNode:
    """A topic's list and cursors as they were just read."""

    ml_name: str
    info: ManagedLedger
    version: int
    cursors: dict[str, CursorInfo]

    @property
    def subscriptions(self) -> int:
        return sum(not name.startswith(_INTERNAL) for name in self.cursors)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgingTopic:
    """One topic's answer. `place` is None where no broker was asked; `error` says why there is
    none.
    """

    ml_name: str
    node: TopicNode | None = None
    place: TopicPlace | None = None
    policy: EffectivePolicy | None = None
    expiry: TopicExpiry | None = None
    error: str | None = None

    @property
    def topic(self) -> str:
        return topic_of(self.ml_name)

    @property
    def certain(self) -> bool:
        """True when no level that was not asked may say otherwise."""
        policy = self.policy
        return policy is not None and (
            policy.retention_minutes.certain and policy.retention_megabytes.certain
        )

    @property
    def overdue(self) -> tuple[int, ...]:
        return () if self.expiry is None else tuple(one.ledger_id for one in self.expiry.overdue)


def survey_expiry(
    stack: Stack, ml_names: Iterable[str] | None = None, *, loads_nothing: bool = False
) -> list[AgingTopic]:
    """What is due when, of the named topics with their own policies, or of all user topics.

    A topic that cannot be read is an answer with an `error`. With `loads_nothing` a topic's own
    policy is asked only where a broker owns its bundle.
    """
    names = sorted(stack.topics.iter_managed_ledgers() if ml_names is None else ml_names)
    ours = [name for name in names if never_touched(name, {}) is None]
    read = [_read(stack, name, topic) for name, topic in read_topics(stack, ours)]
    found = [one for one in read if one is not None]
    with open_policies(stack, loads_nothing=loads_nothing) as policies:
        if ml_names is not None:
            placed = [replace(one, place=locate(stack, one.ml_name)) for one in found]
            return [judge(stack, policies, one, ask_topic=True) for one in placed]
        judged = [judge(stack, policies, one, ask_topic=False) for one in found]
    return [_placed(stack, one) if one.overdue else one for one in judged]


def _placed(stack: Stack, suspect: AgingTopic) -> AgingTopic:
    """A topic that is overdue if it is idle, once it is known whether it is."""
    return judge_by(stack, replace(suspect, place=locate(stack, suspect.ml_name)))


def locate(stack: Stack, ml_name: str) -> TopicPlace:
    """Where a topic is; UNKNOWN when no broker answers, the bucket does not tell of others, or its
    node cannot be read.
    """
    try:
        return brokers_seen.locate(stack, ml_name, stack.topics.read(ml_name))
    except (BrokerError, ObjectStoreError, FormatError):
        return UNKNOWN


def judge(stack: Stack, policies: Policies, found: AgingTopic, *, ask_topic: bool) -> AgingTopic:
    """Read the policy and apply it."""
    node = found.node
    if node is None:
        return found
    try:
        policy = policies.of_topic(found.topic, ask_topic=ask_topic)
        return judge_by(stack, replace(found, policy=policy))
    except TierkeeperError as error:
        return replace(found, error=str(error))


def judge_by(stack: Stack, found: AgingTopic) -> AgingTopic:
    """Apply the policy that was read; one that no broker is known to have loaded may be idle."""
    node, policy = found.node, found.policy
    idle = found.place is None or found.place.load is not TopicLoad.LOADED
    if node is None or policy is None:
        return found
    minutes, megabytes = policy.retention_minutes.value, policy.retention_megabytes.value
    if minutes is None or megabytes is None:
        why = "; ".join(policy.unknown) or "no level sets it"
        return replace(found, error=f"its retention is not known: {why}")
    expiry = topic_expiry(
        [_aging(stack, node, one, idle=idle) for one in node.info.ledgers],
        [DurableCursor(name, info.mark_delete) for name, info in node.cursors.items()],
        ExpiryLimits(minutes=minutes, megabytes=megabytes, ttl_s=policy.ttl_s.value or 0),
        now_ms=int(stack.now().timestamp() * 1000),
    )
    return replace(found, expiry=expiry, error=None)


def read_node(stack: Stack, ml_name: str) -> TopicNode | None:
    """The list, then the cursors; None for a topic that is gone."""
    found = stack.topics.read(ml_name)
    if found is None:
        return None
    info, node = found
    return TopicNode(
        ml_name=ml_name,
        info=info,
        version=node.stat.version,
        cursors=stack.topics.cursors(ml_name),
    )


def _read(stack: Stack, ml_name: str, topic: Topic | TierkeeperError | None) -> AgingTopic | None:
    """A topic whose list was just read, with its cursors. None for one that is not ours to
    touch.
    """
    try:
        if isinstance(topic, TierkeeperError):
            raise topic
        if topic is None:
            gone = stack.topics.read(ml_name) is None
            return AgingTopic(ml_name=ml_name, error="the topic is gone") if gone else None
        return AgingTopic(
            ml_name=ml_name,
            node=TopicNode(
                ml_name=ml_name,
                info=topic.info,
                version=topic.node.stat.version,
                cursors=stack.topics.cursors(ml_name),
            ),
        )
    except TierkeeperError as error:
        return AgingTopic(ml_name=ml_name, error=str(error))


def _aging(stack: Stack, node: TopicNode, listed: LedgerInfo, *, idle: bool) -> AgingLedger:
    last = listed.ledger_id == node.info.ledgers[-1].ledger_id
    # A loaded topic's last ledger is open in BookKeeper, too. A terminated topic keeps its last one
    # as the current one; no load closes it in the list.
    if listed.is_open and last and idle and node.info.terminated_at is None:
        found = stack.ledgers.read(listed.ledger_id)
        if found is not None and found.metadata.state is BookKeeperState.CLOSED:
            metadata = found.metadata
            if metadata.entries > 0:  # else the load removes it
                return AgingLedger(
                    ledger_id=listed.ledger_id,
                    entries=metadata.entries,
                    bytes=metadata.length,
                    closed_at_ms=int(stack.now().timestamp() * 1000),
                    closes_at_load=True,
                )
    return AgingLedger(
        ledger_id=listed.ledger_id,
        entries=listed.entries or 0,
        bytes=listed.size or 0,
        closed_at_ms=listed.closed_at_ms,
    )
