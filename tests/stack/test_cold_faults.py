"""Faults of cold reads by Spark's source, in a classic session, from a real store.

`make prove-cold` runs them; each fault is cheaper in tests/unit/cold/test_faults.py.
"""

import os
import pickle
import random
from io import BytesIO
from itertools import groupby
from typing import Any
from unittest.mock import patch

import pytest
from pyarrow import parquet
from pyspark.sql.functions import spark_partition_id

from tests.stack.cold_fault_fixture import KEPT, MARKS, UNKEPT, cold_lab, made
from tests.support.altered_answers import Answer, archived
from tests.support.cold_fault_entries import TOPIC_FAULTS
from tests.support.cold_lab import ASKED, judge_failing, judge_rows, put_topics
from tests.support.secrets_written import Written
from tests.support.tiered_cluster import post_all
from tiering_assets.catalogue.upkeep import keep
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.lineage.in_spark.ledger_parts import partitions_of
from tiering_assets.lineage.in_spark.registered import register
from tiering_assets.lineage.messages.options import cold_options
from tiering_assets.lineage.messages.plan import plan_messages
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.resources.spark_session import spark_session

pytestmark = MARKS
BY_NAME = {fault.name: fault for fault in TOPIC_FAULTS}
ALL = "public/default/fault-*"
EVERY = "public/default/fault-[2ct]*"
"""A third of the topics: each query has a task for each ledger."""
DENIED = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"


@pytest.fixture(scope="module")
def lab(stack):
    with cold_lab(stack, "cold-faults") as found:
        yield found


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def spark(lab, events, tmp_path_factory):
    """A session that writes an event log."""
    conf = tmp_path_factory.mktemp("conf")
    (conf / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir {events.as_uri()}\n"
        "spark.eventLog.compress false\n"
    )
    settings = SparkSettings(master="local[2,4]")
    with (
        patch.dict(os.environ, {"SPARK_CONF_DIR": str(conf)}),
        spark_session(settings, worker_environment=lab.environment) as session,
    ):
        register(session)
        yield session


def source(spark, lab, fault, **more):
    return spark.read.format("pulsar_ledgers").options(**lab.options(fault, **more)).load()


def rows_of(frame):
    """In the order of places; each task's own must be in that order as it is."""
    found = frame.withColumn("part", spark_partition_id()).collect()
    parts: dict[int, list[Any]] = {}
    for row in found:
        payload = None if row.payload is None else bytes(row.payload)
        told = (row.ledger_id, row.entry_id, row.batch_index, payload, row.error)
        parts.setdefault(row.part, []).append(told)
    for some in parts.values():
        assert [one[:2] for one in some] == sorted(one[:2] for one in some)
    return sorted((one for some in parts.values() for one in some), key=lambda one: one[:2])


def planned(spark, lab, fault):
    """A frame whose tasks are planned and not begun."""
    frame = source(spark, lab, fault)
    frame._jdf.queryExecution().executedPlan()
    return frame


def named(lab, fault):
    return rf"ledger {lab.ids[fault.name][0]}, entries \d+ to \d+: "


def own(fault):
    return tuple(sorted(fault.options.items()))


@pytest.fixture(scope="module")
def every_row(lab, spark):
    """Rows by ledger: one query has all topics, those with options of their own have one each."""
    asked = [(ALL, ()), *((one.topic, own(one)) for one in TOPIC_FAULTS if one.options)]
    found = {}
    for topic, options in asked:
        given = {"topic": topic, "columns": ",".join(ASKED), "on_error": "row", **dict(options)}
        rows = rows_of(spark.read.format("pulsar_ledgers").options(**given).load())
        for ledger_id, some in groupby(rows, key=lambda one: one[0]):
            found[options, ledger_id] = [*some]
    return found


@pytest.mark.parametrize("fault", TOPIC_FAULTS, ids=BY_NAME)
def test_a_classic_session(lab, every_row, fault):
    ids = lab.ids[fault.name]
    judge_rows(fault, ids, [row for one in ids for row in every_row.get((own(fault), one), [])])


FAILING = (
    "batch-cut",
    "not-pulsars-text",
    "transaction-undecided",
    "first-piece-trimmed",
    "codec-ZSTD-batch",
)


