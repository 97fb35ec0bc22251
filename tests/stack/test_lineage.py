"""Lineage on real servers: bytes of the bucket are the messages that a Pulsar consumer gets."""

import base64
import random
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pulsar
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.cli_shell import Shell
from tests.support.live_topic import client_of, send_payloads
from tests.support.tiered_cluster import post_all, tables_apart, tiered_cluster
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.lineage.asked import USUAL
from tiering_assets.lineage.in_spark.ledger_frame import messages_frame
from tiering_assets.lineage.in_spark.registered import register
from tiering_assets.lineage.messages.as_arrow import messages
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
EVERY = "public/default/followed*"
PLACE = ("ledger_id", "entry_id", "batch_index")
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


def test_a_message_that_is_read_again_is_read_by_the_index_cache(shell, received, tmp_path):
    place, cache = min(received[BATCHED.topic]), {"TIERKEEPER_CACHE_ROOT": str(tmp_path / "cache")}
    cold, warm = (
        shell.document("lineage", "message", at(*place), "--show", **cache)["entry"]
        for _ in range(2)
    )
    assert (cold["index_cache"], warm["index_cache"]) == ("filled", "used")
    assert warm["messages"] == cold["messages"]
    assert (warm["requests"], warm["bytes_read"] <= cold["bytes_read"]) == (1, True)


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
    assert found.column_names == ["topic", "partition", *USUAL.split(",")]
    assert {*found["topic"].to_pylist()} == {spec.topic}
    assert {*found["partition"].to_pylist()} == {None}
    places = zip(*(found[name].to_pylist() for name in PLACE), strict=True)
    payloads = {one: received[spec.topic][one]["payload"] for one in sorted(received[spec.topic])}
    assert dict(zip(places, found["payload"].to_pylist(), strict=True)) == payloads
    assert reader.schema.field("publish_time").type == pa.timestamp("ms", "UTC")


@pytest.fixture(scope="module")
def spark(stack):
    """A session that knows both sources; its workers find tables and keys in the environment."""
    environment = {**stack.environment(), "TIERKEEPER_CATALOGUE_ROOT": tables_apart(stack, NAME)}
    with spark_session(
        SparkSettings(master="local[2,2]"), worker_environment=environment
    ) as session:
        register(session)
        yield session


def test_spark_has_them_as_rows(stack, spark, received):
    source = spark.read.format("pulsar_ledgers")
    for spec in (*SPECS, CHUNKED):
        frame = source.option("topic", spec.topic).load()
        found = {tuple(row[name] for name in PLACE): row for row in frame.collect()}
        assert found.keys() == received[spec.topic].keys()
        for place, row in found.items():
            sent = received[spec.topic][place]
            assert (bytes(row.payload), row.key) == (sent["payload"], sent["key"])
            assert row.properties == sent["properties"]
            assert round(row.publish_time.timestamp() * 1000) == sent["publish_time_ms"]
    every = source.option("topic", EVERY).schema("entry_id bigint").load()
    assert every.columns == ["entry_id"]
    assert every.count() == sum(map(len, received.values()))
    plan = every._jdf.queryExecution().toString()
    assert stack.settings().store.secret_key not in plan
    with pytest.raises(Exception, match="no option: topics"):
        spark.read.format("pulsar_ledgers").option("topics", "public/default/a").load()


def test_a_frame_that_is_asked_again_has_all_of_its_rows(spark, received):
    """Spark keeps what a source planned for one query, and takes it for the next one."""
    source = spark.read.format("pulsar_ledgers").option("topic", EVERY)
    rows = source.load().collect()
    first = min(row.ledger_id for row in rows)
    every = source.load()
    some = every.where(every.ledger_id == first)
    assert some.count() == sum(row.ledger_id == first for row in rows) < len(rows)
    assert sorted(map(_place, every.collect())) == sorted(map(_place, rows))
    assert some.union(every).count() == some.count() + len(rows)


def test_filters_leave_out_blocks_and_no_row(spark, received):
    source = spark.read.format("pulsar_ledgers").option("topic", EVERY)
    every = source.option("filters", "true").load()
    rows = every.collect()
    ledgers = sorted({row.ledger_id for row in rows})
    [when] = [row.publish_time for row in rows if row.ledger_id == ledgers[0]][:1]
    filters = [
        (every.ledger_id == ledgers[0], lambda row: row.ledger_id == ledgers[0], True),
        (every.ledger_id.isin(ledgers[1:]), lambda row: row.ledger_id in ledgers[1:], True),
        (every.topic == SINGLE.topic, lambda row: row.topic == SINGLE.topic, True),
        (every.topic.startswith(BATCHED.topic), lambda row: row.topic == BATCHED.topic, True),
        (every.batch_index >= 0, lambda row: row.batch_index >= 0, False),
        (every.entry_id > 10**6, lambda row: False, True),
        (every.publish_time <= when, lambda row: row.publish_time <= when, True),
        (every.key.isNull(), lambda row: row.key is None, False),
    ]
    parts = every.rdd.getNumPartitions()
    for condition, passes, leaves_out in filters:
        found = every.where(condition)
        assert sorted(map(_place, found.collect())) == sorted(map(_place, filter(passes, rows)))
        assert (found.rdd.getNumPartitions() < parts) is leaves_out
    plain = spark.read.format("pulsar_ledgers").option("topic", EVERY).option("filters", "false")
    assert plain.load().where(f"ledger_id = {ledgers[0]}").rdd.getNumPartitions() == parts


def _place(row):
    return tuple(row[name] for name in PLACE)


