"""Messages that left the bookies, read on Spark's workers elsewhere, in each way there is."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.spark_cluster import connect_server
from tests.support.tiered_cluster import post_all, tables_apart, tiered_cluster
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.lineage.in_spark.ledger_frame import messages_frame
from tiering_assets.lineage.in_spark.registered import register
from tiering_assets.resources.devstack.endpoints import environment_of
from tiering_assets.resources.devstack.traffic import TopicSpec, iter_messages
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.resources.tables import rows_in
from tiering_assets.spark import carried
from tiering_assets.spark.session import open_session

pytestmark = [pytest.mark.stack, pytest.mark.spark]
NAME = "spark-reads"
SPEC = TopicSpec(
    topic="public/default/read-elsewhere", messages=60, payload_bytes=200, batched=True, keys=3
)
COLUMNS = "topic,ledger_id,entry_id,batch_index,payload"


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack, catalogue_root=tables_apart(stack, NAME)) as connected:
        yield connected


@pytest.fixture(scope="module")
def sent(cluster):
    """What was sent, in order. It is on no bookie any more."""
    cluster.fill(SPEC)
    ledger_ids = cluster.ledger_ids(SPEC)
    cluster.offload(ledger_ids)
    cluster.release(SPEC, ledger_ids)
    post_all(cluster.steps)
    return [one.payload for one in iter_messages(SPEC)]


@pytest.fixture
def settings(stack, monkeypatch):
    """Ours, which the process that plans has in its environment."""
    root = tables_apart(stack, NAME)
    found = stack.settings()
    found = replace(found, catalogue=replace(found.catalogue, root=root))
    for name, value in environment_of(found).items():
        monkeypatch.setenv(name, value)
    return found


def source(session):
    register(session)
    reader = session.read.format("pulsar_ledgers").option("topic", SPEC.topic)
    return reader.option("columns", COLUMNS).load()


@contextmanager
def standalone(settings, remote_spark, _tmp_path):
    """The driver plans, and workers have the code installed and the keys in files."""
    python = remote_spark.installed_python
    spark = SparkSettings(master=remote_spark.master, python=python, executor_memory="512m")
    with open_session(replace(settings, spark=spark)) as session:
        yield source(session)


@contextmanager
def planned_by_the_client(settings, _remote_spark, tmp_path):
    """The server and its workers have the code and the keys, and know of no place."""
    keys = {name: value for name, value in environment_of(settings).items() if "_KEY" in name}
    assert sorted(keys) == ["TIERKEEPER_STORE_ACCESS_KEY", "TIERKEEPER_STORE_SECRET_KEY"]
    with connect_server(tmp_path, keys) as address:
        spark = SparkSettings(master=address)
        with open_session(replace(settings, spark=spark)) as session:
            yield messages_frame(session, settings, topic=SPEC.topic, columns=COLUMNS)


@contextmanager
def planned_by_the_server(settings, _remote_spark, tmp_path):
    """The server has settings and keys of its own."""
    with connect_server(tmp_path, environment_of(settings)) as address:
        spark = SparkSettings(master=address)
        with open_session(replace(settings, spark=spark)) as session:
            frame = source(session)
            frame.createOrReplaceTempView("cold")
            yield session.sql("select * from cold where entry_id >= 0")


def shipped_source(session, settings):
    carried.register(session, settings)
    reader = session.read.format("pulsar_ledgers").option("topic", SPEC.topic)
    return reader.option("columns", COLUMNS).load()


@contextmanager
def standalone_shipped(settings, remote_spark, _tmp_path):
    """Neither the driver's planner nor a worker has the code but from the session."""
    python = remote_spark.bare_python
    spark = SparkSettings(
        master=remote_spark.master, python=python, code="ship", executor_memory="512m"
    )
    chosen = replace(settings, spark=spark)
    with open_session(chosen) as session:
        yield shipped_source(session, chosen)


