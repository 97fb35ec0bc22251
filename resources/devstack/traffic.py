"""Deterministic messages through the public Pulsar client, and the proof that they came back.

Owns: the content hash of a topic depends on every message's key, properties and payload and on how
often it is there, and not on the order of partitions: a lost, doubled or changed message changes
it. The same TopicSpec always makes the same messages, so the hash expected is known before.

The client is a development dependency and is imported in the functions that use it; its own log
goes nowhere, because it writes to standard output.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from tiering_assets.resources.devstack.probes import http_call
from tiering_assets.resources.errors import (
    BrokerError,
    IntegrityError,
    PrerequisiteError,
    SettingsError,
)

if TYPE_CHECKING:
    from tiering_assets.resources.devstack.endpoints import Endpoints

KIB = 1024
_NO_CONTENT = 204
_CONFLICT = 409
_ADMIN_TIMEOUT_S = 30.0
_FILLER = b"the same words again and again, so that compression has something to do; "


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """What to send to one topic. `pending_max` bounds the unacknowledged messages: bookies with
    little direct memory die under thousands of large ones.
    """

    topic: str  # tenant/namespace/name
    messages: int
    payload_bytes: int
    batched: bool = False
    compression: str = "NONE"  # NONE, LZ4, ZLIB, ZSTD, SNAPPY
    partitions: int = 0  # 0: not partitioned
    keys: int = 0  # how many different keys; 0: no key
    properties: bool = False
    chunked: bool = False
    seed: int = 0
    pending_max: int = 300

    def __post_init__(self) -> None:
        if self.topic.count("/") != 2 or self.messages < 0 or self.payload_bytes < 0:
            raise SettingsError(f"impossible traffic: {self}")
        if self.chunked and self.batched:
            raise SettingsError(f"{self.topic}: chunked messages cannot be batched")

    def physical_topics(self) -> tuple[str, ...]:
        """Return the full name of each topic that has ledgers: the topic, or its partitions."""
        base = f"persistent://{self.topic}"
        if self.partitions == 0:
            return (base,)
        return tuple(f"{base}-partition-{number}" for number in range(self.partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    payload: bytes = field(repr=False)
    key: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """How many messages, and their hash. Two topics with equal Content hold the same messages."""

    messages: int
    sha256: str


def iter_messages(spec: TopicSpec) -> Iterator[Message]:
    """Yield the messages of a spec; the same ones every time. Half of a payload compresses."""
    source = random.Random(f"{spec.topic}:{spec.seed}")  # noqa: S311  repeatable, not secret
    for number in range(spec.messages):
        noise = source.randbytes((spec.payload_bytes + 1) // 2)
        filler = spec.payload_bytes - len(noise)
        yield Message(
            payload=noise + (_FILLER * (filler // len(_FILLER) + 1))[:filler],
            key=f"key-{source.randrange(spec.keys)}" if spec.keys else "",
            properties={"number": str(number), "kind": "test"} if spec.properties else {},
        )


def content_of(messages: Iterable[Message]) -> Content:
    """Return count and hash of messages in any order."""
    return _content([_message_digest(message) for message in messages])


def expected_content(spec: TopicSpec) -> Content:
    """Return what the topic holds after produce(), without asking anybody."""
    return content_of(iter_messages(spec))


def produce(endpoints: Endpoints, spec: TopicSpec, *, timeout_s: float = 120.0) -> Content:
    """Send every message of the spec and wait for all acknowledgements; return what was sent.

    Raises BrokerError when a message is refused or not acknowledged within `timeout_s` seconds.
    """
    pulsar = _pulsar()
    if spec.partitions:
        _create_partitioned(endpoints, spec)
    acknowledged = threading.Semaphore(0)
    refused: list[str] = []
    sent: list[bytes] = []

    def on_answer(result: Any, _message_id: Any) -> None:
        if result != pulsar.Result.Ok:
            refused.append(str(result))
        acknowledged.release()

    with _client(endpoints) as client, _broker_errors(spec.topic, "producing"):
        producer = client.create_producer(
            f"persistent://{spec.topic}",
            batching_enabled=spec.batched,
            chunking_enabled=spec.chunked,
            compression_type=getattr(pulsar.CompressionType, spec.compression),
            max_pending_messages=spec.pending_max,
            block_if_queue_full=True,
            send_timeout_millis=int(timeout_s * 1000),
        )
        for message in iter_messages(spec):
            sent.append(_message_digest(message))
            producer.send_async(
                message.payload,
                on_answer,
                properties=dict(message.properties),
                partition_key=message.key or None,
            )
        producer.flush()
        for number in range(spec.messages):
            if not acknowledged.acquire(timeout=timeout_s):
                raise BrokerError(
                    f"{spec.topic}: {number} of {spec.messages} messages were acknowledged,"
                    f" then none for {timeout_s:.0f} s"
                )
        producer.close()
    if refused:
        raise BrokerError(f"{spec.topic}: {len(refused)} messages were refused, first {refused[0]}")
    return _content(sent)


def consume_all(
    endpoints: Endpoints, spec: TopicSpec, *, timeout_s: float = 60.0, check: bool = True
) -> Content:
    """Read the topic from its first message to its last and return what was there.

    Raises BrokerError when messages stop coming for `timeout_s` seconds although the broker says
    there are more, and, with `check`, IntegrityError when the content is not the one produced.
    """
    pulsar = _pulsar()
    digests: list[bytes] = []
    with _client(endpoints) as client:
        for topic in spec.physical_topics():
            with _broker_errors(topic, f"reading {spec.messages} messages"):
                reader = client.create_reader(topic, pulsar.MessageId.earliest)
                while reader.has_message_available():
                    got = reader.read_next(timeout_millis=int(timeout_s * 1000))
                    message = Message(
                        payload=got.data(), key=got.partition_key(), properties=got.properties()
                    )
                    digests.append(_message_digest(message))
                reader.close()
    found = _content(digests)
    if check and found != (expected := expected_content(spec)):
        raise IntegrityError(f"{spec.topic}: read {found}, expected {expected}")
    return found


def seal(endpoints: Endpoints, spec: TopicSpec) -> None:
    """Unload the topic, which closes its current ledgers. BrokerError if the broker refuses."""
    _admin(endpoints, "PUT", f"/admin/v2/persistent/{quote(spec.topic)}/unload", None)


def _create_partitioned(endpoints: Endpoints, spec: TopicSpec) -> None:
    path = f"/admin/v2/persistent/{quote(spec.topic)}/partitions"
    _admin(endpoints, "PUT", path, str(spec.partitions).encode(), accept=_CONFLICT)


def _admin(
    endpoints: Endpoints, method: str, path: str, body: bytes | None, accept: int = _NO_CONTENT
) -> None:
    port = urlsplit(endpoints.admin_url).port or 0
    try:
        status, said = http_call(port, method, path, body=body, timeout_s=_ADMIN_TIMEOUT_S)
    except OSError as error:
        raise BrokerError(f"{method} {path}: {error}") from error
    if status not in (_NO_CONTENT, accept):
        raise BrokerError(f"{method} {path} answered {status}: {said[:200]!r}")


def _content(digests: list[bytes]) -> Content:
    joined = b"".join(sorted(digests))
    return Content(messages=len(digests), sha256=hashlib.sha256(joined).hexdigest())


def _message_digest(message: Message) -> bytes:
    digest = hashlib.sha256()
    parts = [message.key.encode(), message.payload]
    for name, value in sorted(message.properties.items()):
        parts += [name.encode(), value.encode()]
    for part in parts:  # each with its length: no two different messages give the same bytes
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def _pulsar() -> Any:
    try:
        import pulsar
    except ImportError as error:
        raise PrerequisiteError("the wheel pulsar-client is missing: run `make setup`") from error
    return pulsar


@contextmanager
def _client(endpoints: Endpoints) -> Iterator[Any]:
    pulsar = _pulsar()
    client = pulsar.Client(
        endpoints.service_url,
        operation_timeout_seconds=30,
        connection_timeout_ms=10_000,
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
    )
    try:
        yield client
    finally:
        with suppress(pulsar.PulsarException):  # what happened before matters more
            client.close()


@contextmanager
def _broker_errors(topic: str, doing: str) -> Iterator[None]:
    try:
        yield
    except _pulsar().PulsarException as error:
        raise BrokerError(f"{topic}: {doing}: {error}") from error
