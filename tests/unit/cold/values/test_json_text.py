"""JSON payloads by the schema that Pulsar keeps of them."""

import base64
import json

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.typed_rows import error_of, schema, told, value_of
from tests.unit.cold.values.test_avro import NESTED, cases, record, shown, written
from tiering_assets.cold.values.typed import TypedValues

ORDER = record(
    ("id", "long"),
    ("price", ["null", "double"]),
    ("name", ["null", "string"]),
    ("raw", ["null", "bytes"]),
    ("tags", {"type": "map", "values": "int"}),
)


def as_java_writes(value):
    """Bytes in base64, as Jackson does."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: as_java_writes(one) for key, one in value.items()}
    return [as_java_writes(one) for one in value] if isinstance(value, list) else value


@given(cases())
@settings(deadline=None, max_examples=100)
def test_what_another_writer_wrote_is_read_as_it_was(case):
    avro, values = case
    assume("Infinity" not in json.dumps(as_java_writes(values)))
    payloads = [json.dumps(as_java_writes(one)).encode() for one in values]
    schemas = [schema("JSON", avro)]
    found, errors = told(schemas, payloads)
    assert errors == [None] * len(values)
    kind = TypedValues(schemas).type
    assert found == [shown(one, kind) for one in values]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(cases(), ANY, st.binary(max_size=30))
@settings(deadline=None, max_examples=150)
def test_any_other_payload_is_a_value_or_an_error(case, value, raw):
    avro, _values = case
    told([schema("JSON", avro)], [json.dumps(value).encode(), raw])


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b'{"id":1,"id":2}', {"id": 2}),  # of a name that stands twice the last counts
        (b'{"id":3.0,"price":4,"unknown":[]}', {"id": 3, "price": 4.0}),
        (b'{"name":5}', {"name": "5"}),  # as Jackson reads a number where text is expected
        (b'{"price":1E400}', {"price": float("inf")}),
        (b'{"raw":"/wA="}', {"raw": b"\xff\x00"}),
        (b"{}", {}),
    ],
)
def test_odd_payloads_are_read_as_java_does(payload, value):
    found = value_of([schema("JSON", ORDER)], payload)
    assert found == dict.fromkeys(("id", "price", "name", "raw", "tags")) | value


def test_no_bytes_are_null():
    assert told([schema("JSON", ORDER)], [b""]) == ([None], [None])


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"{", "not JSON: Expecting property name"),
        (b"\xff", "not JSON: 'utf-8' codec"),
        (b"[" * 100_000, "not JSON: maximum recursion"),
        (b'{"price":NaN}', "NaN is no number of JSON"),
        (b'{"id":9223372036854775808}', "field id: expected int64, found int 9223372036854775808"),
        (b'{"id":1.5}', "field id: expected int64, found float 1.5"),
        (b'{"id":true}', "field id: expected int64, found bool True"),
        (b'{"price":false}', "field price: expected double, found bool False"),
        (b'{"price":' + b"9" * 400 + b"}", "field price: expected double, found int"),
        (b'{"raw":"*"}', "text that is no base64 where bytes are expected"),
        (b'{"name":"\\ud800"}', "field name: no text of Unicode"),
        (b'{"tags":{"a":"b"}}', "field tags{}: expected int32, found str"),
        (b"[]", "found list"),
    ],
)
def test_what_does_not_fit_says_where(payload, says):
    said = error_of([schema("JSON", ORDER)], payload)
    assert said.startswith("schema version 0 (JSON): ")
    assert says in said


def test_of_old_brokers_schemas_the_text_is_the_value():
    assert value_of([schema("JSON", {"type": "object", "id": "urn:x"})], b'{"a":1}') == '{"a":1}'


def test_a_type_within_itself_is_text():
    found = value_of([schema("JSON", NESTED)], b'{"v":1,"next":{"v":2,"next":null}}')
    assert found == {"v": 1, "next": '{"v":2,"next":null}'}


def test_one_topic_may_have_both_avro_and_json():
    newer = record(("id", "long"), ("name", ["null", "string"]))
    older = record(("id", "int"))
    kind = pa.struct([("id", pa.int64()), ("name", pa.string())])
    payloads = {"AVRO": written(older, {"id": 4}), "JSON": b'{"id":4}'}
    for first, then in (("AVRO", "JSON"), ("JSON", "AVRO")):
        schemas = [schema(first, older), schema(then, newer, 1)]
        assert value_of(schemas, payloads[first]) == {"id": 4, "name": None}
        assert TypedValues(schemas).type == kind
