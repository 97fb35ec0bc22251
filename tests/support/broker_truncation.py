"""A ledger that a broker's own offloader truncates while it reports success.

An entry larger than the block does not fit: the broker uploads an empty block instead and stops.
"""

from __future__ import annotations

from uuid import UUID, uuid4

from tests.support.live_topic import send_payloads
from tests.support.offload_policies import offload_policies
from tests.support.tiered_cluster import TieredCluster
from tiering_assets.resources.devstack.traffic import TopicSpec

MIB = 1024 * 1024
SENT = [bytes([i]) * size for i, size in enumerate((100, 300, 12_000_000, 2000, 500), start=1)]
FIRST_LOST = 2  # entries 0 and 1 lie before the first chunk


def short_lag_namespace(cluster: TieredCluster, prefix: str) -> str:
    """A namespace whose brokers delete the bookie copy on their own, two minutes after
    offloading.
    """
    namespace = f"public/{prefix}-{uuid4().hex[:6]}"
    cluster.make_namespace(
        namespace,
        offloadPolicies={
            **offload_policies(cluster.endpoints),
            "managedLedgerOffloadDeletionLagInMillis": 120_000,
        },
    )
    return namespace


def truncated_by_the_broker(cluster: TieredCluster, namespace: str) -> tuple[TopicSpec, int, UUID]:
    """The topic, its ledger, and the attempt that the broker calls a success."""
    spec = TopicSpec(topic=f"{namespace}/t-{uuid4().hex[:6]}", messages=0, payload_bytes=0)
    topic = f"persistent://{spec.topic}"
    for payload in SENT:
        send_payloads(
            cluster.endpoints, topic, [payload], chunked=len(payload) > 10 * MIB, name="one"
        )
    cluster.seal(spec)
    [ledger_id] = cluster.ledger_ids(spec)
    assert cluster.broker_offloads(spec)["status"] == "SUCCESS"  # so it says
    return spec, ledger_id, cluster.context_uid(spec, ledger_id)
