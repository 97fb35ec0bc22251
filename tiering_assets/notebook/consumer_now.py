"""What a consumer gets of a topic now, from its broker, by a reader that leaves nothing behind.

Owns: a reader has no subscription, so no cursor is kept and no message is acknowledged. Its broker
loads the topic, as for any client.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

import pulsar
import pyarrow as pa
import requests

from tiering_assets.resources.errors import BrokerError
from tiering_assets.resources.http_access import Bearer
from tiering_assets.resources.settings import BrokerSettings

_KINDS: Final[dict[str, Any]] = {
    "topic": pa.string(),
    "ledger_id": pa.int64(),
    "entry_id": pa.int64(),
    "batch_index": pa.int32(),  # -1 where the message is not of a batch
    "publish_time": pa.timestamp("ms", "UTC"),
    "payload_bytes": pa.int64(),
    "payload_sha256": pa.string(),
}
SCHEMA: Final = pa.schema(_KINDS)
_WAIT_MS: Final = 30_000
_SAID_MAX: Final = 200


def service_url_of(settings: BrokerSettings, topic: str) -> str:
    """Where clients reach the broker of a topic: `broker.admin_url` is asked, as clients do.

    Raises:
        BrokerError: nobody answers, or no broker has the topic.
    """
    url = f"{settings.admin_url.rstrip('/')}/lookup/v2/topic/persistent/{quote(topic)}"
    try:
        answer = requests.get(url, auth=Bearer(settings.token), timeout=settings.timeout_s)
        found = answer.json() if answer.ok else {}
    except requests.RequestException as error:
        raise BrokerError(f"GET {url}: {error}") from error
    service_url = found.get("brokerUrl") or found.get("brokerUrlTls")
    if not isinstance(service_url, str):
        raise BrokerError(f"GET {url}: {answer.status_code} {answer.text[:_SAID_MAX]!r}")
    return service_url


def consumer_reads(
    settings: BrokerSettings,
    topics: Sequence[str],
    *,
    service_url: str = "",
    messages_max: int = 10_000,
) -> pa.Table:
    """Messages of each topic from its oldest on, at most so many of each.

    Args:
        settings: their token is the client's as well.
        topics: `tenant/namespace/topic`; of a partitioned topic its partitions.
        service_url: of a broker or a proxy, such as pulsar://127.0.0.1:6650; empty means the broker
            that has the first topic.
        messages_max: of each topic.

    Raises:
        BrokerError: the broker does not answer, or refuses.
    """
    if not topics:
        return SCHEMA.empty_table()
    url = service_url or service_url_of(settings, topics[0])
    client = pulsar.Client(
        url,
        authentication=pulsar.AuthenticationToken(settings.token) if settings.token else None,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    try:
        rows = [row for topic in topics for row in _read(client, topic, messages_max)]
    except pulsar.PulsarException as error:
        raise BrokerError(f"{url}: reading {', '.join(topics)}: {error}") from error
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
