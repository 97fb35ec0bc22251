"""The policy in force for each topic, read now: Pulsar's levels, tiering.toml and our settings.

Reads only. Asking the topic level makes a broker own the topic's bundle and may have it load topics
(see resources/pulsar/policies.py), so whoever relies on a topic that is not loaded looks before
this is called, and whoever only looks reads with `loads_nothing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial

from tiering_assets.ground.own_policy import OwnPolicies, PauseInForce, switched_off
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import PAUSE, Brakes, read_brakes
from tiering_assets.look.brakes.pauses import pauses_on
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.look.topic.user_topics import readable_topics, user_topic_names
from tiering_assets.policy.policy import EffectivePolicy, effective_policy
from tiering_assets.policy.policy_rules import PolicyFinding, check_policy
from tiering_assets.policy.selection import ListedLedger, Rules, Selection, select_ledgers
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, ManagedLedger
from tiering_assets.resources.metastore.topic_names import parse_topic_name
from tiering_assets.resources.pulsar.policies import PolicyReader
from tiering_assets.resources.settings import PolicySettings, ReleaseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPolicy:
    """One topic's answer. `policy` is None where it could not be read, and `error` then says why.

    `switched_off` is a person's word, which needs no reading of Pulsar's policies.
    """

    topic: str
    policy: EffectivePolicy | None
    findings: tuple[PolicyFinding, ...] = ()
    error: str | None = None
    switched_off: Wait | None = None

    @property
    def refused(self) -> bool:
        return self.policy is None or any(found.refused for found in self.findings)


class Policies:
    """Policies of any number of topics, each level and the pauses asked once. See PolicyReader.

    ObjectStoreError when the pauses cannot be listed: unknown is not permission.
    """

    def __init__(
        self,
        release: ReleaseSettings,
        own: OwnPolicies,
        pauses: Callable[[], Brakes],
        reader: PolicyReader,
    ) -> None:
        self._release = release
        self._own = own
        self._pauses = cache(pauses)
        self._reader = reader

    def of_topic(self, topic: str, *, ask_topic: bool = True) -> EffectivePolicy:
        """The policy in force. Errors and `ask_topic` are those of PolicyReader.read."""
        lag_s = self._release.deletion_lag_s
        return effective_policy(
            topic,
            self._reader.read(topic, ask_topic=ask_topic),
            self._own,
            deletion_lag_s=lag_s,
            lag_is_default=lag_s == ReleaseSettings().deletion_lag_s,
            pauses=self._pauses_on(topic),
        )

    @property
    def of_all(self) -> object:
        """What people set here for any topic, to be compared with what they set later."""
        return self._own, self._pauses().keys

    def owned(self, topic: str) -> bool:
        """Whether a broker is known to own the topic's bundle, so that asking it loads nothing."""
        return self._reader.owned(topic)

    def goes_by(self, topic: str) -> str | None:
        """The namespace that says all that is known of a topic which is not asked itself.

        None where tiering.toml or a pause names the topic, or where Pulsar knows no such name.
        """
        namespace, _slash, name = topic.removeprefix("persistent://").rpartition("/")
        if namespace.count("/") != 1 or not name:
            return None
        if self._own.topics and any(scope == "topic" for scope, _ in self._own.of_topic(topic)):
            return None
        if self._pauses().keys and any(one.scope == "topic" for one in self._pauses_on(topic)):
            return None
        return namespace

    def switched_off(self, topic: str) -> Wait | None:
        """Why a topic gets no new copies, by tiering.toml or by a pause."""
        return switched_off(self._own, topic, self._pauses_on(topic))

    def _pauses_on(self, topic: str) -> tuple[PauseInForce, ...]:
        return pauses_on(self._pauses(), parse_topic_name(topic).managed_ledger_name)

    def check(self, topic: str, *, ask_topic: bool = True) -> TopicPolicy:
        """The policy and what is wrong about it; a topic that cannot be read is an answer, too."""
        off = self.switched_off(topic)
        try:
            policy = self.of_topic(topic, ask_topic=ask_topic)
        except TierkeeperError as error:
            return TopicPolicy(topic=topic, policy=None, error=str(error), switched_off=off)
        return TopicPolicy(
            topic=topic, policy=policy, findings=check_policy(policy), switched_off=off
        )


@contextmanager
def open_policies(stack: Stack, *, loads_nothing: bool = False) -> Iterator[Policies]:
    """One reading of policies and pauses, with the tiering.toml that the stack was opened with.

    With `loads_nothing` the topic level is asked only where a broker owns the topic's bundle
    already.
    """
    pauses = partial(read_brakes, stack, PAUSE)
    reader = PolicyReader(stack.settings.broker, stack.metadata, loads_nothing=loads_nothing)
    try:
        yield Policies(stack.settings.release, stack.own_policies, pauses, reader)
    finally:
        reader.close()


def user_topics(stack: Stack) -> Iterator[str]:
    """Managed-ledger names of all topics that we may touch, sorted."""
    for topic in readable_topics(stack, user_topic_names(stack)):
        yield topic.ml_name


def check_policies(
    stack: Stack, ml_names: Iterable[str], *, loads_nothing: bool = False
) -> Iterator[TopicPolicy]:
    """Read and check the policy of each topic; `loads_nothing` is that of open_policies."""
    with open_policies(stack, loads_nothing=loads_nothing) as policies:
        for ml_name in ml_names:
            yield policies.check(topic_of(ml_name))


def rules_of(settings: PolicySettings) -> Rules:
    return Rules(
        terminated_last=settings.terminated_last_ledger,
        unloaded_topics=settings.unloaded_topics,
        zero_length=settings.zero_length_ledgers,
    )


def select_from_node(
    stack: Stack,
    topic: ManagedLedger,
    written_ms: int,
    policy: EffectivePolicy,
    *,
    now_ms: int,
    loaded: bool | None,
) -> tuple[Selection, ...]:
    """The same from a topic's list, which was last written at `written_ms`."""
    return select_ledgers(
        [_listed(stack, topic, info, written_ms) for info in topic.ledgers],
        policy.thresholds,
        now_ms=now_ms,
        loaded=loaded,
        rules=rules_of(stack.settings.policy),
    )


def _listed(
    stack: Stack, topic: ManagedLedger, info: LedgerInfo, list_written_ms: int
) -> ListedLedger:
    offloaded = info.offload is not None and info.offload.complete
    if topic.terminated_at is not None and info.is_open:
        # Its closing time is nowhere, but the list was last written after it: never too old.
        found = stack.ledgers.read(info.ledger_id)
        closed = found is not None and found.metadata.state is BookKeeperState.CLOSED
        return ListedLedger(
            ledger_id=info.ledger_id,
            bytes=found.metadata.length if found is not None and closed else 0,
            closed_at_ms=list_written_ms if closed else None,
            offloaded=offloaded,
            terminated=True,
        )
    return ListedLedger(
        ledger_id=info.ledger_id,
        bytes=info.size or 0,
        closed_at_ms=info.closed_at_ms,
        offloaded=offloaded,
    )
