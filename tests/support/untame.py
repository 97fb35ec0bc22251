"""Two unlike brokers, eight bookies and every setting that a careful operator would rather not
have.

Nothing here is the product: it moves topics between brokers, has Pulsar's own tools write
transactions, and makes a topic of thousands of ledgers.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kazoo.client import KazooClient

from tests.support.ledger_writer import LedgerWriter
from tests.support.offload_policies import offload_policies
from tests.support.tiered_cluster import TieredCluster, ml_names, wait_until
from tests.support.topic_halves import release_topic
from tiering_assets.ground.reasons import NotNow
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState, LedgerMetadata
from tiering_assets.resources.bookkeeper.ledger_metadata import encode_ledger_metadata
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.devstack.endpoints import Endpoints
from tiering_assets.resources.devstack.fetch import cache_dir, distribution_dir
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.probes import HTTP_OK, http_call
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import KIB, Content, TopicSpec
from tiering_assets.resources.errors import MetadataConflictError
from tiering_assets.resources.metastore.envelope import Compression
from tiering_assets.resources.metastore.ledger_info import encode_managed_ledger
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

UNTAME = StackOptions(
    bookies=8,
    brokers=2,
    bookie_conf={"autoRecoveryDaemonEnabled": "true"},
    broker_conf={
        "managedLedgerDefaultEnsembleSize": "3",
        "managedLedgerDefaultWriteQuorum": "2",
        "managedLedgerDefaultAckQuorum": "2",
        "loadBalancerEnabled": "true",
        "autoSkipNonRecoverableData": "true",
        "transactionCoordinatorEnabled": "true",
        "managedLedgerInfoCompressionType": "LZ4",
        "managedLedgerDataReadPriority": "bookkeeper-first",
    },
    one_broker_conf={"broker2": {"managedLedgerOffloadDriver": None}},
)
PATIENCE_S = 240.0
_PERF_TIMEOUT_S = 300.0
_WRITERS_IN_FLIGHT = 200


def versions_of(running: DevStack) -> dict[str, str]:
    """What the running servers, and the distribution that they were started from, say they are."""
    ends = running.endpoints
    port = urlsplit(ends.admin_url).port or 0
    status, said = http_call(port, "GET", "/admin/v2/brokers/version")
    assert status == HTTP_OK
    host, _, zookeeper_port = ends.zookeeper.partition(":")
    with socket.create_connection((host, int(zookeeper_port)), timeout=30) as connection:
        connection.sendall(b"srvr")
        answer = connection.makefile().readline()
    distribution = distribution_dir(cache_dir(), running.options.pulsar_version)
    [server] = distribution.glob("lib/org.apache.bookkeeper-bookkeeper-server-*.jar")
    [offloader] = distribution.glob("offloaders/tiered-storage-jcloud-*.nar")
    return {
        "pulsar": said.decode().strip().strip('"'),
        "offloader": offloader.stem.removeprefix("tiered-storage-jcloud-"),
        "bookkeeper": server.stem.removeprefix("org.apache.bookkeeper-bookkeeper-server-"),
        "zookeeper": answer.removeprefix("Zookeeper version: ").split("-")[0],
    }


def set_skipping(cluster: TieredCluster, skips: bool) -> None:
    """Set autoSkipNonRecoverableData at all brokers, as doctor says; return when each says so."""
    value = str(skips).lower()
    cluster.admin("POST", f"/brokers/configuration/autoSkipNonRecoverableData/{value}")

    def told() -> bool:
        configs = cluster.steps.broker.runtime_configs().values()
        return {c["autoSkipNonRecoverableData"] for c in configs} == {value}

    wait_until(told, f"every broker says {value}", timeout_s=PATIENCE_S)


def owner_of(cluster: TieredCluster, topic: str) -> str:
    """`host:port` of the broker that serves `tenant/namespace/name`; makes one if there is none.

    Empty while the bundle is on its way.
    """
    port = urlsplit(cluster.endpoints.admin_url).port or 0
    status, said = http_call(port, "GET", f"/lookup/v2/topic/persistent/{topic}", timeout_s=60)
    if status != HTTP_OK:
        return ""
    return str(json.loads(said)["httpUrl"]).removeprefix("http://").rstrip("/")


def move(cluster: TieredCluster, topic: str, server: str) -> None:
    """Have the broker called `server` serve the topic's namespace, which has one bundle."""
    wanted = cluster.endpoints.broker_web[server]
    unload = f"/namespaces/{topic.rpartition('/')[0]}/0x00000000_0xffffffff/unload"
    deadline = time.monotonic() + PATIENCE_S
    while owner_of(cluster, topic) != wanted:
        assert time.monotonic() < deadline, f"{topic} does not move to {server}"
        cluster.admin("PUT", f"{unload}?destinationBroker={wanted}")
        settled = time.monotonic() + 15
        while not owner_of(cluster, topic) and time.monotonic() < settled:
            time.sleep(0.3)


