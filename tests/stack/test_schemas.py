"""Schemas on real servers: archived with topics loaded and not; values from the bucket alone."""

import struct
from contextlib import contextmanager
from dataclasses import replace

import pulsar
import pytest
from pulsar.schema import (
    AvroSchema,
    Boolean,
    Double,
    Integer,
    JsonSchema,
    Long,
    Map,
    Record,
    String,
    StringSchema,
)

from tests.support.cli_shell import Shell
from tests.support.live_topic import client_of
from tests.support.tiered_cluster import tables_apart, tiered_cluster, wait_until
from tiering_assets.lineage.messages.as_arrow import messages
from tiering_assets.look.topic.archived_schemas import archived_schemas
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.resources.metastore.store_uri import parse_store_uri
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name
from tiering_assets.resources.metastore.zookeeper_client import close_client, connect_client
from tiering_assets.resources.pulsar.admin import TopicLoad
from tiering_assets.resources.pulsar.schema_storage import decode_locator, schemas_path

pytestmark = pytest.mark.stack
NAME = "schemas"
NAMESPACE = "public/schemas"


class OrderOld(Record):  # type: ignore[misc]  # the client has no types
    _avro_namespace = "shop"
    id = Integer(required=True)
    note = String()


class OrderNew(Record):  # type: ignore[misc]  # the client has no types
    _avro_namespace = "shop"
    note = String()
    id = Long(required=True)
    price = Double()
    paid = Boolean()
    tags = Map(Long())


# Both are called alike in the registry: Avro resolves records by their names.
OrderOld.__name__ = OrderNew.__name__ = "Order"
LOADED = TopicSpec(topic=f"{NAMESPACE}/loaded", messages=4, payload_bytes=0)
IDLE = TopicSpec(topic=f"{NAMESPACE}/idle", messages=4, payload_bytes=0)
JSON = TopicSpec(topic=f"{NAMESPACE}/json", messages=2, payload_bytes=0)
TEXT = TopicSpec(topic=f"{NAMESPACE}/text", messages=2, payload_bytes=0)
PLAIN = TopicSpec(topic=f"{NAMESPACE}/plain", messages=1, payload_bytes=0)
EVERY = (LOADED, IDLE, JSON, TEXT, PLAIN)
ORDERS = [
    {"note": "first", "id": 1, "price": None, "paid": None, "tags": None},
    {"note": None, "id": 2, "price": None, "paid": None, "tags": None},
    {"note": "third", "id": 1 << 40, "price": 0.25, "paid": True, "tags": [("a", 7)]},
    {"note": "fourth", "id": -1, "price": 2.0, "paid": False, "tags": []},
]


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack, catalogue_root=tables_apart(stack, NAME)) as connected:
        yield connected


@pytest.fixture(scope="module")
def shell(stack, tmp_path_factory):
    root = tables_apart(stack, NAME)
    return Shell(stack, tmp_path_factory.mktemp(NAME), TIERKEEPER_CATALOGUE_ROOT=root)


def send(cluster, spec, schema, values):
    with client_of(cluster.endpoints) as client:
        producer = client.create_producer(
            f"persistent://{spec.topic}", schema=schema, batching_enabled=False
        )
        for value in values:
            producer.send(value)
        producer.close()


@pytest.fixture(scope="module")
def offloaded(cluster, shell):
    """Each topic is offloaded and posted; nobody has archived a schema by hand."""
    cluster.make_namespace(NAMESPACE)
    path = f"/namespaces/{NAMESPACE}/schemaCompatibilityStrategy"
    cluster.admin("PUT", path, b'"ALWAYS_COMPATIBLE"')
    for spec in (LOADED, IDLE):
        send(
            cluster, spec, AvroSchema(OrderOld),
            [OrderOld(id=1, note="first"), OrderOld(id=2, note=None)],
        )  # fmt: skip
        send(
            cluster, spec, AvroSchema(OrderNew),
            [
                OrderNew(id=1 << 40, note="third", price=0.25, paid=True, tags={"a": 7}),
                OrderNew(id=-1, note="fourth", price=2.0, paid=False, tags={}),
            ],
        )  # fmt: skip
    send(cluster, JSON, JsonSchema(OrderNew), [OrderNew(id=5, note="\u00e4", price=1.0)] * 2)
    send(cluster, TEXT, StringSchema(), ["one", "zw\u00f6lf"])
    send(cluster, PLAIN, pulsar.schema.BytesSchema(), [struct.pack(">i", 7)])
    for spec in EVERY:
        cluster.seal(spec)
        shell("ledger", "offload", "--topic", spec.topic, "--execute")
    return {spec.topic: spec for spec in EVERY}


def ml_name(spec):
    return "{}/{}/persistent/{}".format(*spec.topic.split("/"))


