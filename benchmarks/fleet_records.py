"""A fleet of synthetic ledgers with all their records, in a real ZooKeeper and a real bucket.

One ledger goes through the real steps on simulated servers; its records, objects and nodes are then
told of every other ledger, chained by their digests. Of ten ledgers five are released, two wait for
their lag, one is due, one is proven and one only closed. One of a hundred has a claim: the store
dates it now, and a claim of now is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from tests.support.sim_broker_memory import halves
from tests.support.sim_scene import TOPIC as PATTERN
from tests.support.sim_scene import Scene
from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.codec import encode_record
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    Claim,
    Outcome,
    Publication,
    Record,
    Release,
    ReleaseIntent,
)
from tiering_assets.records.signature import with_digest
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.object_store.records import encode_record as canonical
from tiering_assets.resources.object_store.records import record_sha256

FIRST_ID = 10**6
TOPICS = 100
PUBLISHED_TOGETHER = 100
KINDS = "rrrrrllpvs"  # released, in lag, due (past the lag), verified, sealed: by id modulo ten
_WRITERS = 16


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one real ledger left: published, and then released."""

    published: ml_pb2.ManagedLedgerInfo
    released: ml_pb2.ManagedLedgerInfo
    attempt: Attempt
    certificate: Certificate
    outcome: Outcome
    publication: Publication
    intent: ReleaseIntent
    release: Release


def real_pattern() -> Pattern:
    """Take one ledger through the steps on simulated servers."""
    scene = Scene()
    scene.publish()
    published = _node(scene)
    scene.past_the_lag()
    scene.release()
    book = scene.stack.book
    uid = keys.pair_of(book.keys("attempts/")[0])[1]
    return Pattern(
        published=published,
        released=_node(scene),
        attempt=book.require(Attempt, keys.attempt(0, uid)).record,
        certificate=book.require(Certificate, keys.certificate(0, uid)).record,
        outcome=book.require(Outcome, keys.outcome(0, uid)).record,
        publication=book.require(Publication, keys.publication(PATTERN, 1)).record,
        intent=book.require(ReleaseIntent, keys.release_intent(0, uid)).record,
        release=book.require(Release, keys.release(0, uid)).record,
    )


def fill_fleet(stack: Stack, ledgers: int, *, narrate: Callable[[str], None]) -> list[str]:
    """Write the fleet; returns the names of its topics."""
    pattern, began = real_pattern(), time.perf_counter()
    names = [f"public/default/persistent/fleet-{number:04d}" for number in range(TOPICS)]
    share = ledgers // TOPICS
    written = 0
    with ThreadPoolExecutor(_WRITERS) as pool:
        for number, name in enumerate(names):
            ids = range(FIRST_ID + number * share, FIRST_ID + (number + 1) * share)
            topic = _FleetTopic(stack, pattern, name)
            written += sum(pool.map(topic.write, ids))
            written += topic.finish()
    seconds = time.perf_counter() - began
    narrate(f"{share * TOPICS} ledgers, {written} records and objects in {seconds:.0f} s")
    return names


