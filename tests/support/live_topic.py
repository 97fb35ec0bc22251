"""A topic in use: a producer and a consumer that stay connected, and messages of exact sizes.

Owns the proof of "nothing lost, nothing doubled": each message carries its number. The topic itself
must hold every number once; the consumer must get every number, and the same number again only as
the same message (a redelivery after a lost acknowledgement, which every consumer must expect).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tiering_assets.resources.devstack.endpoints import Endpoints

TIMEOUT_MS = 30_000
_GIVE_UP = 6  # receives without a message, one after the other, while some are missing


@contextmanager
def client_of(endpoints: Endpoints) -> Iterator[Any]:
    import pulsar

    client = pulsar.Client(
        endpoints.service_url,
        operation_timeout_seconds=30,
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
    )
    try:
        yield client
    finally:
        with suppress(pulsar.PulsarException):
            client.close()


def read_payloads(endpoints: Endpoints, topic: str, *, key: Any = None) -> list[bytes]:
    """All messages of a topic in order, by a new reader. `key` opens what is encrypted."""
    import pulsar

    with client_of(endpoints) as client:
        reader = client.create_reader(topic, pulsar.MessageId.earliest, crypto_key_reader=key)
        payloads = []
        while reader.has_message_available():
            payloads.append(reader.read_next(timeout_millis=TIMEOUT_MS).data())
        reader.close()
        return payloads


def send_payloads(
    endpoints: Endpoints,
    topic: str,
    payloads: Sequence[bytes],
    *,
    chunked: bool,
    name: str,
    compression: str = "NONE",
    key: Any = None,
) -> None:
    """Send unbatched messages one by one; the producer's name is part of an entry's size. With a
    `key` they are encrypted.
    """
    import pulsar

    with client_of(endpoints) as client:
        producer = client.create_producer(
            topic,
            producer_name=name,
            batching_enabled=False,
            chunking_enabled=chunked,
            compression_type=getattr(pulsar.CompressionType, compression),
            send_timeout_millis=TIMEOUT_MS,
            encryption_key=None if key is None else "key",
            crypto_key_reader=key,
        )
        for payload in payloads:
            producer.send(payload)
        producer.close()


class LiveTopic:
    """Sends numbered messages and consumes them until told to stop."""

    def __init__(self, client: Any, topic: str, *, every_s: float, payload_bytes: int) -> None:
        self._producer = client.create_producer(
            topic, batching_enabled=False, block_if_queue_full=True, send_timeout_millis=TIMEOUT_MS
        )
        self._consumer = client.subscribe(topic, "live")
        self._every_s = every_s
        self._payload_bytes = payload_bytes
        self._stop = threading.Event()
        self._drained = threading.Event()
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._get)]
        self.sent = 0
        self.refused: list[str] = []
        self.got: dict[int, set[str]] = {}  # number -> ids of the messages that carried it

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait_for(self, sent: int) -> None:
        deadline = time.monotonic() + 60
        while self.sent < sent:
            assert time.monotonic() < deadline, f"only {self.sent} of {sent} messages were sent"
            time.sleep(0.05)

    def stop(self) -> None:
        """End the producer, then the consumer once nothing more comes."""
        self._stop.set()
        self._threads[0].join(timeout=60)
        self._drained.set()
        self._threads[1].join(timeout=60)
        assert not any(thread.is_alive() for thread in self._threads)

    def _send(self) -> None:
        import pulsar

        def answered(result: Any, _message_id: Any) -> None:
            if result != pulsar.Result.Ok:
                self.refused.append(str(result))

        while not self._stop.is_set():
            body = self.sent.to_bytes(8, "big").ljust(self._payload_bytes, b"\0")
            self._producer.send_async(body, answered)
            self.sent += 1
            time.sleep(self._every_s)
        self._producer.flush()

    def _get(self) -> None:
        import pulsar

        silent = 0
        while True:
            complete = self._drained.is_set() and len(self.got) >= self.sent
            try:
                message = self._consumer.receive(timeout_millis=500 if complete else 10_000)
            except pulsar.Timeout:
                silent += 1
                if self._drained.is_set() and (len(self.got) >= self.sent or silent >= _GIVE_UP):
                    return
                continue
            silent = 0
            number = int.from_bytes(message.data()[:8], "big")
            self.got.setdefault(number, set()).add(str(message.message_id()))
            self._consumer.acknowledge(message)


@contextmanager
def live_topic(
    endpoints: Endpoints, topic: str, *, every_s: float = 0.002, payload_bytes: int = 1024
) -> Iterator[LiveTopic]:
    """A LiveTopic at work; stopped and drained at the end."""
    with client_of(endpoints) as client:
        live = LiveTopic(client, topic, every_s=every_s, payload_bytes=payload_bytes)
        live.start()
        try:
            yield live
        finally:
            live.stop()
