"""What the demo produces: the kinds of traffic that take different ways to a bookie.

About 95 MB of payload in at least 12 ledgers, one of them of three or more blocks: batches with
LZ4, unbatched 1 KiB with keys, 100 KiB, a partitioned topic with keys and properties, and one of 3
MB.
"""

from __future__ import annotations

from tiering_assets.resources.devstack.traffic import KIB, TopicSpec

NAMESPACE = "public/default"


def demo_topics() -> tuple[TopicSpec, ...]:
    """The demo's topics; the same messages every time."""
    return (
        TopicSpec(
            topic=f"{NAMESPACE}/orders-batched-lz4",
            messages=60_000,
            payload_bytes=200,
            batched=True,
            compression="LZ4",
            properties=True,
        ),
        TopicSpec(topic=f"{NAMESPACE}/clicks-1k", messages=12_000, payload_bytes=KIB, keys=50),
        TopicSpec(topic=f"{NAMESPACE}/images-100k", messages=550, payload_bytes=100 * KIB),
        TopicSpec(
            topic=f"{NAMESPACE}/users-partitioned",
            messages=6_000,
            payload_bytes=2 * KIB,
            partitions=3,
            keys=200,
            properties=True,
        ),
        TopicSpec(topic=f"{NAMESPACE}/report-3mb", messages=1, payload_bytes=3_000_000),
    )