@pytest.mark.parametrize("name", FAILING)
def test_an_error_ends_a_query(lab, spark, name):
    """One of each sort of error; that it is told of each entry is in the rows above."""
    fault, ids = BY_NAME[name], lab.ids[name]
    judge_failing(fault, ids, lambda: rows_of(source(spark, lab, fault)), Exception)


# ----- between plan and read


def test_an_object_that_is_trimmed_after_the_plan_is_named(lab, spark):
    fault, objects = UNKEPT[0], lab.cluster.steps.objects
    frame = planned(spark, lab, fault)
    [key] = lab.keys(fault)
    for version in objects.list_versions(key):
        objects.delete(key, version_id=version.version_id)
    objects.delete(key)
    with pytest.raises(Exception, match=named(lab, fault)):
        frame.collect()


def test_of_a_replaced_object_the_version_of_the_plan_is_read(lab, spark):
    fault, objects = KEPT[0], lab.cluster.steps.objects
    frame = planned(spark, lab, fault)
    before = source(spark, lab, KEPT[1]).count()
    [key] = lab.keys(fault)
    objects.put(key, b"something else")
    assert objects.get(key).body == b"something else"
    assert frame.count() == before == len(fault.rows)
    assert source(spark, lab, fault).count() == before


@pytest.mark.parametrize(("fault", "other"), [(UNKEPT[1], b"short"), (UNKEPT[2], bytes(100_000))])
def test_an_object_that_is_replaced_after_the_plan_is_named(lab, spark, fault, other):
    frame = planned(spark, lab, fault)
    [key] = lab.keys(fault)
    lab.cluster.steps.objects.put(key, other)
    with pytest.raises(Exception, match=named(lab, fault)):
        frame.collect()


def test_an_object_of_an_archive_class_is_named(lab, spark):
    fault = KEPT[1]
    frame = planned(spark, lab, fault)
    [key] = lab.keys(fault)
    with lab.altered(archived(key)), pytest.raises(Exception, match="archive class") as told:
        frame.collect()
    assert f"ledger {lab.ids[fault.name][0]}, entries 0 to " in str(told.value)


def test_keys_without_access_are_named(lab, spark):
    fault = KEPT[1]
    frame = planned(spark, lab, fault)
    [key] = lab.keys(fault)

    def refused(method, path, answer):
        of_key = path.partition("?")[0].endswith(f"/{key}")
        return Answer(403, (("Content-Type", "application/xml"),), DENIED) if of_key else answer

    with lab.altered(refused), pytest.raises(Exception, match=named(lab, fault)) as told:
        frame.collect()
    assert "AccessDenied" in str(told.value)
    assert lab.settings.store.secret_key not in str(told.value)


# ----- filters, streams, secrets


def conditions(seed, rows):
    """A predicate that Spark may push down in part."""
    chance = random.Random(seed)
    ledgers = sorted({row.ledger_id for row in rows})
    times = sorted({row.publish_time for row in rows if row.publish_time is not None})

    def one():
        how = chance.choice(("=", "<", "<=", ">", ">=", "<=>"))
        match chance.randrange(7):
            case 0:
                return f"ledger_id {how} {chance.choice(ledgers)}"
            case 1:
                some = chance.sample(ledgers, 3)
                return f"ledger_id in ({', '.join(map(str, some))})"
            case 2:
                return f"entry_id {how} {chance.randrange(4)}"
            case 3:
                at = chance.choice(times).strftime("%Y-%m-%d %H:%M:%S.%f")
                return f"publish_time {how} timestamp '{at}'"
            case 4:
                begin = chance.choice(("fault-codec", "fault-c", "fault-times", "fault-2", "x"))
                return f"topic like 'public/default/{begin}%'"
            case 5:
                return f"batch_index {how} {chance.randrange(-1, 3)}"
            case _:
                return chance.choice(
                    ("partition is null", "error is not null", "entry_id in (0, 2)")
                )

    found = one()
    for _ in range(chance.randrange(3)):
        found = f"({found}) {chance.choice(('and', 'and', 'or'))} ({one()})"
    return f"not ({found})" if chance.random() < 0.2 else found


WANTED = "topic,partition,ledger_id,entry_id,batch_index,publish_time,payload,error"


def told(frame):
    """Rows without the words of errors."""
    return sorted(
        (row.topic, row.ledger_id, row.entry_id, repr(row.batch_index), repr(row.payload),
         row.error is None)
        for row in frame.collect()
    )  # fmt: skip


