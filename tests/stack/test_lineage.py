"""Lineage on real servers: bytes of the bucket are the messages that a Pulsar consumer gets."""

import base64
import random
from dataclasses import replace
from datetime import UTC, datetime

import pulsar
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.cli_shell import Shell
from tests.support.live_topic import send_payloads
from tests.support.tiered_cluster import tables_apart, tiered_cluster
from tiering_assets.lineage.asked import USUAL
from tiering_assets.lineage.messages.as_arrow import messages
from tiering_assets.lineage.messages.ledger_source import PulsarLedgers
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.resources.spark_session import spark_session

pytestmark = pytest.mark.stack
NAME = "lineage"
SINGLE = TopicSpec(
    topic="public/default/followed", messages=25, payload_bytes=700, keys=5, properties=True
)
BATCHED = TopicSpec(
    topic="public/default/followed-batched",
    messages=120,
    payload_bytes=90,
    batched=True,
    compression="ZSTD",
    keys=5,
)
# First and last entry are whole: brokers show no piece of what is compressed over REST.
CHUNKED = TopicSpec(topic="public/default/followed-chunked", messages=4, payload_bytes=0)
SPECS = (SINGLE, BATCHED)
per_topic = pytest.mark.parametrize("spec", SPECS, ids=["single", "batched"])


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack, catalogue_root=tables_apart(stack, NAME)) as connected:
        yield connected


@pytest.fixture(scope="module")
def shell(stack, tmp_path_factory):
    root = tables_apart(stack, NAME)
    return Shell(stack, tmp_path_factory.mktemp(NAME), TIERKEEPER_CATALOGUE_ROOT=root)


@pytest.fixture(scope="module")
def received(cluster, shell):
    """What a consumer got of each topic, by message id; both are offloaded and posted."""
    every = (*SPECS, CHUNKED)
    for spec in SPECS:
        cluster.fill(spec)
    send_payloads(
        cluster.endpoints,
        f"persistent://{CHUNKED.topic}",
        [b"first", *(random.Random(n).randbytes(12_000_000) + bytes(9) for n in (1, 2)), b"last"],
        chunked=True,
        name="chunks",
        compression="LZ4",
    )
    cluster.seal(CHUNKED)
    found = {spec.topic: consumed(cluster.endpoints.service_url, spec) for spec in every}
    for spec in every:
        assert len(found[spec.topic]) == spec.messages
        shell("ledger", "offload", "--topic", spec.topic, "--execute")
    shell.document("catalogue", "prove", code=(0, 1))  # other tests have deleted records
    return found


