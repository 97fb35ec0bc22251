"""One shared real stack as fault tests use it: own namespaces and topics, and proofs of invariants.

Nothing here is the product: topics are made and read through the broker's admin API and the public
client, and invariants are judged by reading the two metadata trees and the bucket anew.
"""

from __future__ import annotations

import json
import secrets
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from tests.support.ledger_writer import LedgerWriter
from tests.support.offload_policies import offload_policies
from tiering_assets.batch.pipeline import LedgerOutcome
from tiering_assets.clean.orphans import Sweep
from tiering_assets.clean.sweep import Leaving, find_leavings, sweep
from tiering_assets.copy.ask_first import require_proven
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate, Outcome
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState, DigestType, LedgerMetadata
from tiering_assets.resources.bookkeeper.ledger_metadata import encode_ledger_metadata
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.devstack.probes import http_call
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec, consume_all, produce, seal
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.settings import Settings

YOUNGEST_S = 0.001  # guard age and claim life for tests: the store's clock counts whole seconds
FIRST_OWN_LEDGER = 50_000_000  # far above what a broker gets in a test run


@dataclass(frozen=True)
class Topic:
    """A topic with one closed ledger that the broker wrote, and one open one behind it."""

    spec: TopicSpec
    ml_name: str
    ledger_id: int

    @property
    def name(self) -> str:
        return f"persistent://{self.spec.topic}"