def namespace(cluster: TieredCluster, name: str, *, readable_everywhere: bool = True) -> str:
    """A namespace of one bundle; with a policy of its own every broker reads our bucket."""
    full = f"public/{name}"
    bundle = {"bundles": {"numBundles": 1, "boundaries": ["0x00000000", "0xffffffff"]}}
    cluster.admin("PUT", f"/namespaces/{full}", json.dumps(bundle).encode())
    if readable_everywhere:
        set_offload_policies(cluster, full)
    return full


def set_offload_policies(cluster: TieredCluster, full: str) -> None:
    body = json.dumps(
        {
            **offload_policies(cluster.endpoints),
            "managedLedgerOffloadedReadPriority": "BOOKKEEPER_FIRST",
        }
    ).encode()
    cluster.admin("POST", f"/namespaces/{full}/offloadPolicies", body)


def filled(cluster: TieredCluster, topic: str) -> tuple[TopicSpec, Content, list[int]]:
    """A topic with two closed ledgers, each of an ensemble of three and a write quorum of two."""
    spec = TopicSpec(topic=topic, messages=300, payload_bytes=KIB, keys=9)
    sent = cluster.fill(spec, replace(spec, seed=1))
    ledger_ids = cluster.ledger_ids(spec)
    assert len(ledger_ids) == 2
    for ledger_id in ledger_ids:
        metadata = cluster.ledger(ledger_id)
        assert (metadata.ensemble_size, metadata.write_quorum) == (3, 2)
    return spec, sent, ledger_ids


def read_anew(cluster: TieredCluster, spec: TopicSpec) -> Content:
    """What a new reader gets once the topic is loaded anew, with an empty cache."""
    cluster.seal(spec)
    return cluster.content(spec)


def why_not_released(
    cluster: TieredCluster, spec: TopicSpec, ledger_ids: Sequence[int]
) -> set[str]:
    """Why no ledger is released; the bookie copies are still there."""
    [ml_name] = ml_names(spec)
    results = release_topic(cluster.steps, ml_name, ledger_ids)
    for ledger_id, result in results.items():
        assert isinstance(result, NotNow), result
        assert cluster.steps.ledgers.read(ledger_id) is not None
    return {str(result) for result in results.values()}