def consumed(service_url, spec):
    found = {}
    client = pulsar.Client(service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        reader = client.create_reader(f"persistent://{spec.topic}", pulsar.MessageId.earliest)
        while reader.has_message_available():
            one = reader.read_next(timeout_millis=10_000)
            place = one.message_id()
            index = -1 if place.batch_index() is None else place.batch_index()
            found[place.ledger_id(), place.entry_id(), index] = {
                "payload": one.data(),
                "key": one.partition_key() or None,
                "properties": dict(one.properties()),
                "publish_time_ms": one.publish_timestamp(),
                "producer": one.producer_name(),
            }
    finally:
        client.close()
    return found


def told(entry):
    """The messages of an answer, as `consumed` has them."""
    for one in entry["messages"]:
        yield (
            one["batch_index"],
            {
                "payload": base64.b64decode(one["payload"]),
                "key": one["key"],
                "properties": one["properties"],
                "publish_time_ms": entry["publish_time_ms"],
                "producer": entry["producer"],
            },
        )


def at(*place):
    return ":".join(map(str, place))


@per_topic
def test_each_entry_shows_the_messages_that_a_consumer_received(shell, received, spec):
    messages = received[spec.topic]
    for ledger_id, entry_id in sorted({place[:2] for place in messages})[:12]:
        found = shell.document("lineage", "message", at(ledger_id, entry_id), "--show")
        assert found["entry"]["checksum"] is True
        assert dict(told(found["entry"])) == {
            place[2]: said for place, said in messages.items() if place[:2] == (ledger_id, entry_id)
        }


def test_one_message_of_a_batch_is_shown_by_its_index(shell, received):
    messages = received[BATCHED.topic]
    place = max(messages)
    assert place[2] > 0
    found = shell.document("lineage", "message", at(*place), "--show")
    assert dict(told(found["entry"])) == {place[2]: messages[place]}
    lines = shell("lineage", "message", at(*place), "--show").stdout.splitlines()
    assert any(line.startswith("holds ") and "codec ZSTD" in line for line in lines)
    assert lines[-1].startswith("as of page ")


@per_topic
def test_the_bytes_are_those_of_the_object_and_are_proven(cluster, shell, received, spec):
    ledger_id, entry_id, _index = min(received[spec.topic])
    found = shell.document("lineage", "message", at(ledger_id, entry_id), "--prove")
    block = found["block"]
    assert block["uid"] == str(cluster.context_uid(spec, ledger_id))
    assert [one["agrees"] for one in found["proof"]] == [True, True]
    assert block["state"] == "published"
    head = cluster.steps.objects.head(block["data_key"])
    assert 0 == block["offset"] < block["length"] <= head.size
    assert block["bookie_copy"] == "there"


@per_topic
def test_a_byte_belongs_to_the_message_that_is_there(cluster, shell, received, spec):
    ledger_id, entry_id, _index = sorted(received[spec.topic])[-1]
    entry = shell.document("lineage", "message", at(ledger_id, entry_id), "--show")["entry"]
    key = f"{cluster.context_uid(spec, ledger_id)}-ledger-{ledger_id}"
    for offset in (entry["offset"], entry["offset"] + 11 + entry["bytes"]):
        found = shell.document("lineage", "object", key, "--offset", offset)
        assert found["belongs_to"] == "entry"
        assert (found["entry"]["entry_id"], found["entry"]["requests"]) == (entry_id, 1)
        assert found["entry"]["messages"] == entry["messages"]
    body = cluster.steps.objects.get(key).body
    frame = body[entry["offset"] : entry["offset"] + 12]
    assert int.from_bytes(frame[:4], "big") == entry["bytes"]
    assert int.from_bytes(frame[4:], "big") == entry_id


@per_topic
def test_the_time_of_a_message_finds_its_block(shell, received, spec):
    place, said = sorted(received[spec.topic].items())[len(received[spec.topic]) // 2]
    moment = datetime.fromtimestamp(said["publish_time_ms"] / 1000, UTC)
    found = shell.document(
        "lineage", "topic", spec.topic, "--at", moment.isoformat(timespec="milliseconds")
    )
    blocks = [
        one
        for one in found["blocks"]
        if one["ledger_id"] == place[0]
        and one["first_entry_id"] <= place[1] <= one["last_entry_id"]
    ]
    assert len(blocks) == 1, moment
    assert found["without_time"] == 0
    early = shell.document("lineage", "topic", spec.topic, "--at", "2001-01-01")
    assert early["blocks"] == []


@per_topic
def test_coverage_of_a_topic_is_whole(cluster, shell, received, spec):
    found = shell.document("lineage", "coverage", spec.topic, "--prove")
    [topic] = found["covered_topics"]
    ids = sorted({place[0] for place in received[spec.topic]})
    assert (found["findings"], topic["covered"], topic["on_bookies"]) == (0, len(ids), 0)
    last = max(received[spec.topic])
    assert (topic["first"], topic["last"]) == ([ids[0], 0], [last[0], last[1]])
    assert all(one["agrees"] for one in found["proof"])


@pytest.mark.parametrize("spec", [*SPECS, CHUNKED], ids=["single", "batched", "chunked"])
def test_messages_of_a_day_are_those_that_a_consumer_got(shell, received, spec, tmp_path):
    day = min(one["publish_time_ms"] for one in received[spec.topic].values()) / 1000
    since = ("--from", datetime.fromtimestamp(day, UTC).isoformat(), "--until", "2100-01-01")
    shell(
        "topic", "read", spec.topic, *since, "--columns", "all", "--format", "parquet",
        "--output", tmp_path / "messages", "--verify",
    )  # fmt: skip
    table = parquet.read_table(tmp_path / "messages")
    columns = {name: table[name].to_pylist() for name in table.column_names}
    columns["publish_time"] = table["publish_time"].cast(pa.int64()).to_pylist()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    places = [(row["ledger_id"], row["entry_id"], row["batch_index"]) for row in rows]
    assert places == sorted(received[spec.topic])
    for place, row in zip(places, rows, strict=True):
        assert received[spec.topic][place] == {
            "payload": row["payload"],
            "key": row["key"],
            "properties": dict(row["properties"]),
            "publish_time_ms": row["publish_time"],
            "producer": row["producer"],
        }


@pytest.mark.parametrize("spec", [BATCHED, CHUNKED], ids=["batched", "chunked"])
def test_a_program_has_them_as_arrow(stack, received, spec):
    root = tables_apart(stack, NAME)
    settings = stack.settings()
    settings = replace(settings, catalogue=replace(settings.catalogue, root=root))
    reader = messages(spec.topic, begin="2020-01-01", until="2100-01-01", settings=settings)
    found = reader.read_all()
    assert found.column_names == USUAL.split(",")
    places = zip(*(found[name].to_pylist() for name in found.column_names[:3]), strict=True)
    payloads = {one: received[spec.topic][one]["payload"] for one in sorted(received[spec.topic])}
    assert dict(zip(places, found["payload"].to_pylist(), strict=True)) == payloads
    assert reader.schema.field("publish_time").type == pa.timestamp("ms", "UTC")


def test_spark_has_them_as_rows(stack, received):
    secret = stack.settings().store.secret_key
    environment = {**stack.environment(), "TIERKEEPER_CATALOGUE_ROOT": tables_apart(stack, NAME)}
    with spark_session(
        SparkSettings(master="local[2,2]"), worker_environment=environment
    ) as session:
        session.dataSource.register(PulsarLedgers)
        source = session.read.format("pulsar_ledgers")
        for spec in (*SPECS, CHUNKED):
            frame = source.option("topic", spec.topic).load()
            found = {(row[0], row[1], row[2]): row for row in frame.collect()}
            assert found.keys() == received[spec.topic].keys()
            for place, row in found.items():
                sent = received[spec.topic][place]
                assert (bytes(row.payload), row.key) == (sent["payload"], sent["key"])
                assert row.properties == sent["properties"]
                assert round(row.publish_time.timestamp() * 1000) == sent["publish_time_ms"]
        every = source.option("topic", "public/default/followed*").schema("entry_id bigint").load()
        assert every.columns == ["entry_id"]
        assert every.count() == sum(map(len, received.values()))
        plan = every._jdf.queryExecution().toString()
        assert secret not in plan
        with pytest.raises(Exception, match="no option: topics"):
            session.read.format("pulsar_ledgers").option("topics", "public/default/a").load()


def test_coverage_misses_a_ledger_until_it_is_posted(cluster, shell, received):
    spec = TopicSpec(topic="public/default/followed-late", messages=5, payload_bytes=100)
    cluster.fill(spec)
    found = shell.document("lineage", "coverage", spec.topic)
    assert (found["findings"], found["ledgers"]["on_bookies"]) == (0, 1)
    shell("ledger", "offload", "--topic", spec.topic, "--execute")
    found = shell.document("lineage", "coverage", spec.topic, code=1)
    [finding] = found["covered_topics"][0]["findings"]
    assert finding["kind"] == "uncovered"
    shell.document("catalogue", "post")
    found = shell.document("lineage", "coverage", spec.topic)
    assert (found["findings"], found["ledgers"]["covered"]) == (0, 1)


def test_a_copy_of_a_broker_is_told_and_no_finding(cluster, shell, received):
    spec = TopicSpec(topic="public/default/followed-by-broker", messages=5, payload_bytes=100)
    cluster.fill(spec)
    cluster.broker_offloads(spec)
    found = shell.document("lineage", "coverage", spec.topic)
    assert (found["findings"], found["ledgers"]["by_brokers"]) == (0, 1)


def test_all_topics_are_judged(shell, received):
    """Other tests have damaged some, on purpose."""
    found = shell.document("lineage", "coverage", "--all", code=(0, 1))
    assert found["topics"] >= len(SPECS)
    named = {one["topic"] for one in found["covered_topics"]}
    assert not any("followed" in one for one in named)


def test_a_brokers_copy_is_followed_once_a_deep_look_has_read_it(cluster, shell, received):
    spec = replace(BATCHED, topic="public/default/followed-brokers", messages=60)
    cluster.fill(spec)
    messages = consumed(cluster.endpoints.service_url, spec)
    assert cluster.broker_offloads(spec)["status"] == "SUCCESS"
    [ledger_id] = {place[0] for place in messages}

    def coverage():
        shell.document("catalogue", "post")
        found = shell.document("lineage", "coverage", spec.topic)
        return found["ledgers"]["by_brokers"], found["ledgers"]["covered"], found["findings"]

    assert coverage() == (1, 0, 0)
    shell("scrub", "run", "--topic", spec.topic, "--execute")
    assert coverage() == (0, 1, 0)
    place = max(messages)
    found = shell.document("lineage", "message", at(*place), "--show", "--prove")
    assert dict(told(found["entry"])) == {place[2]: messages[place]}
    assert [one["agrees"] for one in found["proof"]] == [True, True]
    block, times = found["block"], {one["publish_time_ms"] for one in messages.values()}
    assert (block["written_by"], block["certificate_sha256"]) == ("broker", None)
    assert (block["messages"], block["ledger_id"]) == (len(messages), ledger_id)
    for name, time in (("publish_min", min(times)), ("publish_max", max(times))):
        assert datetime.fromisoformat(block[name]).timestamp() * 1000 == pytest.approx(time)
    [only] = shell.document("lineage", "topic", spec.topic, "--at", block["publish_min"])["blocks"]
    assert only == block