class Lab:
    """What fault tests do to one running DevStack."""

    def __init__(self, running: DevStack) -> None:
        self.running = running
        self.endpoints = running.endpoints
        settings = running.settings()
        self.settings = replace(
            settings,
            publish=replace(settings.publish, confirm_timeout_s=15.0),
            release=replace(settings.release, deletion_lag_s=0.0, guard_age_s=YOUNGEST_S),
        )
        self._next_ledger_id = FIRST_OWN_LEDGER + secrets.randbelow(10**8)
        with self.open() as stack:  # once, before servers are struck
            require_proven(stack)

    # ----- the product

    @contextmanager
    def open(self, settings: Settings | None = None, **changes: Any) -> Iterator[Stack]:
        """A Stack as the CLI would open it; `changes` replace whole members of it."""
        with open_stack(settings or self.settings) as stack:
            yield replace(stack, **changes) if changes else stack

    def with_section(self, section: str, **values: Any) -> Settings:
        return replace(
            self.settings, **{section: replace(getattr(self.settings, section), **values)}
        )

    # ----- the broker

    def admin(self, method: str, path: str, body: object = None) -> Any:
        """Call the admin API; any refusal fails the test with the broker's own words."""
        port = urlsplit(self.endpoints.admin_url).port or 0
        data = None if body is None else json.dumps(body).encode()
        status, said = http_call(port, method, f"/admin/v2{path}", body=data, timeout_s=30.0)
        assert status in (200, 204), f"{method} {path}: {status} {said[:300]!r}"
        return json.loads(said) if said else None

    def namespace(self, name: str) -> str:
        """Make `public/<name>-<random>`, so that no canary or policy of another test counts."""
        namespace = f"public/{name}-{uuid4().hex[:8]}"
        self.admin("PUT", f"/namespaces/{namespace}", {})
        return namespace

    def topic(
        self, namespace: str, *, messages: int = 3, payload_bytes: int = 2000, name: str = ""
    ) -> Topic:
        """Produce a topic, and unload and load it, so that its first ledger is closed."""
        full = f"{namespace}/{name or 't' + uuid4().hex[:8]}"
        spec = TopicSpec(topic=full, messages=messages, payload_bytes=payload_bytes)
        produce(self.endpoints, spec)
        ledger_id = self.close_current(full)[-1]
        return Topic(spec=spec, ml_name=ml_name_of(full), ledger_id=ledger_id)

    def multi_block_topic(self, namespace: str) -> Topic:
        """One ledger of two blocks (the smallest part of an upload is 5 MiB)."""
        return self.topic(namespace, messages=7, payload_bytes=900 * 1024)

    def close_current(self, topic: str) -> list[int]:
        """Roll the topic's ledger over; ids of all closed ledgers, ascending."""
        path = f"/persistent/{topic}"
        self.admin("PUT", f"{path}/unload")
        stats = self.admin("GET", f"{path}/internalStats")
        return sorted(ledger["ledgerId"] for ledger in stats["ledgers"])[:-1]

    def broker_offloads(self, topic: Topic) -> None:
        """Have the broker's own offloader copy all closed ledgers, and wait for it."""
        path = f"/persistent/{topic.spec.topic}"
        open_ledger = self.admin("GET", f"{path}/internalStats")["ledgers"][-1]["ledgerId"]
        until = {"ledgerId": open_ledger, "entryId": 0, "partitionIndex": -1}
        self.admin("PUT", f"{path}/offload", until)
        while (status := self.admin("GET", f"{path}/offload")["status"]) == "RUNNING":
            time.sleep(0.1)
        assert status == "SUCCESS", status

    def offload_policies(self) -> dict[str, object]:
        """A namespace's policy object that says what the broker's own configuration says."""
        return offload_policies(self.endpoints)

    def read_from(self, namespace: str, endpoint: str) -> None:
        """Have the broker read the namespace's offloaded ledgers at this address of the store."""
        policies = {**self.offload_policies(), "s3ManagedLedgerOffloadServiceEndpoint": endpoint}
        self.admin("POST", f"/namespaces/{namespace}/offloadPolicies", policies)

    def readable(self, topic: Topic, *, reloaded: bool = False) -> None:
        """Every message comes back, byte for byte, through the broker (else it raises)."""
        if reloaded:
            seal(self.endpoints, topic.spec)  # nothing is served from the broker's cache
        consume_all(self.endpoints, topic.spec, timeout_s=20.0)

    # ----- ledgers that no broker would make

    def write_ledger(
        self,
        stack: Stack,
        payloads: list[bytes],
        *,
        owner: str,
        length: int | None = None,
        state: BookKeeperState = BookKeeperState.CLOSED,
    ) -> int:
        """Write a ledger to the real bookies with metadata as told, true or not."""
        ledger_id = self._next_ledger_id
        self._next_ledger_id += 1
        path = stack.ledgers.path(ledger_id)

        def create(metadata: LedgerMetadata) -> None:
            stack.metadata.create(path, encode_ledger_metadata(metadata))

        def close(metadata: LedgerMetadata) -> None:
            told = replace(metadata, state=state)
            if state is not BookKeeperState.CLOSED:
                told = replace(told, last_entry_id=-1, length=0)
            if length is not None:
                told = replace(told, length=length)
            stack.metadata.set(path, encode_ledger_metadata(told), expected_version=0)

        with BookiePool(stack.settings.bookies, dict(self.endpoints.bookies)) as pool:
            writer = LedgerWriter(
                pool,
                ledger_id=ledger_id,
                ensemble=sorted(self.endpoints.bookies),
                write_quorum=3,
                ack_quorum=2,
                create=create,
                close=close,
                digest_type=DigestType.CRC32C,
                custom={
                    "application": b"pulsar",
                    "component": b"managed-ledger",
                    "pulsar/managed-ledger": owner.encode(),
                },
            )
            for payload in payloads:
                writer.add(payload)
            writer.close()
        return ledger_id

    def list_ledgers(self, stack: Stack, ml_name: str, ledgers: dict[int, list[bytes]]) -> None:
        """Make the managed-ledger node of a topic that no broker ever loads."""
        stack.metadata.create(managed_ledger_path(ml_name), managed_ledger_bytes(ledgers))

    # ----- invariants

    def leavings(self, stack: Stack, ledger_id: int) -> list[Leaving]:
        """What clean-up finds of one ledger's attempts, and decides about each."""
        found = find_leavings(stack)
        return [x for x in found if x.attempt.record.ledger.ledger_id == ledger_id]

    def swept(self, stack: Stack, ledger_id: int) -> list[Attempt]:
        """Sweep whatever may go, of all ledgers; the attempts of this one that went."""
        return [
            x.attempt.record
            for x in sweep(stack, execute=True)
            if x.attempt.record.ledger.ledger_id == ledger_id and isinstance(x.decision, Sweep)
        ]

    def assert_only_collectable(self, stack: Stack, ledger_id: int) -> None:
        """No context, no certificate in use: whatever attempts left may be swept, now."""
        self.older(stack)
        decisions = [x.decision for x in self.leavings(stack, ledger_id)]
        assert all(isinstance(decision, Sweep) for decision in decisions), decisions

    def assert_published_once(self, stack: Stack, topic: Topic) -> UUID:
        """One complete context whose attempt alone won `publish`; both its objects are there."""
        uid = self.context_uid(stack, topic)
        assert uid is not None
        attempts = stack.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))
        records = [stored.record for stored in attempts]
        won = {
            record.uid
            for record in records
            if (found := stack.book.read(Outcome, keys.outcome(topic.ledger_id, record.uid)))
            and found.record.outcome == "publish"
        }
        assert won == {uid}
        record = next(record for record in records if record.uid == uid)
        data = stack.objects.head(record.data_key)
        assert data is not None
        assert data.size == record.object_bytes
        assert stack.objects.head(record.index_key) is not None
        return uid

    def context_uid(self, stack: Stack, topic: Topic) -> UUID | None:
        """Uid of the ledger's complete context in a fresh read of the node."""
        found = stack.topics.read(topic.ml_name)
        assert found is not None
        listed = found[0].ledger(topic.ledger_id)
        assert listed is not None
        if listed.offload is None:
            return None
        assert listed.offload.complete
        return listed.offload.uid

    def older(self, stack: Stack) -> None:
        """Wait until the store's clock, which counts whole seconds, is past all that was
        written.
        """
        before = stack.objects.server_time()
        while stack.objects.server_time() <= before:
            time.sleep(0.05)

    def assert_no_secret(self, text: str) -> None:
        assert self.endpoints.s3_secret_key not in text


