"""Fresh facts about a topic: policies, listing, clocks, and which shadow topics read its ledgers.

Owns: a source with a shadow is not released. Tried on Pulsar 4.0.8: a shadow that was unloaded and
loaded again after the source's contexts were complete still opens a released ledger in BookKeeper
and stalls (docs/decisions/0004). Shadows are found in metadata, by the property that names their
source: asking the broker would load topics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tiering_assets.ground.evidence import Dated, Kind
from tiering_assets.ground.stack import Stack, asking, is_young
from tiering_assets.look.topic.publish_gate import (
    BrokerSeen,
    OurPlace,
    PublishEvidence,
    broker_seen,
)
from tiering_assets.records.keys import namespace_of
from tiering_assets.resources.errors import BrokerError, FormatError, RefusedError
from tiering_assets.resources.metastore.envelope import is_compressed
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.topic_names import (
    SHADOW_SOURCE_PROPERTY,
    never_touched,
    parse_managed_ledger_name,
)
from tiering_assets.resources.metastore.topics import decode_topic


class Shadows:
    """Every shadow there is, found once for all topics of a run, and again when that gets old."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._by_source: Mapping[str, Sequence[str]] = {}
        self.evidence = Dated()  # to be read before `of` is asked: threads renew it

    def renew(self) -> None:
        """Look again if half of the evidence's time is over."""
        with self._stack.memory.turns.of("shadows"):
            if not is_young(self._stack, self.evidence, Kind.SHADOWS):
                dated = asking(self._stack, Kind.SHADOWS)
                self._by_source = _find(self._stack)
                self.evidence = dated

    def of(self, topic: str) -> tuple[str, ...]:
        """Managed-ledger names of the shadows of a topic, given by its full name."""
        return tuple(self._by_source.get(topic, ()))


class UnknownShadows(Shadows):
    """None was looked for: for a first answer that costs no look at every topic."""

    def renew(self) -> None:
        """Nothing is looked for."""


def find_shadows(stack: Stack) -> Shadows:
    """Find every shadow now. Reads every topic."""
    shadows = Shadows(stack)
    shadows.renew()
    return shadows


def _may_be_a_shadow(data: bytes) -> bool:
    """Of a node that does not decode: whether it has the property, or is compressed and may hide
    it.
    """
    return SHADOW_SOURCE_PROPERTY.encode() in data or is_compressed(data)


def _find(stack: Stack) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, node in stack.topics.read_all():
        if node is None:
            continue
        try:
            source = decode_topic(node).properties.get(SHADOW_SOURCE_PROPERTY)
        except FormatError as error:
            if _may_be_a_shadow(node.data):
                raise
            stack.tell(f"{name} is left out, it names no source of a shadow: {error}", topic=name)
            continue
        if source is not None:
            found[source].append(name)
    return found


def topic_of(ml_name: str) -> str:
    """`persistent://tenant/namespace/topic` of a managed-ledger name."""
    return str(parse_managed_ledger_name(ml_name))


def deleted(ml_name: str, what: str) -> RefusedError:
    """The error for a topic that is gone; no repetition brings it back. `what` was not done to
    it.
    """
    return RefusedError(
        f"{topic_of(ml_name)}: the topic was deleted, its metadata node is gone or a new "
        f"one's. Nothing was {what}; `tierkeeper expired-copy list` shows what its "
        "ledgers left in the bucket"
    )


def our_place(stack: Stack) -> OurPlace:
    store = stack.settings.store
    return OurPlace(
        driver=stack.settings.offload.driver,
        bucket=store.bucket,
        region=store.region,
        endpoint=store.endpoint,
    )


def look_at_brokers(stack: Stack) -> tuple[BrokerSeen, ...]:
    """Every live broker's settings, now. BrokerError when one of them does not tell."""
    configs = stack.broker.runtime_configs()
    return tuple(broker_seen(name, config) for name, config in sorted(configs.items()))


def asking_would_load(stack: Stack, ml_name: str) -> bool:
    """Whether asking a broker about the topic would have one own its bundle, and load topics for
    it.
    """
    return stack.broker.locate(topic_of(ml_name)).broker is None


def publish_evidence(stack: Stack, ml_name: str, topic_info: ManagedLedger) -> PublishEvidence:
    """Ask the broker and the store's clock. A broker that does not answer is an error, not a no."""
    topic = topic_of(ml_name)
    namespace = namespace_of(ml_name)
    release, publish = stack.settings.release, stack.settings.publish
    try:
        listed: bool | None = topic in stack.broker.list_topics(namespace)
    except BrokerError:
        listed = None
    return PublishEvidence(
        topic=topic,
        namespace=namespace,
        never_touched=never_touched(ml_name, topic_info.properties),
        listed=listed,
        policy=stack.broker.effective_offload_policies(topic),
        brokers=look_at_brokers(stack),
        ours=our_place(stack),
        deletion_lag_s=release.deletion_lag_s,
        broker_may_release=publish.broker_may_release,
        coexist=publish.coexist,
        clock_skew_s=(stack.now() - stack.objects.server_time()).total_seconds(),
        clock_skew_max_s=publish.clock_skew_max_s,
    )
