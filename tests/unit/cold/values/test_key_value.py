"""KeyValue, inline and separated, put together here by struct alone."""

import base64
import json
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.typed_rows import error_of, schema, told, value_of
from tests.unit.cold.values.test_avro import record, written


def both(key, value):
    """Parts with their lengths, None below 0."""
    return b"".join(
        pack(">i", -1) if one is None else pack(">i", len(one)) + one for one in (key, value)
    )


AVRO = record(("id", "int"))
OF_AVRO = ("AVRO", json.dumps(AVRO).encode())


def kv(key=("STRING", b""), value=OF_AVRO, version=0, **more):
    properties = {
        "key.schema.name": "",
        "key.schema.type": key[0],
        "key.schema.properties": '{"a":"b"}',
        "value.schema.type": value[0],
        "kv.encoding.type": "INLINE",
        **more,
    }
    return schema("KEY_VALUE", both(key[1], value[1]), version, properties=properties)


SEPARATED = {"kv.encoding.type": "SEPARATED"}


@given(st.none() | st.text(st.characters(codec="utf-8"), max_size=5), st.none() | st.integers(0, 9))
def test_inline_both_lie_in_the_payload(key, number):
    value = None if number is None else {"id": number}
    raw = None if value is None else written(AVRO, value)
    payload = both(None if key is None else key.encode(), raw)
    assert value_of([kv()], payload) == {"key": key, "value": value}


@given(st.none() | st.binary(max_size=5))
def test_separated_the_key_is_the_messages(key):
    told_key = None if key is None else base64.b64encode(key).decode()
    found = value_of(
        [kv(key=("BYTES", b""), **SEPARATED)],
        written(AVRO, {"id": 4}),
        key=told_key,
        key_is_base64=key is not None,
    )
    assert found == {"key": key, "value": {"id": 4}}


def test_a_key_that_was_set_as_text_is_its_bytes():
    assert value_of([kv(**SEPARATED)], written(AVRO, {"id": 4}), key="ä")["key"] == "ä"
    said = error_of([kv(**SEPARATED)], written(AVRO, {"id": 4}), key="*", key_is_base64=True)
    assert said.endswith("its key is no base64")


def test_older_ones_are_resolved_part_by_part():
    newer = record(("id", "long"), ("n", ["null", "int"]))
    newer["fields"][1]["default"] = None
    schemas = [kv(key=("INT32", b"")), kv(("INT64", b""), ("AVRO", json.dumps(newer).encode()), 1)]
    payload = both(pack(">i", 3), written(AVRO, {"id": 4}))
    assert value_of(schemas, payload) == {"key": 3, "value": {"id": 4, "n": None}}
    alone = [kv(), schema("STRING", version=1)]
    assert "where the newest schema has one value" in error_of(alone, payload)
    assert "found str" in error_of([schema("STRING"), kv(version=1)], b"x")


@given(st.binary(max_size=30))
@settings(deadline=None)
def test_any_payload_is_a_value_or_an_error(payload):
    told([kv(), kv(version=1, **SEPARATED)], [payload] * 2, version=0)
    told([kv(), kv(version=1, **SEPARATED)], [payload] * 2, version=1)


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"\x00", "1 bytes end within a length"),
        (pack(">i", 9) + b"x", "a part of 9 bytes, of which 1 are there"),
        (both(b"", b"") + b"x", "1 bytes behind key and value"),
    ],
)
def test_other_layouts_say_why(payload, says):
    assert says in error_of([kv()], payload)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"kv.encoding.type": "ODD"}, "kv.encoding.type is 'ODD'"),
        ({"key.schema.properties": "{"}, "property key.schema.properties is not JSON"),
        ({"key.schema.properties": "[]"}, "property key.schema.properties is no object"),
        ({"value.schema.type": "AUTO"}, "payloads of type AUTO are not understood"),
    ],
)
def test_schemas_that_are_none_say_why(properties, says):
    assert says in error_of([kv(**properties)], both(b"", b""))


def test_one_without_types_says_so():
    said = error_of([schema("KEY_VALUE", both(b"", b""))], b"")
    assert said.endswith("it has no property key.schema.type")
