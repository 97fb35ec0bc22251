"""Fresh facts about a topic for the publish gate: policies, listing, clocks."""

from __future__ import annotations

from resources.errors import BrokerError, RefusedError
from resources.metastore.ledger_info import ManagedLedger
from resources.metastore.topic_names import never_touched, parse_managed_ledger_name
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.publish_gate import (
    BrokerSeen,
    OurPlace,
    PublishEvidence,
    broker_seen,
)
from tiering_assets.records.keys import namespace_of


def topic_of(ml_name: str) -> str:
    """`persistent://tenant/namespace/topic` of a managed-ledger name."""
    return str(parse_managed_ledger_name(ml_name))


def deleted(ml_name: str, what: str) -> RefusedError:
    """The error for a topic that is gone; no repetition brings it back. `what` was not done to it."""
    return RefusedError(
        f"{topic_of(ml_name)}: the topic was deleted, its metadata node is gone or a new one's: nothing "
        f"was {what}; `tierkeeper orphan expired` lists what its ledgers left in the bucket"
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
    """Whether asking a broker about the topic would have one own its bundle, and load topics for it."""
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
