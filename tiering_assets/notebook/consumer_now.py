"""What a consumer gets of a topic now, from its broker, by a reader that leaves nothing behind.

Owns: a reader has no subscription, so no cursor is kept and no message is acknowledged. Its broker
loads the topic, as for any client.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

import pulsar
import pyarrow as pa

from tiering_assets.resources.errors import BrokerError

SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("ledger_id", pa.int64()),
        ("entry_id", pa.int64()),
        ("batch_index", pa.int32()),  # -1 where the message is not of a batch
        ("publish_time", pa.timestamp("ms", "UTC")),
        ("payload_bytes", pa.int64()),
        ("payload_sha256", pa.string()),
    ]
)
_WAIT_MS: Final = 30_000


def consumer_reads(
    topics: Sequence[str], service_url: str, *, messages_max: int = 10_000
) -> pa.Table:
    """Messages of each topic from its oldest on, at most so many of each.

    Args:
        topics: `tenant/namespace/topic`; of a partitioned topic its partitions.
        service_url: of a broker or a proxy, such as pulsar://127.0.0.1:6650.
        messages_max: of each topic.

    Raises:
        BrokerError: the broker does not answer, or refuses.
    """
    client = pulsar.Client(service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        rows = [row for topic in topics for row in _read(client, topic, messages_max)]
    except pulsar.PulsarException as error:
        raise BrokerError(f"{service_url}: reading {', '.join(topics)}: {error}") from error
    finally:
        client.close()
    return pa.Table.from_pylist(rows, SCHEMA)


def _read(client: Any, topic: str, messages_max: int) -> Iterator[dict[str, Any]]:
    reader = client.create_reader(f"persistent://{topic}", pulsar.MessageId.earliest)
    try:
        for _ in range(messages_max):
            if not reader.has_message_available():
                return
            yield _row(topic, reader.read_next(timeout_millis=_WAIT_MS))
    finally:
        reader.close()


def _row(topic: str, message: Any) -> dict[str, Any]:
    place, payload = message.message_id(), message.data()
    return {
        "topic": topic,
        "ledger_id": place.ledger_id(),
        "entry_id": place.entry_id(),
        "batch_index": place.batch_index(),
        "publish_time": message.publish_timestamp(),
        "payload_bytes": len(payload),
        "payload_sha256": sha256(payload).hexdigest(),
    }