@contextmanager
def connect_shipped(settings, remote_spark, _tmp_path):
    """A Connect server of a cluster that has no code of ours; the client plans."""
    spark = SparkSettings(master=remote_spark.connect, code="ship")
    chosen = replace(settings, spark=spark)
    with open_session(chosen) as session:
        carry = carried.carried(chosen)
        yield messages_frame(session, chosen, carry=carry, topic=SPEC.topic, columns=COLUMNS)


@contextmanager
def connect_shipped_planned_by_the_server(settings, remote_spark, tmp_path):
    """The server has settings and keys, and plans by the code that the client sent."""
    python = remote_spark.bare_python
    with connect_server(tmp_path, environment_of(settings), python=python) as address:
        chosen = replace(settings, spark=SparkSettings(master=address, code="ship"))
        with open_session(chosen) as session:
            yield shipped_source(session, chosen)


# What a server plans, by code that was sent, is in every run; its session is a client's.
PROVEN = (
    standalone,
    standalone_shipped,
    planned_by_the_client,
    planned_by_the_server,
    connect_shipped,
)
WAYS = (
    connect_shipped_planned_by_the_server,
    *(
        pytest.param(
            way,
            marks=pytest.mark.prove(
                instead="tests/stack/test_lineage.py::test_spark_has_them_as_rows"
            ),
        )
        for way in PROVEN
    ),
)


SHIPPED = (standalone_shipped, connect_shipped_planned_by_the_server)
"""Where the session itself has the sources, by code that it sent."""


def blocks_in(session):
    blocks = session.read.format("tierkeeper_table").option("table", "blocks")
    return [(row.ledger_id, row.data_key) for row in blocks.load().collect()]


def streamed_in(session, folder):
    """Payloads of a stream that ends with what is there, in the order of their entries."""
    stream = session.readStream.format("pulsar_ledgers").option("topic", SPEC.topic)
    places = {"path": str(folder / "rows"), "checkpointLocation": str(folder / "at")}
    writer = stream.option("columns", COLUMNS).load().writeStream.trigger(availableNow=True)
    writer.format("parquet").options(**places).start().awaitTermination()
    return in_order(session.read.parquet(places["path"]))


def in_order(frame):
    rows = sorted(frame.collect(), key=lambda row: (row.ledger_id, row.entry_id, row.batch_index))
    assert {row.topic for row in rows} == {SPEC.topic}
    return [bytes(row.payload) for row in rows]


@pytest.mark.parametrize("way", WAYS)
def test_each_way_has_the_messages_that_were_sent(
    cluster, sent, settings, remote_spark, tmp_path, way
):
    with way(settings, remote_spark, tmp_path) as frame:
        assert in_order(frame) == sent
        if way in SHIPPED:
            session = frame.sparkSession
            asked = answer(Catalogue.of(cluster.steps).opened(), "select * from blocks")
            told = [(row["ledger_id"], row["data_key"]) for row in rows_in(asked)]
            assert sorted(blocks_in(session)) == sorted(told) != []
            if way is standalone_shipped:
                assert streamed_in(session, tmp_path) == sent
            else:  # Spark gives what plans a stream no code of the session
                with pytest.raises(Exception, match="for streams install tierkeeper where the"):
                    streamed_in(session, tmp_path)


@pytest.mark.prove(
    instead="tests/stack/test_spark_cluster.py::"
    "test_workers_without_our_code_are_named_in_every_row"
)
@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("bare_python", "has no code of tierkeeper, build .* is expected"),
        ("stale_python", "has build .* of tierkeeper, the driver"),
    ],
)
def test_workers_with_other_code_are_named_and_read_nothing(
    cluster, sent, settings, remote_spark, python, said
):
    spark = SparkSettings(
        master=remote_spark.master,
        python=getattr(remote_spark, python),
        executor_memory="512m",
    )
    chosen = replace(settings, spark=spark)
    with open_session(chosen) as session:
        carry = carried.carried(chosen)
        frame = messages_frame(session, chosen, carry=carry, topic=SPEC.topic, columns=COLUMNS)
        with pytest.raises(Exception, match=said):
            frame.collect()
        with pytest.raises(Exception, match=said):
            shipped_source(session, chosen).collect()
