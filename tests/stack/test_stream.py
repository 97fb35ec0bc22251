"""Segments of a real topic while its producer goes on: what they hold is what the ledgers hold once
they are sealed, and the broker notices nothing.
"""

import json
from dataclasses import replace

import pulsar
import pytest

from tests.support.cli_shell import Shell
from tests.support.golden_segments import decoded_entries
from tests.support.tiered_cluster import ml_names, tiered_cluster
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.stream.assign_rules import NothingDue
from tiering_assets.stream.cut import by_hand, open_chain
from tiering_assets.stream.offload_segment import Offloaded, offload_next
from tiering_assets.stream.switch import open_stream

pytestmark = pytest.mark.stack

NAMESPACE = "public/streamed"
TOPIC = f"{NAMESPACE}/orders"
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        connected.make_namespace(NAMESPACE)
        small = replace(connected.steps.settings.stream, block_bytes=5 * MIB)
        settings = replace(connected.steps.settings, stream=small)
        yield replace(connected, steps=replace(connected.steps, settings=settings))


@pytest.fixture(scope="module")
def producer(cluster):
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(cluster.endpoints.service_url, logger=logger)
    yield client.create_producer(f"persistent://{TOPIC}", batching_enabled=False)
    client.close()


def spec():
    return TopicSpec(topic=TOPIC, messages=0, payload_bytes=0)


def chain(cluster):
    [ml_name] = ml_names(spec())
    return open_chain(cluster.steps, ml_name)


def cut(cluster, *, size=2**30):
    when = replace(by_hand(cluster.steps), size_bytes=size)
    return offload_next(cluster.steps, chain(cluster), when)


def held(cluster, certificate):
    data = cluster.steps.objects.get(certificate.record.data.key).body
    index = cluster.steps.objects.get(certificate.record.index.key).body
    return dict(decoded_entries(index, data))


def test_segments_of_an_open_ledger_are_what_the_sealed_ones_hold(cluster, producer):
    [ml_name] = ml_names(spec())
    producer.send(b"first")
    open_stream(cluster.steps, ml_name, author="a test")
    node = cluster.steps.topics.read(ml_name)[1].stat
    metadata = {info.ledger_id: cluster.ledger(info.ledger_id) for info in listed(cluster)}
    [open_id] = metadata
    for n in range(14):
        producer.send(bytes([n]) * MIB)
    segments = [cut(cluster)]
    assert isinstance(segments[0], Offloaded)
    assert len(segments[0].segment.record.ledgers[0].blocks) > 2
    assert cluster.ledger(open_id) == metadata[open_id]  # neither fenced nor closed
    assert cluster.steps.topics.read(ml_name)[1].stat == node
    for n in range(300):
        producer.send(bytes([n % 256]) * 1000)
    cluster.seal(spec())
    for n in range(20):
        producer.send(bytes([n]) * 10_000)
    while isinstance(found := cut(cluster, size=5 * MIB), Offloaded):
        segments.append(found)
    assert isinstance(found, NothingDue)
    assert [one.segment.record.number for one in segments] == [*range(1, len(segments) + 1)]
    cluster.seal(spec())
    entries: dict[tuple[int, int], bytes] = {}
    for one in segments:
        own = held(cluster, one.segment)
        assert entries.keys().isdisjoint(own)
        entries |= own
    ledgers = [info.ledger_id for info in listed(cluster)[:2]]
    for ledger_id in ledgers:
        assert cluster.ledger(ledger_id).state is BookKeeperState.CLOSED
        sealed = dict(cluster.bookie_entries(ledger_id))
        ours = {entry_id: one for (ledger, entry_id), one in entries.items() if ledger == ledger_id}
        assert len(ours) >= len(sealed) - 1  # nobody wrote behind the last entry
        assert ours.items() <= sealed.items()
    assert {ledger_id for ledger_id, _entry in entries} == {*ledgers}


def test_who_offloads_a_streamed_topic_by_hand_has_its_open_ledger_cut(cluster, producer, tmp_path):
    """As PIP-76 has it. Its sealed ledgers go the usual way."""
    last = [producer.send(b"by hand") for _ in range(3)][1]  # each confirms the one before it
    said = Shell(cluster.running, tmp_path)(
        "topic", "offload", TOPIC, "--keep-bytes", "0", "--json"
    )
    found = json.loads(said.stdout)
    assert found["cut_error"] is None
    ledger_id, entry_id = map(int, found["segments"][-1]["last_position"].split(":"))
    assert (ledger_id, entry_id) >= (last.ledger_id(), last.entry_id())
    assert chain(cluster).start.ledger_id == ledger_id


def listed(cluster):
    return cluster.managed_ledger(spec()).ledgers
