"""What the sensors may ask runs for: ledgers to copy, copies to publish, bookie copies to release.

Reads only and loads no topic. Owns: a topic costs one read of its node; its policy is asked where
something waits, and records are asked for only of ledgers that would go into a run. The runs decide
again from fresh evidence: a ledger that is admitted twice costs time, never safety.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from tiering_assets.automation.resting import Rest
from tiering_assets.automation.tick_memory import CertifiedAttempts, TickMemory
from tiering_assets.change.disturb import pending_due
from tiering_assets.explain.backlog_topic import facts_by_policy
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import HOLD, read_brakes
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.look.topic.user_topics import Topic
from tiering_assets.policy.admission_rules import Ready
from tiering_assets.policy.policies import Policies, TopicPolicy, select_from_node
from tiering_assets.policy.selection import NotSelected, due_at_ms
from tiering_assets.resources.errors import BrokerError, MetadataError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.pulsar.admin import TopicLoad

MayTry = Callable[[int], bool]
_LASTING = frozenset(
    {
        NotSelected.OFFLOADED,
        NotSelected.OPEN,
        NotSelected.ZERO_LENGTH,
        NotSelected.NO_THRESHOLD,
        NotSelected.BELOW,
    }
)
"""Verdicts that stay until the node, a policy or the time changes."""
IDLE_ASKED_MAX = 100  # topics a look, two requests each
AWAKE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToOffload:
    """One topic's part: `copy` goes on to publication when the run finds it due, `publish` goes out
    now.
    """

    copy: tuple[Ready, ...] = ()
    publish: tuple[Ready, ...] = ()


class Offloads:
    """What one look finds to offload, topic by topic.

    `unconfirmed` are the topics of which publications may be without a record; all without.
    """

    def __init__(
        self,
        stack: Stack,
        policies: Policies,
        may_try: MayTry,
        memory: TickMemory,
        *,
        unconfirmed: Collection[str] | None = None,
    ) -> None:
        self._stack = stack
        self._policies = policies
        self._may_try = may_try
        self._memory = memory
        self._may_be_unconfirmed = unconfirmed
        if unconfirmed is None:
            memory.catch_up_publications(stack)
        self._now_ms = int(stack.now().timestamp() * 1000)
        self._idle_left = IDLE_ASKED_MAX
        self._rests: dict[str, Rest] = {}
        self._certified = CertifiedAttempts(stack, nominated=unconfirmed is not None)
        self._quarantined: dict[int, set[UUID]] = {}
        for ledger_id, uid in stack.book.pairs("quarantines/"):
            self._quarantined.setdefault(ledger_id, set()).add(uid)

    def awake(self, topics: Mapping[str, int]) -> list[str]:
        """Of topics with the mzxid of their nodes, those in which something may be due."""
        self._memory.resting.begin(self._policies.of_all)
        return self._memory.resting.awake(topics, now=self._stack.now())

    def look(self, topic: Topic) -> list[ToOffload]:
        """BrokerError where the policy cannot be read: unknown is not permission."""
        to_copy: list[LedgerInfo] = []
        verified: list[LedgerInfo] = []
        wanted = self._wanted(topic)
        self._certified.ask([listed.ledger_id for listed in wanted])
        for listed in wanted:
            certified, bad = self._copies(listed.ledger_id)
            if certified:
                verified.append(listed)
            elif not bad:
                to_copy.append(listed)
        asked = self._may_be_unconfirmed
        to_publish = []
        if asked is None or topic.ml_name in asked:
            to_publish = self._unconfirmed(topic)
        if not wanted and not to_publish and topic.ml_name in self._rests:
            self._memory.resting.rest(topic.ml_name, self._rests[topic.ml_name])
        else:
            self._memory.resting.wake(topic.ml_name)
        sizes = {one.ledger_id: one.size or 0 for one in verified}
        if verified and pending_due(self._stack, topic.info, sizes):
            to_publish += verified
        elif verified and self._is_idle(topic.ml_name):
            to_copy += verified  # the run looks again: only an idle topic is published to before
        found = ToOffload(copy=self._ready(topic, to_copy), publish=self._ready(topic, to_publish))
        return [found] if found.copy or found.publish else []

    def _ready(self, topic: Topic, ledgers: Iterable[LedgerInfo]) -> tuple[Ready, ...]:
        return tuple(_ready(topic, one) for one in ledgers if self._may_try(one.ledger_id))

    def _unconfirmed(self, topic: Topic) -> list[LedgerInfo]:
        """Published by a run that died before it could say so: no lag begins before it is said."""
        named = {
            (listed.ledger_id, listed.offload.uid): listed
            for listed in topic.info.ledgers
            if listed.offload is not None
            and listed.offload.complete
            and not listed.offload.bookkeeper_deleted
        }
        found = []
        for pair in sorted(self._memory.unconfirmed(self._stack, topic.ml_name, named)):
            if pair[1] in self._certified.attempts(pair[0]):
                found.append(named[pair])
            else:
                self._memory.foreign.add(pair)
        return found

    def _wanted(self, topic: Topic) -> list[LedgerInfo]:
        """Ledgers that policy selects and that no broker reads from a bucket."""
        if all(_settled(listed) for listed in topic.info.ledgers) and (
            topic.info.terminated_at is None
        ):
            self._may_rest(topic)
            return []
        name = topic_of(topic.ml_name)
        if self._policies.switched_off(name) is not None:
            self._may_rest(topic)
            return []
        found = self._policies.check(name)
        _require_known(found)
        if found.policy is None or facts_by_policy(self._stack, found).forbidden is not None:
            return []
        verdicts = select_from_node(
            self._stack,
            topic.info,
            topic.node.stat.mtime_ms,
            found.policy,
            now_ms=self._now_ms,
            loaded=self._loaded(name),
        )
        if all(one.why_not in _LASTING for one in verdicts):
            self._may_rest(
                topic, until_ms=due_at_ms(verdicts, found.policy.thresholds, self._now_ms)
            )
        selected = {verdict.ledger_id for verdict in verdicts if verdict.selected}
        return [one for one in topic.info.ledgers if one.ledger_id in selected]

    def _may_rest(self, topic: Topic, *, until_ms: int | None = None) -> None:
        """Nothing of it is due before its node moves, or before then by its time threshold."""
        until = None if until_ms is None else datetime.fromtimestamp(until_ms / 1000, UTC)
        self._rests[topic.ml_name] = Rest(mzxid=topic.node.stat.mzxid, until=until)

    def _is_idle(self, ml_name: str) -> bool:
        """Whether nobody has the topic loaded; of some topics a tick, and not again for a while."""
        now, asked_at = self._stack.monotonic(), self._memory.awake.get(ml_name)
        recently = asked_at is not None and now - asked_at < AWAKE_S
        if recently or self._idle_left == 0:
            return False
        self._idle_left -= 1
        self._memory.awake[ml_name] = now
        return self._stack.broker.locate(topic_of(ml_name)).load is TopicLoad.NOT_LOADED

    def _loaded(self, topic: str) -> bool | None:
        """Asked only where it decides anything."""
        if self._stack.settings.policy.unloaded_topics:
            return None
        return self._stack.broker.locate(topic).load is TopicLoad.LOADED

    def _copies(self, ledger_id: int) -> tuple[bool, bool]:
        """Is there a proven copy, and was one quarantined?"""
        bad = self._quarantined.get(ledger_id, set())
        return bool(self._certified.attempts(ledger_id) - bad), bool(bad)


class Releases:
    """What one look finds to release: past the lag, held by nobody, and with a copy of ours.

    `nominated` are the ledgers to look at, by topic; all without. `wrong` are those of which the
    topic's node and the records say that they are not due at all.
    """

    def __init__(
        self,
        stack: Stack,
        may_try: MayTry,
        memory: TickMemory,
        nominated: Mapping[str, Collection[int]] | None = None,
    ) -> None:
        self._stack = stack
        self._may_try = may_try
        self._memory = memory
        self._nominated = nominated
        self.wrong: dict[str, Topic] = {}
        self.wrong_ledgers = 0
        if nominated is None:
            memory.catch_up(stack)
            self._in_bookkeeper = set(stack.ledgers.list_ledger_ids())
        else:
            asked = sorted(i for some in nominated.values() for i in some)
            self._in_bookkeeper = stack.ledgers.existing(asked)
        self._certified = CertifiedAttempts(stack, nominated=nominated is not None)
        self._holds = read_brakes(stack, HOLD)
        lag_ms = stack.deletion_lag.total_seconds() * 1000
        self._due_before_ms = stack.now().timestamp() * 1000 - lag_ms

    def look(self, topic: Topic) -> list[Ready]:
        wanted = None if self._nominated is None else self._nominated.get(topic.ml_name, ())
        named = {
            (listed.ledger_id, listed.offload.uid): listed
            for listed in topic.info.ledgers
            if listed.offload is not None
            and listed.offload.complete
            and (wanted is None or listed.ledger_id in wanted)
        }
        due = {pair for pair, listed in named.items() if self._due(listed)}
        # A run may have died between the delete and its record.
        due |= self._memory.unreleased(
            self._stack,
            (
                pair
                for pair, listed in named.items()
                if listed.offload is not None
                and listed.offload.bookkeeper_deleted
                and pair[0] not in self._in_bookkeeper
            ),
            nominated=wanted is not None,
        )
        self._certified.ask([pair[0] for pair in sorted(due) if pair not in self._memory.foreign])
        ours = [pair for pair in sorted(due) if self._ours(pair)]
        marked = {
            one.ledger_id
            for one in named.values()
            if one.offload is not None and one.offload.bookkeeper_deleted
        }
        wrong = set(wanted or ()) - {pair[0] for pair in ours} - marked
        if wrong:
            self.wrong[topic.ml_name] = topic
            self.wrong_ledgers += len(wrong)
        return [
            _ready(topic, named[pair])
            for pair in ours
            if self._may_try(pair[0]) and self._holds.why(pair[0], topic.ml_name) is None
        ]

    def _due(self, listed: LedgerInfo) -> bool:
        """By the context's own time, which the publisher wrote; the gate counts from its record."""
        context = listed.offload
        return (
            context is not None
            and context.timestamp_ms <= self._due_before_ms
            and listed.ledger_id in self._in_bookkeeper
        )

    def _ours(self, pair: tuple[int, UUID]) -> bool:
        """A copy without certificate is a broker's and never gets one."""
        if pair in self._memory.foreign:
            return False
        if pair[1] in self._certified.attempts(pair[0]):
            return True
        self._memory.foreign.add(pair)
        return False


def _ready(topic: Topic, listed: LedgerInfo) -> Ready:
    return Ready(ledger_id=listed.ledger_id, ml_name=topic.ml_name, bytes=listed.size or 0)


def _settled(listed: LedgerInfo) -> bool:
    return listed.is_open or (listed.offload is not None and listed.offload.complete)


def _require_known(found: TopicPolicy) -> None:
    if found.error is not None:
        raise MetadataError(f"{found.topic}: its policy cannot be read: {found.error}")
    if found.policy is not None and not found.policy.complete:
        raise BrokerError(
            f"{found.topic}: {', '.join(found.policy.unknown)} policy unknown, so nothing is taken up"
        )