def by_random_predicates(spark, seeds):
    """Pushed, not pushed, and a full read that is filtered afterwards, without our source."""
    asked = {"topic": EVERY, "columns": WANTED, "on_error": "row"}
    plain = spark.read.format("pulsar_ledgers").options(**asked).load()
    rows = plain.collect()
    full = spark.createDataFrame(rows, plain.schema)
    some = 0
    for seed in seeds:
        condition = conditions(seed, rows)
        expected = told(full.where(condition))
        pushed = spark.read.format("pulsar_ledgers").options(**asked, filters="true").load()
        assert told(pushed.where(condition)) == expected, condition
        assert told(plain.where(condition)) == expected, condition
        some += 0 < len(expected) < len(rows)
    assert some > len(seeds) // 3


def test_random_predicates_give_what_a_full_read_does(lab, spark):
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    by_random_predicates(spark, range(20))


def test_a_stream_that_begins_again_behind_joined_tables_has_each_row_once(
    lab, spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(keep, "SMALL_MAX", 1)
    steps = lab.cluster.steps
    first = made("streamed")

    def posted(ids):
        put_topics(steps.objects, steps.book, first_id=ids, faults=[first])
        post_all(steps)

    def read():
        stream = spark.readStream.format("pulsar_ledgers").option("topic", first.topic)
        writer = stream.option("ledgers_per_batch", "1").load().writeStream
        options = {"checkpointLocation": str(tmp_path / "at"), "path": str(tmp_path / "rows")}
        query = writer.trigger(availableNow=True).format("parquet").options(**options)
        query.start().awaitTermination()
        found = spark.read.parquet(str(tmp_path / "rows")).collect()
        places = [(row.ledger_id, row.entry_id, row.batch_index) for row in found]
        assert len(places) == len({*places})
        return sorted({row.ledger_id for row in found}), len(found)

    begin = max(max(ids) for ids in lab.ids.values()) + 5000
    posted(begin)
    posted(begin + 1)
    assert read() == ([begin, begin + 1], 16)
    catalogue = Catalogue.of(steps)
    before = catalogue.opened().versions
    assert "blocks" in keep.join_files(catalogue, catalogue.opened())
    assert catalogue.opened().versions != before
    assert read() == ([begin, begin + 1], 16)
    posted(begin + 2)
    assert read() == ([begin, begin + 1, begin + 2], 24)


def _plain(key, body):
    """Rows of a file of a table as text: they are compressed in it."""
    if not key.endswith(".parquet"):
        return body
    table = parquet.read_table(BytesIO(body))
    return f"{table.to_pydict()} {table.schema.metadata}".encode()


def test_no_secret_is_in_plans_tables_or_errors(lab, spark, events, tmp_path):
    """Tables and their commits, what is planned, the event log, and what an error says."""
    store, fault = lab.settings.store, BY_NAME["batch-cut"]
    frame = source(spark, lab, fault)
    said = [frame._jdf.queryExecution().toString()]
    with pytest.raises(Exception, match="ledger") as error:
        frame.collect()
    said.append(str(error.value))
    steps = lab.cluster.steps
    asked = cold_options(lab.options(fault))
    parts = partitions_of(steps, plan_messages(steps, asked))
    (tmp_path / "said").write_text("\n".join(said))
    (tmp_path / "pickled").write_bytes(pickle.dumps([parts, asked]))
    prefix = lab.root.partition("//")[2].partition("/")[2]
    objects = type(steps.objects)(lab.cluster.running.settings().store)
    written = Written.below({"events": events, "said": tmp_path})
    written.places["tables"] = [
        (one.key, _plain(one.key, found.body))
        for one in objects.list_objects(f"{prefix}/")
        if (found := objects.get(one.key)) is not None
    ]
    marked = {place for place, _ in written.having(f"fault-{fault.name}")}
    assert {
        "said",
        "tables",
    } <= marked  # a search that finds nothing must be able to find something
    assert any("_delta_log" in name for _, name in written.having("add"))
    assert written.having("local[2,4]") != []
    secrets = {"access key": store.access_key, "secret key": store.secret_key}
    leaked = {name: written.having(value) for name, value in secrets.items()}
    assert {name for name, places in leaked.items() if places} == set()