def certificate_of(outcome: LedgerOutcome) -> Certificate:
    assert outcome.error is None
    assert outcome.certificate is not None
    return outcome.certificate.record


def error_of(outcome: LedgerOutcome) -> TierkeeperError:
    assert outcome.error is not None
    assert outcome.published is None
    return outcome.error


def wait_of(outcome: LedgerOutcome) -> Wait:
    assert outcome.error is None
    assert outcome.wait is not None
    assert outcome.published is None
    return outcome.wait


def ml_name_of(topic: str) -> str:
    """Managed-ledger name of `tenant/namespace/name`, for names that need no encoding."""
    tenant, namespace, name = topic.split("/")
    return f"{tenant}/{namespace}/persistent/{name}"


def managed_ledger_bytes(ledgers: dict[int, list[bytes]]) -> bytes:
    """ManagedLedgerInfo (MLDataFormats.proto), written field by field: 1 = LedgerInfo.

    LedgerInfo: 1 ledgerId, 2 entries, 3 size, 4 timestamp, all required by a closed ledger.
    """
    body = b""
    for ledger_id, payloads in ledgers.items():
        values = (ledger_id, len(payloads), sum(map(len, payloads)), 1_700_000_000_000)
        info = b"".join(
            bytes([number << 3]) + _varint(value) for number, value in enumerate(values, start=1)
        )
        body += b"\x0a" + _varint(len(info)) + info
    return body


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def framed(first_entry_id: int, payloads: list[bytes], block_length: int) -> bytes:
    """One PIP-17 block, written down without the encoder."""
    body = struct.pack(">Iqqq", 0xFBDBABCB, 128, block_length, first_entry_id).ljust(128, b"\0")
    for entry_id, payload in enumerate(payloads, start=first_entry_id):
        body += struct.pack(">iq", len(payload), entry_id) + payload
    padding = block_length - len(body)
    return body + (bytes.fromhex("fedcdead") * (padding // 4 + 1))[:padding]