def pulsar_perf(
    running: DevStack,
    directory: Path,
    mode: str,
    *words: str,
    timeout_s: float,
    memory: str = "256m",
) -> subprocess.CompletedProcess[str]:
    """Pulsar's own `pulsar-perf`, with this stack's brokers; what it logs goes to a folder."""
    perf = distribution_dir(cache_dir(), running.options.pulsar_version) / "bin" / "pulsar-perf"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PULSAR_", "TIERKEEPER_"))}
    return subprocess.run(
        [str(perf), mode, "-u", running.endpoints.service_url, *words],
        env=kept
        | {
            "PULSAR_LOG_DIR": str(directory),
            "PULSAR_MEM": f"-Xmx{memory}",
            "PULSAR_GC_LOG": "-Dtierkeeper.gclog=off",
        },
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def send_in_transactions(
    running: DevStack, topic: str, words: str, directory: Path, *, messages: int, abort: bool
) -> None:
    """Have Pulsar's own producer send `<words> <number>` in transactions of ten; abort all or
    none.
    """
    payloads = directory / f"{words}.txt"
    payloads.write_text(f"{words} %i")
    done = pulsar_perf(
        running,
        directory,
        *("produce", "-txn", "-nmt", "10", "-m", str(messages), "-r", "200", "-bm", "1"),
        *("-f", str(payloads), "-fp", *(("-abort",) if abort else ()), topic),
        timeout_s=_PERF_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@contextmanager
def ledger_ids_of_bookkeeper(ends: Endpoints, count: int) -> Iterator[list[int]]:
    """Ids from BookKeeper's own generator, so that what a broker makes later comes behind them."""
    client = KazooClient(ends.zookeeper, timeout=30)
    client.start(timeout=60)
    try:
        made: list[str] = []
        while len(made) < count:
            batch = min(_WRITERS_IN_FLIGHT, count - len(made))
            asked = [
                client.create_async("/ledgers/idgen/ID-", b"", ephemeral=True, sequence=True)
                for _ in range(batch)
            ]
            made += [one.get(timeout=60) for one in asked]
        yield sorted(int(path.rpartition("-")[2]) for path in made)
    finally:
        client.stop()
        client.close()


def write_topic_of_many_ledgers(
    cluster: TieredCluster, ml_name: str, entries: Sequence[bytes]
) -> list[int]:
    """Give a topic that nobody has loaded one real ledger per entry; return their ids.

    Its own ledgers leave the list. The node is written with our codec, as LZ4.
    """
    stack, bookies = cluster.steps, sorted(cluster.endpoints.bookies)
    custom: Mapping[str, bytes] = {
        "application": b"pulsar",
        "component": b"managed-ledger",
        "pulsar/managed-ledger": ml_name.encode(),
    }
    with (
        ledger_ids_of_bookkeeper(cluster.endpoints, len(entries)) as ids,
        BookiePool(stack.settings.bookies, dict(cluster.endpoints.bookies)) as pool,
    ):
        for number, (ledger_id, entry) in enumerate(zip(ids, entries, strict=True)):
            _write_ledger(
                stack.metadata.create,
                stack.ledgers.path(ledger_id),
                pool,
                ledger_id=ledger_id,
                ensemble=[bookies[(number + i) % len(bookies)] for i in range(3)],
                entry=entry,
                custom=custom,
            )
    deadline = time.monotonic() + PATIENCE_S
    while True:  # whoever asked for the topic meanwhile had a broker load it, which writes its node
        cluster.admin("PUT", f"/namespaces/{ml_name.partition('/persistent/')[0]}/unload")
        try:
            _list_ledgers(cluster, ml_name, dict(zip(ids, entries, strict=True)))
            return ids
        except MetadataConflictError:
            assert time.monotonic() < deadline, f"{ml_name}: its broker writes it again and again"


def _list_ledgers(cluster: TieredCluster, ml_name: str, entries: Mapping[int, bytes]) -> None:
    stack = cluster.steps
    found = stack.topics.read(ml_name)
    assert found is not None
    topic, node = found
    message = topic.message_copy()
    del message.ledgerInfo[:]
    closed_ms = int(stack.now().timestamp() * 1000)
    for ledger_id, entry in entries.items():
        message.ledgerInfo.add(ledgerId=ledger_id, entries=1, size=len(entry), timestamp=closed_ms)
    made = replace(topic.with_message(message), compression=Compression.LZ4)
    stack.metadata.set(
        managed_ledger_path(ml_name),
        encode_managed_ledger(made),
        expected_version=node.stat.version,
    )


def _write_ledger(
    create: Any,
    path: str,
    pool: BookiePool,
    *,
    ledger_id: int,
    ensemble: list[str],
    entry: bytes,
    custom: Mapping[str, bytes],
) -> None:
    """One entry on two of three bookies. Its node says CLOSED from the start: one write less."""

    def closed(metadata: LedgerMetadata) -> None:
        told = replace(metadata, state=BookKeeperState.CLOSED, last_entry_id=0, length=len(entry))
        create(path, encode_ledger_metadata(told))

    writer = LedgerWriter(
        pool,
        ledger_id=ledger_id,
        ensemble=ensemble,
        write_quorum=2,
        ack_quorum=2,
        create=closed,
        close=lambda _metadata: None,
        custom=custom,
    )
    writer.add(entry)
    writer.close()