class _FleetTopic:
    def __init__(self, stack: Stack, pattern: Pattern, ml_name: str) -> None:
        self._stack, self._pattern, self._ml_name = stack, pattern, ml_name
        self._infos: dict[int, ml_pb2.ManagedLedgerInfo.LedgerInfo] = {}
        self._published: dict[int, tuple[UUID, str]] = {}

    def write(self, ledger_id: int) -> int:
        """One ledger's node, records and objects; how many of the latter."""
        kind, uid = KINDS[ledger_id % len(KINDS)], uuid4()
        self._infos[ledger_id] = self._info(ledger_id, kind, uid)
        if kind != "r":
            self._stack.metadata.create(
                self._stack.ledgers.path(ledger_id),
                bytes.fromhex(self._pattern.intent.ledger_metadata_hex),
            )
        if kind == "s":
            return 0
        written = 0
        for key, record in self._records(ledger_id, kind, uid):
            body = canonical(with_digest(encode_record(record)))
            self._stack.objects.put(self._stack.book.prefix + key, body)
            written += 1
        for key in (data_key(uid, ledger_id), index_key(uid, ledger_id)):
            self._stack.objects.put(key, b"synthetic")
            written += 1
        return written

    def finish(self) -> int:
        """The topic's publications and its node."""
        message = ml_pb2.ManagedLedgerInfo()
        message.ledgerInfo.extend(info for _id, info in sorted(self._infos.items()))
        message.ledgerInfo.add(ledgerId=max(self._infos) + 10**8)
        together = [
            replace(
                self._pattern.publication.ledgers[0],
                ledger_id=ledger_id,
                uid=uid,
                previous=previous,
                context_ms=self._infos[ledger_id].offloadContext.timestamp,
            )
            for ledger_id, (uid, previous) in sorted(self._published.items())
        ]
        batches = range(0, len(together), PUBLISHED_TOGETHER)
        for number, begin in enumerate(batches, 1):
            batch = tuple(together[begin : begin + PUBLISHED_TOGETHER])
            record = replace(
                self._pattern.publication,
                ml_name=self._ml_name,
                ledgers=batch,
                confirmed_at=_a_month_ago(),
            )
            key = self._stack.book.prefix + keys.publication(self._ml_name, number)
            self._stack.objects.put(key, canonical(with_digest(encode_record(record))))
        self._stack.metadata.create(managed_ledger_path(self._ml_name), message.SerializeToString())
        return len(batches)

    def _info(self, ledger_id: int, kind: str, uid: UUID) -> ml_pb2.ManagedLedgerInfo.LedgerInfo:
        source = self._pattern.released if kind == "r" else self._pattern.published
        info = ml_pb2.ManagedLedgerInfo.LedgerInfo()
        info.CopyFrom(source.ledgerInfo[0])
        info.ledgerId = ledger_id
        info.timestamp = int(_a_month_ago().timestamp() * 1000)
        if kind in "vs":
            info.ClearField("offloadContext")
            return info
        written_at = datetime.now(UTC) if kind == "l" else _a_month_ago()
        info.offloadContext.timestamp = int(written_at.timestamp() * 1000)
        info.offloadContext.uidMsb, info.offloadContext.uidLsb = halves(uid)
        for one in info.offloadContext.driverMetadata.properties:
            if one.key == "bucket":
                one.value = self._stack.objects.bucket
        return info

    def _records(self, ledger_id: int, kind: str, uid: UUID) -> Iterator[tuple[str, Record]]:
        p = self._pattern
        facts = replace(p.certificate.ledger, ledger_id=ledger_id)
        about: dict[str, Any] = {"ml_name": self._ml_name, "uid": uid}
        data, index = data_key(uid, ledger_id), index_key(uid, ledger_id)
        attempt = replace(p.attempt, ledger=facts, data_key=data, index_key=index, **about)
        yield keys.attempt(ledger_id, uid), attempt
        certificate = replace(
            p.certificate,
            ledger=facts,
            previous=_sha256(attempt),
            data=replace(p.certificate.data, key=data),
            index=replace(p.certificate.index, key=index),
            **about,
        )
        yield keys.certificate(ledger_id, uid), certificate
        if ledger_id % 100 == KINDS.index("v"):
            long_ago = datetime.now(UTC) - timedelta(days=3)
            yield (
                keys.claim(ledger_id),
                Claim(ledger_id=ledger_id, run_id="fleet", attempt=uid, expires_at=long_ago),
            )
        if kind == "v":
            return
        outcome = replace(p.outcome, ledger_id=ledger_id, uid=uid, previous=_sha256(certificate))
        yield keys.outcome(ledger_id, uid), outcome
        self._published[ledger_id] = uid, _sha256(outcome)
        if kind == "r":
            intent = replace(p.intent, ledger=facts, previous=_sha256(outcome), **about)
            yield keys.release_intent(ledger_id, uid), intent
            yield (
                keys.release(ledger_id, uid),
                replace(p.release, ledger_id=ledger_id, previous=_sha256(intent), **about),
            )


def _sha256(record: Record) -> str:
    return record_sha256(with_digest(encode_record(record)))


def _node(scene: Scene) -> ml_pb2.ManagedLedgerInfo:
    stored = scene.cluster.metadata.nodes[managed_ledger_path(PATTERN)]
    return ml_pb2.ManagedLedgerInfo.FromString(stored.data)


def _a_month_ago() -> datetime:
    return datetime.now(UTC) - timedelta(days=30)