def records(cluster, spec):
    found = archived_schemas(cluster.steps.book, ml_name(spec), lambda _key, _error: None)
    return [one.record for one in found]


def place(cluster, spec):
    return cluster.steps.broker.locate(f"persistent://{spec.topic}").load


def test_schemas_are_archived_from_where_they_can_be_read(cluster, shell, offloaded):
    cluster.admin("PUT", f"/namespaces/{NAMESPACE}/unload")
    wait_until(lambda: place(cluster, IDLE) is not TopicLoad.LOADED, "no broker shows the topic")
    shell("schema", "archive", IDLE.topic)
    assert [one.read_from for one in records(cluster, IDLE)] == ["bookies", "bookies"]
    assert place(cluster, IDLE) is not TopicLoad.LOADED
    cluster.steps.broker.internal_stats(f"persistent://{LOADED.topic}")  # loads it
    wait_until(lambda: place(cluster, LOADED) is TopicLoad.LOADED, "its broker shows the topic")
    told = shell.document("schema", "archive", LOADED.topic)
    [topic] = told["topics"]
    assert (topic["versions"], topic["written"], topic["errors"]) == (2, [0, 1], [])
    assert [one.read_from for one in records(cluster, LOADED)] == ["broker", "broker"]
    for first, second in zip(records(cluster, LOADED), records(cluster, IDLE), strict=True):
        assert (first.type, first.definition, first.sha256) == (
            second.type,
            second.definition,
            second.sha256,
        )
    # all of them, from bookies: every version of a topic gives the very bytes of its broker
    shell("schema", "archive", "--all")
    assert shell.document("schema", "archive", LOADED.topic)["topics"][0]["written"] == []
    assert [one.type for one in records(cluster, JSON)] == ["JSON"]
    assert [one.type for one in records(cluster, TEXT)] == ["STRING"]
    assert records(cluster, PLAIN) == []


def test_reading_them_left_their_ledgers_as_they_were(cluster, shell, offloaded):
    node = cluster.steps.metadata.get(schemas_path(parse_managed_ledger_name(ml_name(IDLE))))
    for one in decode_locator(node.data):
        assert cluster.ledger(one.ledger_id).state in (
            BookKeeperState.CLOSED,
            BookKeeperState.OPEN,  # its broker may not have closed it: we never do
        )


@contextmanager
def zookeeper(cluster):
    address = parse_store_uri(cluster.steps.settings.metadata.store)
    client = connect_client(address, session_timeout_s=10, connect_timeout_s=10)
    try:
        yield client
    finally:
        close_client(client)


@pytest.fixture(scope="module")
def forgotten(cluster, shell, offloaded):
    """The cluster has no schema of them any more."""
    shell("schema", "archive", "--all")
    with zookeeper(cluster) as client:
        for spec in EVERY:
            path = schemas_path(parse_managed_ledger_name(ml_name(spec)))
            if client.exists(path):
                client.delete(path)
    return offloaded


def values_of(stack, spec):
    settings = stack.settings()
    root = tables_apart(stack, NAME)
    settings = replace(settings, catalogue=replace(settings.catalogue, root=root))
    found = messages(spec.topic, columns=["payload"], value=True, settings=settings).read_all()
    return found["value"].to_pylist(), found["value_error"].to_pylist()


@pytest.mark.parametrize("spec", [LOADED, IDLE], ids=["loaded", "idle"])
def test_values_come_from_the_bucket_alone(stack, forgotten, spec):
    assert values_of(stack, spec) == (ORDERS, [None] * 4)


def test_so_do_those_of_other_types(stack, forgotten):
    order = {"note": "\u00e4", "id": 5, "price": 1.0, "paid": False, "tags": None}
    assert values_of(stack, JSON) == ([order] * 2, [None] * 2)
    assert values_of(stack, TEXT) == (["one", "zw\u00f6lf"], [None] * 2)
    assert values_of(stack, PLAIN) == ([None], ["written without a schema"])


def test_the_command_shows_them_and_their_schema(shell, forgotten):
    found = shell.document(
        "topic", "read", TEXT.topic, "--from", "2020-01-01", "--until", "2100-01-01", "--value"
    )
    assert [one["value"] for one in found["rows"]] == ["one", "zw\u00f6lf"]
    shown = shell.document("schema", "show", LOADED.topic, "--version", 0)
    assert '"name"' in shown["definition"]


def test_schemas_follow_a_publication(cluster, shell, forgotten):
    """Behind what is posted: a topic that nobody archives by hand."""
    spec = TopicSpec(topic=f"{NAMESPACE}/followed", messages=1, payload_bytes=0)
    send(cluster, spec, StringSchema(), ["x"])
    cluster.seal(spec)
    shell("ledger", "offload", "--topic", spec.topic, "--execute")
    shell("catalogue", "post")
    assert [one.type for one in records(cluster, spec)] == ["STRING"]
