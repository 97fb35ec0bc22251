"""The whole path on a stack that nobody tamed: unlike brokers, skipping, autorecovery, E > Qw.

Every topic is read by a new reader of the real brokers at each station. The settings are those of
tests/support/untame.py; a namespace is made for each test, with one bundle, so that it can be
moved.
"""

import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.support.live_topic import client_of, live_topic, read_payloads
from tests.support.tiered_cluster import ml_names, tiered_cluster, wait_until
from tests.support.untame import (
    PATIENCE_S,
    UNTAME,
    filled,
    move,
    namespace,
    owner_of,
    read_anew,
    send_in_transactions,
    set_skipping,
    versions_of,
    why_not_released,
    write_topic_of_many_ledgers,
)
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.resources.devstack.probes import http_call
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import (
    Message,
    TopicSpec,
    consume_all,
    content_of,
    iter_messages,
    produce,
)
from tiering_assets.resources.metastore.envelope import Compression, decode_enveloped
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

pytestmark = [pytest.mark.untame, pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with DevStack.start(tmp_path_factory.mktemp("untame"), UNTAME) as stack:
        yield stack


@pytest.fixture(scope="module")
def cluster(running):
    """Brokers start by skipping what they cannot read; the refusal's own command stops them."""
    with tiered_cluster(running) as connected:
        refused, _sent, ledger_ids = filled(connected, f"{namespace(connected, 'skips')}/topic")
        for outcome in offload_batch(connected.steps, ledger_ids):
            assert "autoSkipNonRecoverableData is not false at" in str(outcome.error)
        set_skipping(connected, False)
        connected.offload(ledger_ids)
        connected.release(refused, ledger_ids)
        yield connected


@pytest.fixture(autouse=True)
def _servers_are_told(running, record_property):
    record_property("servers", versions_of(running))


def test_producer_and_consumer_stay_through_publish_and_release(cluster):
    topic = f"{namespace(cluster, 'live')}/topic"
    cluster.admin("POST", f"/namespaces/{topic.rpartition('/')[0]}/deduplication", b"true")
    spec = TopicSpec(topic=topic, messages=0, payload_bytes=0)
    with live_topic(cluster.endpoints, f"persistent://{topic}", every_s=0.01) as live:
        for sent in (100, 200):
            live.wait_for(sent)
            cluster.steps.broker.unload_topic(f"persistent://{topic}")
        live.wait_for(live.sent + 50)
        ledger_ids = cluster.ledger_ids(spec)
        cluster.offload(ledger_ids)
        cluster.release(spec, ledger_ids)
        live.wait_for(live.sent + 50)
    assert live.refused == []
    numbers = [
        int.from_bytes(p[:8], "big")
        for p in read_payloads(cluster.endpoints, f"persistent://{topic}")
    ]
    assert numbers == list(range(live.sent))
    assert sorted(live.got) == list(range(live.sent))


def test_unacknowledged_messages_of_a_shared_subscription_are_redelivered(cluster):
    import pulsar

    spec = TopicSpec(topic=f"{namespace(cluster, 'shared')}/topic", messages=300, payload_bytes=200)
    payloads = [message.payload for message in iter_messages(spec)]
    with client_of(cluster.endpoints) as client:
        consumer = client.subscribe(
            f"persistent://{spec.topic}",
            "shared",
            consumer_type=pulsar.ConsumerType.Shared,
            initial_position=pulsar.InitialPosition.Earliest,
        )
        produce(cluster.endpoints, spec)
        acknowledged, in_flight = set(), set()
        for number in range(200):
            message = consumer.receive(timeout_millis=60_000)
            if number % 2:
                consumer.acknowledge(message)
                acknowledged.add(message.data())
            else:
                in_flight.add(message.data())
        time.sleep(2)  # acknowledgements travel in groups
        cluster.seal(spec)
        ledger_ids = cluster.ledger_ids(spec)
        cluster.offload(ledger_ids)
        cluster.release(spec, ledger_ids)
        again: Counter[bytes] = Counter()
        while set(again) | acknowledged != set(payloads):
            message = consumer.receive(timeout_millis=60_000)
            again[message.data()] += 1
            consumer.acknowledge(message)
        assert in_flight <= set(again)
        assert not acknowledged & set(again)
        consumer.close()
        time.sleep(2)
        consumer = client.subscribe(
            f"persistent://{spec.topic}", "shared", consumer_type=pulsar.ConsumerType.Shared
        )
        left = []
        with suppress(pulsar.Timeout):
            while True:
                left.append(consumer.receive(timeout_millis=3_000).data())
        assert left == []
    assert read_anew(cluster, spec) == content_of(iter_messages(spec))


def test_committed_and_aborted_transactions_stay_what_they_are(cluster, running, tmp_path):
    spec = TopicSpec(topic=f"{namespace(cluster, 'txn')}/topic", messages=0, payload_bytes=0)
    topic = f"persistent://{spec.topic}"
    send_in_transactions(running, topic, "committed", tmp_path, messages=60, abort=False)
    send_in_transactions(running, topic, "aborted", tmp_path, messages=60, abort=True)
    send_in_transactions(running, topic, "committed-later", tmp_path, messages=20, abort=False)
    cluster.seal(spec)
    ledger_ids = cluster.ledger_ids(spec)
    stored = b"".join(payload for i in ledger_ids for _, payload in cluster.bookie_entries(i))
    assert b"aborted 1" in stored
    before = _visible(cluster, spec)
    assert len(before) >= 60
    assert {p.partition(b" ")[0] for p in before} == {b"committed", b"committed-later"}

    cluster.offload(ledger_ids)
    assert _visible(cluster, spec) == before
    cluster.release(spec, ledger_ids)
    cluster.require_gone_from_bookies(ledger_ids)
    for server in ("broker", "broker2"):
        move(cluster, spec.topic, server)
        assert _visible(cluster, spec) == before


def _visible(cluster, spec):
    """Payloads that a new consumer is shown, in order."""
    return read_payloads(cluster.endpoints, f"persistent://{spec.topic}")


def test_delayed_messages_come_after_their_release_and_not_before_their_time(cluster):
    import pulsar

    spec = TopicSpec(topic=f"{namespace(cluster, 'delayed')}/topic", messages=0, payload_bytes=0)
    topic, now, later = f"persistent://{spec.topic}", b"at once", b"later"
    with client_of(cluster.endpoints) as client:
        consumer = client.subscribe(
            topic,
            "delayed",
            consumer_type=pulsar.ConsumerType.Shared,
            initial_position=pulsar.InitialPosition.Earliest,
        )
        producer = client.create_producer(topic, batching_enabled=False)
        due = time.time() + 45
        for number in range(50):
            producer.send(b"%s %d" % (later, number), deliver_at=int(due * 1000))
            producer.send(b"%s %d" % (now, number))
        producer.close()
        got: dict[bytes, float] = {}

        def take(wanted):
            while len(got) < wanted:
                message = consumer.receive(timeout_millis=120_000)
                got.setdefault(message.data(), time.time())
                consumer.acknowledge(message)

        take(50)
        time.sleep(1)
        cluster.seal(spec)
        ledger_ids = cluster.ledger_ids(spec)
        cluster.offload(ledger_ids)
        cluster.release(spec, ledger_ids)
        take(100)
    kinds = Counter(data.rpartition(b" ")[0] for data in got)
    assert kinds == {now: 50, later: 50}
    tick_s = 1.0  # delayedDeliveryTickTimeMillis: a broker rounds to it
    early = [data for data, at in got.items() if data.startswith(later) and at < due - tick_s]
    assert early == []


def test_a_source_with_a_shadow_keeps_its_bookie_copy_on_two_brokers(cluster):
    spec, sent, ledger_ids = filled(cluster, f"{namespace(cluster, 'source')}/topic")
    shadow = replace(spec, topic=f"{spec.topic}-shadow", messages=2 * spec.messages)
    properties = json.dumps({"PULSAR.SHADOW_SOURCE": f"persistent://{spec.topic}"}).encode()
    cluster.admin("PUT", f"/persistent/{shadow.topic}", properties)
    shadows = json.dumps([f"persistent://{shadow.topic}"]).encode()
    cluster.admin("PUT", f"/persistent/{spec.topic}/shadowTopics", shadows)
    cluster.offload(ledger_ids)
    time.sleep(1.1)  # the lag
    for said in why_not_released(cluster, spec, ledger_ids):
        assert "shadow topics" in said
    for server in ("broker", "broker2"):
        move(cluster, spec.topic, server)
        assert consume_all(cluster.endpoints, shadow, check=False) == sent
        assert cluster.content(spec) == sent


def test_autorecovery_moves_a_published_ledger_which_is_then_released(cluster, running):
    spec, sent, ledger_ids = filled(cluster, f"{namespace(cluster, 'recovery')}/topic")
    before = {i: cluster.ledger(i) for i in ledger_ids}
    cluster.offload(ledger_ids)
    lost = before[ledger_ids[0]].segments[-1].bookies[0]
    server = cluster.endpoints.bookie_names[lost]
    running.stop_server(server, kill=True)
    try:
        wait_until(
            lambda: lost not in cluster.ledger(ledger_ids[0]).segments[-1].bookies,
            f"autorecovery replaces {lost}",
            timeout_s=PATIENCE_S,
        )
        wait_until(
            lambda: not any(cluster.steps.ledgers.under_replicated(i) for i in ledger_ids),
            "no ledger is under-replicated",
            timeout_s=PATIENCE_S,
        )
        after = cluster.ledger(ledger_ids[0])
        assert after.segments != before[ledger_ids[0]].segments
        cluster.release(spec, ledger_ids)
        assert read_anew(cluster, spec) == sent
    finally:
        running.start_server(server)
    assert cluster.content(spec) == sent


MANY = 6000


def test_a_topic_of_six_thousand_ledgers_with_lz4_metadata(cluster):
    """The ledgers are real, one message each, on all eight bookies; our writer and codec made them.

    A broker makes a ledger by closing one and loading its cursors anew, which takes it far longer;
    the messages in them are entries that a broker wrote, and the ids are BookKeeper's.
    """
    full = namespace(cluster, "many")
    source = TopicSpec(topic=f"{full}/source", messages=MANY, payload_bytes=40, properties=True)
    cluster.fill(source)
    entries = [
        payload for i in cluster.ledger_ids(source) for _, payload in cluster.bookie_entries(i)
    ]
    assert len(entries) == MANY
    spec = replace(source, topic=f"{full}/many")
    topic = f"persistent://{spec.topic}"
    cluster.admin("PUT", f"/persistent/{spec.topic}")
    [ml_name] = ml_names(spec)
    ids = write_topic_of_many_ledgers(cluster, ml_name, entries)
    cluster.steps.broker.internal_stats(topic)  # loads it

    chosen = [*ids[:10], *ids[MANY // 2 : MANY // 2 + 10], *ids[-10:]]
    cluster.offload(chosen)
    cluster.release(spec, chosen)
    node = cluster.steps.metadata.get(managed_ledger_path(ml_name))
    assert decode_enveloped(node.data, len)[1] is Compression.LZ4
    listed = cluster.managed_ledger(spec).ledgers
    assert [one.ledger_id for one in listed[:MANY]] == ids
    gone = [one.ledger_id for one in listed if one.offload and one.offload.bookkeeper_deleted]
    assert gone == chosen
    for server in ("broker2", "broker"):
        move(cluster, spec.topic, server)
        port = int(owner_of(cluster, spec.topic).rpartition(":")[2])
        assert http_call(port, "GET", f"/admin/v2/persistent/{spec.topic}/stats")[0] == 200
    found = [Message(payload=p) for p in read_payloads(cluster.endpoints, topic)]
    assert [m.payload for m in found] == [m.payload for m in iter_messages(source)]
