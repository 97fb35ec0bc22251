"""The kinds of traffic that differ on the way to a bookie."""

from __future__ import annotations

from tiering_assets.resources.devstack.traffic import KIB, TopicSpec


def standard_topics(
    namespace: str = "public/default", *, scale: float = 1.0
) -> tuple[TopicSpec, ...]:
    """Return the kinds of traffic that differ on the way to a bookie. About 45 MB at scale 1."""

    def count(messages: int) -> int:
        return max(1, round(messages * scale))

    return (
        TopicSpec(
            topic=f"{namespace}/batched-lz4",
            messages=count(50_000),
            payload_bytes=200,
            batched=True,
            compression="LZ4",
            properties=True,
        ),
        TopicSpec(topic=f"{namespace}/small", messages=count(6_000), payload_bytes=KIB, keys=50),
        TopicSpec(topic=f"{namespace}/large", messages=count(150), payload_bytes=100 * KIB),
        TopicSpec(
            topic=f"{namespace}/parted",
            messages=count(3_000),
            payload_bytes=2 * KIB,
            partitions=3,
            keys=20,
            properties=True,
        ),
        TopicSpec(topic=f"{namespace}/huge", messages=1, payload_bytes=3_000_000),
    )
