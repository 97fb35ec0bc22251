"""Steady producers of a soak, and the reading that proves that nothing is lost, doubled or changed.

Owns: message number n of a topic has content that follows from (topic, n) alone. Producers have a
name and sequence ids, and the brokers deduplicate, so a resend after a lost acknowledgement must
not show. Acknowledgements are timed: the longest gap between two is what clients feel of a
disturbance.
"""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pulsar

PAYLOAD_BYTES = 1024
READ_TIMEOUT_MS = 60_000


def payload_of(topic: str, number: int) -> bytes:
    seed = hashlib.sha256(f"{topic}#{number}".encode()).digest()
    return (seed * (PAYLOAD_BYTES // len(seed) + 1))[:PAYLOAD_BYTES]


@dataclass
class Producer:
    """Sends `per_s` messages a second until stopped; then waits for the last acknowledgement."""

    client: Any
    topic: str
    per_s: float
    sent: int = 0
    acknowledged: int = 0
    refused: list[str] = field(default_factory=list)
    max_gap_s: float = 0.0
    gap_at: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _last: float = 0.0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self.topic, daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 180.0) -> None:
        self._stop.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.topic}: the producer does not end")

    def _run(self) -> None:
        producer = self.client.create_producer(
            self.topic,
            producer_name=f"soak-{self.topic.rpartition('/')[2]}",
            initial_sequence_id=-1,
            send_timeout_millis=0,  # never given up: a broker that restarts is waited for
            block_if_queue_full=True,
            max_pending_messages=1000,
            batching_enabled=False,
        )
        began = self._last = time.monotonic()
        while not self._stop.is_set():
            producer.send_async(
                payload_of(self.topic, self.sent), self._answered, sequence_id=self.sent
            )
            self.sent += 1
            self._stop.wait(max(0.0, began + self.sent / self.per_s - time.monotonic()))
        producer.flush()
        producer.close()

    def _answered(self, result: Any, _message_id: Any) -> None:
        now = time.monotonic()
        if now - self._last > self.max_gap_s:
            self.max_gap_s, self.gap_at = now - self._last, now
        self._last = now
        if result == pulsar.Result.Ok:
            self.acknowledged += 1
        else:
            self.refused.append(str(result))


def read_all(client: Any, topic: str, expected: int) -> tuple[int, list[str]]:
    """Messages read from the first on, and what is wrong about them: order, number, content."""
    wrong: list[str] = []
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    count = 0
    try:
        while count < expected or reader.has_message_available():
            got = reader.read_next(timeout_millis=READ_TIMEOUT_MS)
            if got.data() != payload_of(topic, count) and len(wrong) < 5:
                wrong.append(f"{topic}: message {count} at {got.message_id()} is another")
            count += 1
    except pulsar.Timeout:
        wrong.append(f"{topic}: {count} of {expected} messages, then none for 60 s")
    finally:
        reader.close()
    return count, wrong
