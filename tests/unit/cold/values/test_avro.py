"""Avro by fastavro's own writer: any schema and value, older writers, damage."""

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.typed_rows import error_of, schema, told, value_of
from tiering_assets.cold.values.avro_shape import AvroShape
from tiering_assets.cold.values.typed import TypedValues

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
PLAIN = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=8),
    "string": TEXT,
}


def written(avro, value):
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(avro, named_schemas={}), value)
    return stream.getvalue()


def record(*fields, name="R", **more):
    made = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": made, **more}


class Names:
    """Names of types are used once in a schema."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return f"T{self.count}"


def avro_types(draw, names, depth):
    """A schema, and a strategy of its values with what Arrow shows of them."""
    kinds = ["plain", "enum", "fixed", "nullable"] + ["array", "map", "record"] * (depth > 0)
    match draw(st.sampled_from(kinds)):
        case "plain":
            name = draw(st.sampled_from(sorted(PLAIN)))
            return name, PLAIN[name]
        case "enum":
            symbols = ["A", "B", "C"]
            return {"type": "enum", "name": names(), "symbols": symbols}, st.sampled_from(symbols)
        case "fixed":
            size = draw(st.integers(1, 5))
            made = {"type": "fixed", "name": names(), "size": size}
            return made, st.binary(min_size=size, max_size=size)
        case "nullable":
            name = draw(st.sampled_from(sorted(PLAIN)))
            return draw(st.permutations(["null", name])), st.none() | PLAIN[name]
        case "array":
            inner, values = avro_types(draw, names, depth - 1)
            return {"type": "array", "items": inner}, st.lists(values, max_size=3)
        case "map":
            inner, values = avro_types(draw, names, depth - 1)
            return {"type": "map", "values": inner}, st.dictionaries(TEXT, values, max_size=3)
        case _:
            return avro_records(draw, names, depth - 1)


def avro_records(draw, names, depth):
    name = names()
    fields, values = [], {}
    for number in range(draw(st.integers(1, 4))):
        inner, strategy = avro_types(draw, names, depth)
        fields.append({"name": f"f{number}", "type": inner})
        values[f"f{number}"] = strategy
    return {"type": "record", "name": name, "fields": fields}, st.fixed_dictionaries(values)


@st.composite
def cases(draw):
    avro, values = avro_records(draw, Names(), 3)
    return avro, draw(st.lists(values, min_size=1, max_size=4))


def shown(value, kind):
    """A value as Arrow's columns give it back: maps are pairs."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {one.name: shown(value[one.name], one.type) for one in kind}
    if pa.types.is_list(kind):
        return [shown(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return [(key, shown(one, kind.item_type)) for key, one in value.items()]
    return value


@given(cases())
@settings(deadline=None, max_examples=150)
def test_what_another_writer_wrote_is_read_as_it_was(case):
    avro, values = case
    found, errors = told([schema("AVRO", avro)], [written(avro, one) for one in values])
    assert errors == [None] * len(values)
    kind = TypedValues([schema("AVRO", avro)]).type
    assert found == [shown(one, kind) for one in values]


@given(cases(), st.data())
@settings(deadline=None, max_examples=150)
def test_a_damaged_payload_is_a_value_or_an_error(case, data):
    avro, values = case
    sound = bytearray(written(avro, values[0]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(sound)))
        sound[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    told([schema("AVRO", avro)], [bytes(sound), data.draw(st.binary(max_size=40))])


OLD = record(
    ("a", "int"), ("b", "string"), ("e", {"type": "enum", "name": "E", "symbols": ["X", "Y"]})
)
NEW = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "renamed", "type": "string", "aliases": ["b"]},
        {"name": "a", "type": ["null", "double"], "default": None},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X"], "default": "X"}},
        {"name": "n", "type": "long", "default": 7},
        {"name": "raw", "type": "bytes", "default": "\u00ff\u0000"},
    ],
}


def test_older_writers_are_resolved_by_the_rules_of_avro():
    schemas = [schema("AVRO", OLD), schema("AVRO", NEW, 1)]
    payload = written(OLD, {"a": 3, "b": "text", "e": "Y"})
    assert value_of(schemas, payload) == {
        "renamed": "text",
        "a": 3.0,
        "e": "X",
        "n": 7,
        "raw": b"\xff\x00",
    }


@pytest.mark.parametrize("kind", [["null", "string"], ["int", "null"]])
def test_a_field_that_may_be_null_needs_no_default(kind):
    """Python's client writes none."""
    newer = record(("a", "int"), ("new", kind))
    schemas = [schema("AVRO", record(("a", "int"))), schema("AVRO", newer, 1)]
    assert value_of(schemas, b"\x02") == {"a": 1, "new": None}
    schemas[1] = schema("AVRO", record(("a", "int"), ("new", "int")), 1)
    assert "No default value for field new" in error_of(schemas, b"\x02")