def test_a_stream_has_each_ledger_once_and_goes_on_where_it_stopped(
    cluster, spark, received, tmp_path
):
    spec = TopicSpec(topic="public/default/streamed", messages=6, payload_bytes=40)

    def offload():
        cluster.fill(spec)
        ids = [one for one in cluster.ledger_ids(spec) if one not in offloaded]
        cluster.offload(ids)
        offloaded.extend(ids)
        post_all(cluster.steps)

    def read():
        stream = spark.readStream.format("pulsar_ledgers").option("topic", spec.topic)
        writer = (
            stream.option("ledgers_per_batch", "1").load().writeStream.trigger(availableNow=True)
        )
        options = {"checkpointLocation": str(tmp_path / "at"), "path": str(tmp_path / "rows")}
        writer.format("parquet").options(**options).start().awaitTermination()
        found = spark.read.parquet(str(tmp_path / "rows")).collect()
        assert len({_place(row) for row in found}) == len(found)
        return sorted({row.ledger_id for row in found})

    offloaded: list[int] = []
    offload()
    offload()
    assert read() == sorted(offloaded)
    assert read() == sorted(offloaded)
    offload()
    assert read() == sorted(offloaded)
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 3 * spec.messages


@pytest.mark.parametrize("table", ["ledgers", "topics", "blocks", "events"])
def test_tables_of_the_catalogue_are_frames(cluster, shell, spark, received, table):
    scan(cluster.steps, Catalogue.of(cluster.steps))
    frame = spark.read.format("tierkeeper_table").load(table)
    names = [name for name, kind in frame.dtypes if kind != "timestamp"]
    listed = ", ".join(f'"{name}"' for name in names)
    rows = shell.document("catalogue", "sql", f"select {listed} from {table}")["rows"]
    found = [row.asDict() for row in frame.select(*names).collect()]
    assert sorted(map(repr, found)) == sorted(repr({n: r[n] for n in names}) for r in rows)
    assert found
    assert "timestamp" in dict(frame.dtypes).values()


def test_filters_are_asked_of_tables_as_well(spark, received):
    blocks = spark.read.format("tierkeeper_table").option("table", "blocks")
    blocks = blocks.option("filters", "true").load()
    rows = blocks.collect()
    ledger = rows[0].ledger_id
    some = blocks.where(blocks.ledger_id == ledger).collect()
    assert sorted(map(repr, some)) == sorted(repr(row) for row in rows if row.ledger_id == ledger)
    for bad, why in (
        (("table", "blokcs"), "no table 'blokcs': there are ledgers"),
        (("columns", "x"), "has no column x"),
    ):
        with pytest.raises(Exception, match=why):
            spark.read.format("tierkeeper_table").option("table", "blocks").option(*bad).load()


def test_a_frame_is_planned_by_the_client_where_it_is_asked_to_be(stack, spark, received):
    root = tables_apart(stack, NAME)
    settings = stack.settings()
    settings = replace(settings, catalogue=replace(settings.catalogue, root=root))
    frame = messages_frame(spark, settings, topic=EVERY)
    plain = spark.read.format("pulsar_ledgers").option("topic", EVERY).load()
    assert frame.schema == plain.schema
    assert sorted(map(repr, frame.collect())) == sorted(map(repr, plain.collect()))


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
    assert read_by(shell, spec) == payloads_of(messages)  # by the index that the broker wrote
    shell("scrub", "run", "--topic", spec.topic, "--execute")
    assert read_by(shell, spec) == payloads_of(messages)
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


def test_ledgers_on_bookies_are_read_and_no_writer_is_fenced(
    cluster, shell, stack, spark, received
):
    """One is offloaded, one is sealed, and a producer goes on writing to a third."""
    spec = TopicSpec(topic="public/default/followed-hot", messages=20, payload_bytes=300, keys=3)
    cluster.fill(spec)
    cluster.offload(cluster.ledger_ids(spec))
    cluster.fill(replace(spec, seed=1))
    with (
        client_of(cluster.endpoints) as client,
        closing(client.create_producer(spec.topic)) as producer,
    ):
        producer.send(b"before")
        messages = consumed(cluster.endpoints.service_url, replace(spec, messages=41))
        last = max(place[0] for place in messages)
        sealed = {one: told for one, told in messages.items() if one[0] != last}
        assert (len(sealed), len({place[0] for place in sealed})) == (40, 2)
        assert read_by(shell, spec, "--include-hot") == payloads_of(sealed)
        source = spark.read.format("pulsar_ledgers").option("topic", spec.topic)
        rows = source.option("include_hot", "true").load().collect()
        assert {_place(row): bytes(row.payload) for row in rows} == payloads_of(sealed)
        producer.send(b"behind")


def test_without_a_catalogue_the_records_of_a_topic_are_enough(shell, received, tmp_path):
    for spec in SPECS:
        found = read_by(shell, spec, TIERKEEPER_CATALOGUE_ROOT=str(tmp_path / "none"))
        assert found == payloads_of(received[spec.topic])


def read_by(shell, spec, *options, **environment):
    """Payloads by message id, as the command has them."""
    words = ("topic", "read", spec.topic, "--from", "2020-01-01", "--until", "2100-01-01")
    rows = shell.document(*words, *options, "--limit", 0, **environment)["rows"]
    return {tuple(row[name] for name in PLACE): payload_of(row) for row in rows}


def payload_of(row):
    text = row.get("payload")
    return base64.b64decode(row["payload_base64"]) if text is None else text.encode()


def payloads_of(messages):
    return {place: message["payload"] for place, message in messages.items()}
