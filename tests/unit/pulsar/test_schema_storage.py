"""Bytes as brokers store schemas, and what is not such bytes."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import stored_schemas as stored
from tiering_assets.resources.errors import BrokerNotFoundError, FormatError
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name
from tiering_assets.resources.pulsar.schema_storage import (
    DELETED,
    SchemaPlace,
    StoredSchema,
    decode_locator,
    decode_schema_entry,
    parse_schema_answer,
    schemas_path,
)

TYPES = {1: "NONE", 2: "STRING", 3: "JSON", 5: "AVRO", 6: "BOOLEAN", 16: "KEY_VALUE"} | {
    20: "LOCAL_DATE_TIME",
    21: "PROTOBUF_NATIVE",
    77: "76",  # one that a newer broker may have
}
TOPIC = "persistent://public/default/orders-partition-3"


@pytest.mark.parametrize(
    ("ml_name", "path"),
    [
        ("public/default/persistent/orders", "/schemas/public/default/orders"),
        ("public/default/persistent/orders-partition-3", "/schemas/public/default/orders"),
        ("t/ns/persistent/a%2Fb+c", "/schemas/t/ns/a%2Fb+c"),
        ("tenant/cluster/ns/persistent/orders", "/schemas/tenant/ns/orders"),
    ],
)
def test_the_node_is_that_of_the_whole_topic(ml_name, path):
    assert schemas_path(parse_managed_ledger_name(ml_name)) == path


@pytest.mark.parametrize("number", TYPES)
def test_an_entry_says_type_bytes_properties_and_time(number):
    info = stored.schema_info(number, b"\x00{}", {"a": "1", "b": ""}, at_ms=1767225600000)
    found = decode_schema_entry(stored.schema_entry(info, [stored.index_entry(0, 7, 0, b"")]))
    assert found == StoredSchema(
        type=TYPES[number],
        definition=b"\x00{}",
        properties={"a": "1", "b": ""},
        registered_at_ms=1767225600000,
    )


def test_a_deletion_is_a_version_in_both_of_its_spellings():
    said = stored.schema_entry(stored.schema_info(1, b"", deleted=True))
    assert decode_schema_entry(said).type == DELETED
    assert decode_schema_entry(stored.chunk(2, b"")).type == DELETED


def test_the_node_names_every_version_once():
    index = [stored.index_entry(3, 9, 0, b"c"), stored.index_entry(0, 7, 0, b"a")]
    places = decode_locator(stored.locator(index))
    assert places == (
        SchemaPlace(version=0, ledger_id=7, entry_id=0, hash=b"a"),
        SchemaPlace(version=3, ledger_id=9, entry_id=0, hash=b"c"),
    )
    assert [one.position for one in places] == ["7:0", "9:0"]


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ([(0, 7, 0), (0, 8, 0)], "schema version 0 at 7:0 and at 8:0"),
        ([(0, -1, -1)], "schema version 0 at -1:-1: below 0"),
        ([(-1, 7, 0)], "schema version -1 at 7:0: below 0"),
    ],
)
def test_a_node_that_contradicts_itself_is_refused(index, says):
    with pytest.raises(FormatError, match=says):
        decode_locator(stored.locator([stored.index_entry(a, b, c, b"") for a, b, c in index]))


@given(st.binary(max_size=60))
def test_garbage_is_a_value_or_a_format_error(data):
    for decode in (decode_locator, decode_schema_entry):
        with suppress(FormatError):
            decode(data)


def test_text_that_is_not_utf_8_is_refused():
    info = stored.schema_info(5, b"{}") + stored.chunk(
        7, stored.chunk(1, b"\xff") + stored.chunk(2, b"")
    )
    with pytest.raises(FormatError, match="not UTF-8"):
        decode_schema_entry(stored.schema_entry(info))


def answer(**change):
    said = {"version": 2, "type": "AVRO", "timestamp": 5, "data": "ä", "properties": {"a": "b"}}
    return {"getSchemaResponses": [said | change]}


def test_a_brokers_answer_is_asked_for_by_the_partitions_name(broker, admin):
    broker.get(f"/schemas/{TOPIC.partition('://')[2]}/schemas", answer())
    assert admin.schemas(TOPIC) == {
        2: StoredSchema(
            type="AVRO", definition="ä".encode(), properties={"a": "b"}, registered_at_ms=5
        )
    }
    with pytest.raises(BrokerNotFoundError):
        admin.schemas("persistent://public/default/none")


def test_a_schema_without_properties_has_none():
    assert parse_schema_answer(answer(properties=None))[2].properties == {}


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"getSchemaResponses": {}},
        {"getSchemaResponses": ["x"]},
        answer(version="2"),
        answer(type=None),
        answer(data=None),
        answer(timestamp=None),
        answer(properties=[]),
        answer(properties=["x"]),
        answer(properties={"a": 1}),
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_another_answer_is_refused(body):
    with pytest.raises(FormatError, match="expected"):
        parse_schema_answer(body)