def test_one_that_cannot_be_resolved_says_so():
    schemas = [schema("AVRO", record(("a", "string"))), schema("AVRO", record(("a", "int")), 1)]
    said = error_of(schemas, written(record(("a", "string")), {"a": "x"}))
    assert said.startswith(
        "schema version 0 (AVRO): not Avro of that schema: SchemaResolutionError"
    )


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("avro", "value", "shown_as"),
    [
        (logical("int", "date"), date(2026, 11, 28), date(2026, 11, 28)),
        (logical("int", "time-millis"), time(1, 2, 3, 4000), time(1, 2, 3, 4000)),
        (logical("long", "time-micros"), time(1, 2, 3, 4), time(1, 2, 3, 4)),
        *(
            (logical("long", name), at, at)
            for name, at in {
                "timestamp-millis": datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
                "timestamp-micros": datetime(1969, 1, 2, 3, 4, 5, 678901, UTC),
                "local-timestamp-millis": datetime(2026, 1, 2, 3, 4, 5, 678000),  # noqa: DTZ001
                "local-timestamp-micros": datetime(2026, 1, 2, 3, 4, 5, 678901),  # noqa: DTZ001
            }.items()
        ),
        (
            logical("bytes", "decimal", precision=9, scale=2),
            Decimal("-12345.67"),
            Decimal("-12345.67"),
        ),
        (
            {**logical("fixed", "decimal", precision=9, scale=2), "name": "F", "size": 6},
            Decimal("1.50"),
            Decimal("1.50"),
        ),
        (logical("bytes", "decimal", precision=99), Decimal(1), b"\x01"),  # more than Arrow has
        (
            logical("string", "uuid"),
            "317fad33-457f-4d7d-8c56-29d2d4e6f21e",
            "317fad33-457f-4d7d-8c56-29d2d4e6f21e",
        ),
        (logical("int", "unheard-of"), 4, 4),
    ],
)
def test_logical_types_are_those_of_arrow(avro, value, shown_as):
    whole = record(("a", avro))
    assert value_of([schema("AVRO", whole)], written(whole, {"a": value})) == {"a": shown_as}


@pytest.mark.parametrize(
    ("avro", "raw", "says"),
    [
        (
            logical("int", "time-millis"),
            86_400_000,
            "field a: expected time32[ms], found int 86400000",
        ),
        (logical("int", "time-millis"), -1, "found int -1"),
        (
            logical("bytes", "decimal", precision=2),
            (100).to_bytes(1, "big"),
            "expected decimal128(2, 0)",
        ),
    ],
)
def test_what_a_logical_type_does_not_have_is_an_error(avro, raw, says):
    whole, plain = record(("a", avro)), record(("a", avro["type"]))
    assert says in error_of([schema("AVRO", whole)], written(plain, {"a": raw}))


@pytest.mark.parametrize("number", [2**62, -(2**62), 253402300800000, -62135596800001])
def test_a_time_that_no_calendar_has_is_an_error(number):
    avro, plain = record(("a", logical("long", "timestamp-millis"))), record(("a", "long"))
    said = error_of([schema("AVRO", avro)], written(plain, {"a": number}))
    assert f"field a: expected timestamp[ms, tz=UTC], found int {number}" in said


NESTED = record(("v", "int"), ("next", ["null", "R"]))


def test_a_type_within_itself_is_text_as_json():
    payload = written(NESTED, {"v": 1, "next": {"v": 2, "next": None}})
    assert value_of([schema("AVRO", NESTED)], payload) == {"v": 1, "next": '{"v":2,"next":null}'}


@pytest.mark.parametrize("depth", [5_000, 2_000_000])
def test_one_without_end_is_an_error_and_no_crash(depth):
    assert "RecursionError" in error_of([schema("AVRO", NESTED)], b"\x02" * depth)


def test_a_value_of_several_types_is_text():
    avro = record(("a", ["null", "int", "string", {"type": "array", "items": "bytes"}]))
    found, errors = told(
        [schema("AVRO", avro)], [written(avro, {"a": one}) for one in (None, 5, "x", [b"\xff"])]
    )
    assert [one["a"] for one in found] == [None, "5", "x", '["\u00ff"]']
    assert errors == [None] * 4


@pytest.mark.parametrize(
    "items",
    [
        "null",
        record(name="Empty"),
        record(("a", "null"), ("b", record(name="Inner")), name="Outer"),
        {"type": "fixed", "name": "F", "size": 0},
    ],
)
def test_items_without_bytes_are_refused_for_any_number_of_them_is_as_short(items):
    avro = record(("a", {"type": "array", "items": items}))
    endless = bytes.fromhex("feffffffffffffffff01")  # 2^63 - 1 of them
    said = error_of([schema("AVRO", avro)], endless)
    assert said == "schema version 0 (AVRO): its definition has arrays of items without bytes"


def test_bytes_behind_a_value_are_an_error():
    assert error_of([schema("AVRO", b'"int"')], b"\x02\x00").endswith("1 bytes behind the value")


@pytest.mark.parametrize(
    "definition",
    [
        *(b"", b"\xff", b"[", b"{}", b'"nothing"', b'{"type":"record","name":"R"}', b"3"),
        b"[" * 100_000,
        b'{"type":"array","items":' * 400 + b'"int"' + b"}" * 400,
    ],
    ids=lambda definition: definition[:30],
)
def test_a_definition_that_is_none_is_said_of_every_row(definition):
    made = TypedValues([schema("AVRO", definition)])
    assert made.why.startswith("schema version 0 (AVRO), the newest: its definition is")
    assert made.type == pa.binary()
    assert error_of([schema("AVRO", definition)], b"") == made.why


def test_names_are_found_in_their_namespace():
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}
    avro = {
        "type": "record",
        "name": "R",
        "namespace": "a.b",
        "fields": [
            {"name": "one", "type": inner},
            {"name": "two", "type": "a.b.I"},
            {"name": "three", "type": "I"},
        ],
    }
    value = {name: {"x": 1} for name in ("one", "two", "three")}
    assert value_of([schema("AVRO", avro)], written(avro, value)) == value
    assert not AvroShape(avro).within_itself
