"""Seconds of `tierkeeper dagster rebuild` for a fleet of synthetic ledgers, into an empty SQLite
home.

One ledger goes through the real steps on simulated servers; its records and its topic's node are
then told of every other ledger. Three of four ledgers are published, every fourth is released.

Run: python benchmarks/rebuild.py [--ledgers 10000] [--bucket] [--by day]

With --bucket the records lie in the bucket of the settings (TIERKEEPER_STORE_...), below
tierkeeper/rebuild-<random>/; they stay there. Metadata is simulated in either case.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import dagster as dg

from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_broker_memory import halves
from tests.support.sim_clients import Process
from tests.support.sim_cluster import SimCluster
from tests.support.sim_world import World
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.defs.rebuild import rebuild
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    Publication,
    Record,
    Release,
    ReleaseIntent,
)
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.metastore.topics import TopicDirectory
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings_sources import load_settings

TOPIC = "t/ns/persistent/orders"
TOPICS = 100
PUBLISHED_TOGETHER = 10
DIGEST = "0" * 64


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.add_argument("--ledgers", type=int, default=10_000)
    options.add_argument("--bucket", action="store_true", help="records in the settings' bucket")
    options.add_argument("--by", choices=("ledger", "day"), default="ledger")
    chosen = options.parse_args()
    stack = make_fleet(chosen.ledgers, in_bucket=chosen.bucket, by=chosen.by)
    cluster = ClusterNames.of(stack.settings.dagster)
    with (
        tempfile.TemporaryDirectory() as home,
        dg.DagsterInstance.local_temp(home) as instance,
    ):
        for name in ("rebuild", "again"):
            wall, cpu = time.perf_counter(), time.process_time()
            found = rebuild(stack, instance, cluster)
            print(
                f"{name}: {time.perf_counter() - wall:.1f} s, {time.process_time() - cpu:.1f} s of "
                f"processor: {found.partitions_added} partitions, "
                f"{sum(found.materializations.values())} materializations, "
                f"{sum(found.evaluations.values())} evaluations"
            )


def make_fleet(count: int, *, in_bucket: bool, by: str) -> Stack:
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    site.broker.produce(TOPIC, [b"first", b"last"])
    site.broker.roll_over(TOPIC)
    pattern = Process(world, "pattern", site).stack()
    offload_batch(pattern, [0])
    published = _node(site.cluster)
    world.scheduler.now += 24 * 3600
    release_topic(pattern, TOPIC, [0])
    released = _node(site.cluster)

    cluster = SimCluster(f"rebuild-{uuid4()}", lambda: int(time.time() * 1000))
    settings = replace(
        pattern.settings,
        dagster=replace(pattern.settings.dagster, partitions_max=count, partition_by=by),
    )
    objects = (
        S3ObjectStore(load_settings().settings.store)
        if in_bucket
        else SimulatedObjectStore("sim-bucket", part_bytes_min=1)
    )
    if isinstance(objects, SimulatedObjectStore):
        objects.now = datetime.now(UTC)
    metadata = cluster.metadata.client()
    stack = replace(
        pattern,
        settings=settings,
        metadata=metadata,
        ledgers=LedgerDirectory(metadata),
        topics=TopicDirectory(metadata),
        objects=objects,
        book=RecordBook(objects, cluster.instance),
        instance=cluster.instance,
        now=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
        narrate=lambda line: print(line, file=sys.stderr),
    )
    began = time.perf_counter()
    with ThreadPoolExecutor(16 if in_bucket else 1) as pool:
        writes = (
            (key, record)
            for topic in range(TOPICS)
            for key, record in _topic(pattern, cluster, topic, count, published, released)
        )
        written = sum(1 for _done in pool.map(lambda one: stack.book.create(*one), writes))
    print(f"{written} records written in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return stack


def _node(cluster: SimCluster) -> ml_pb2.ManagedLedgerInfo:
    return ml_pb2.ManagedLedgerInfo.FromString(
        cluster.metadata.nodes[managed_ledger_path(TOPIC)].data
    )


def _topic(
    pattern: Stack,
    cluster: SimCluster,
    number: int,
    count: int,
    published: ml_pb2.ManagedLedgerInfo,
    released: ml_pb2.ManagedLedgerInfo,
) -> Iterator[tuple[str, Record]]:
    """Write the nodes of one topic and yield the records of its share of the ledgers."""
    ml_name = f"{TOPIC}-{number}"
    node = ml_pb2.ManagedLedgerInfo()
    node.CopyFrom(published)
    del node.ledgerInfo[:]
    book = pattern.book
    (attempt_key,) = book.keys("attempts/")
    uid_0 = keys.pair_of(attempt_key)[1]
    attempt = book.require(Attempt, attempt_key).record
    certificate = book.require(Certificate, keys.certificate(0, uid_0)).record
    publication = book.require(Publication, keys.publication(TOPIC, 1)).record
    intent = book.require(ReleaseIntent, keys.release_intent(0, uid_0)).record
    release = book.require(Release, keys.release(0, uid_0)).record
    together = []
    first = count * number // TOPICS
    last = count * (number + 1) // TOPICS
    for ledger_id in range(first, last):
        uid = uuid4()
        gone = ledger_id % 4 == 3
        info = node.ledgerInfo.add()
        info.CopyFrom((released if gone else published).ledgerInfo[0])
        info.ledgerId = ledger_id
        info.offloadContext.uidMsb, info.offloadContext.uidLsb = halves(uid)
        if not gone:
            cluster.metadata.put(cluster.path(ledger_id), bytes.fromhex(intent.ledger_metadata_hex))
        facts = replace(certificate.ledger, ledger_id=ledger_id)
        yield (
            keys.attempt(ledger_id, uid),
            replace(attempt, ledger=facts, ml_name=ml_name, uid=uid),
        )
        yield (
            keys.certificate(ledger_id, uid),
            replace(
                certificate, ledger=facts, blocks=certificate.blocks * 16, ml_name=ml_name, uid=uid
            ),
        )
        if gone:
            yield (
                keys.release_intent(ledger_id, uid),
                replace(intent, ledger=facts, ml_name=ml_name, uid=uid),
            )
            yield (
                keys.release(ledger_id, uid),
                replace(release, ledger_id=ledger_id, ml_name=ml_name, uid=uid),
            )
        together.append(
            replace(publication.ledgers[0], ledger_id=ledger_id, uid=uid, previous=DIGEST)
        )
    for n, begin in enumerate(range(0, len(together), PUBLISHED_TOGETHER), 1):
        yield (
            keys.publication(ml_name, n),
            replace(
                publication,
                ml_name=ml_name,
                ledgers=tuple(together[begin : begin + PUBLISHED_TOGETHER]),
            ),
        )
    cluster.metadata.put(managed_ledger_path(ml_name), node.SerializeToString())


if __name__ == "__main__":
    main()
