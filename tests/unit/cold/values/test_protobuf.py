"""Protobuf by google's own runtime: any message, older writers, damage."""

import base64
import json

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.typed_rows import error_of, schema, told, value_of
from tiering_assets.cold.values.protobuf import ProtobufShape
from tiering_assets.cold.values.typed import TypedValues
from tiering_assets.resources.errors import FormatError

F = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    F.TYPE_DOUBLE: st.floats(allow_nan=False),
    F.TYPE_FLOAT: st.floats(width=32, allow_nan=False),
    F.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    F.TYPE_UINT64: st.integers(0, 2**64 - 1),
    F.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    F.TYPE_FIXED64: st.integers(0, 2**64 - 1),
    F.TYPE_FIXED32: st.integers(0, 2**32 - 1),
    F.TYPE_BOOL: st.booleans(),
    F.TYPE_STRING: st.text(st.characters(codec="utf-8"), max_size=6),
    F.TYPE_BYTES: st.binary(max_size=6),
    F.TYPE_UINT32: st.integers(0, 2**32 - 1),
    F.TYPE_SFIXED32: st.integers(-(2**31), 2**31 - 1),
    F.TYPE_SFIXED64: st.integers(-(2**63), 2**63 - 1),
    F.TYPE_SINT32: st.integers(-(2**31), 2**31 - 1),
    F.TYPE_SINT64: st.integers(-(2**63), 2**63 - 1),
}


def field(name, number, kind, label=F.LABEL_OPTIONAL, **more):
    return F(name=name, number=number, type=kind, label=label, **more)


def inner_file():
    made = descriptor_pb2.FileDescriptorProto(name="inner.proto", package="a", syntax="proto3")
    inner = made.message_type.add(name="Inner")
    inner.field.append(field("x", 1, F.TYPE_INT32))
    color = made.enum_type.add(name="Color")
    for number, name in enumerate(("RED", "BLUE")):
        color.value.add(name=name, number=number)
    return made


def outer_file(*fields):
    made = descriptor_pb2.FileDescriptorProto(name="outer.proto", package="a", syntax="proto3")
    made.dependency.append("inner.proto")
    outer = made.message_type.add(name="Outer")
    outer.field.extend(fields)
    for one in outer.field:  # `optional` of proto3 is a oneof of its own
        if one.proto3_optional:
            one.oneof_index = len(outer.oneof_decl)
            outer.oneof_decl.add(name=f"_{one.name}")
    return made


def set_of(*fields):
    """Files not in the order of their dependencies, as Java writes them."""
    return descriptor_pb2.FileDescriptorSet(file=[outer_file(*fields), inner_file()])


def native(files, version=0, name="a.Outer"):
    body = base64.b64encode(files.SerializeToString()).decode()
    said = {
        "fileDescriptorSet": body,
        "rootMessageTypeName": name,
        "rootFileDescriptorName": "outer.proto",
    }
    return schema("PROTOBUF_NATIVE", said, version)


def message(files):
    pool = descriptor_pool.DescriptorPool()
    for one in reversed(files.file):
        pool.Add(one)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("a.Outer"))()


INNER = {"type_name": ".a.Inner"}
EVERY = set_of(
    *(field(f"f{kind}", kind, kind) for kind in SCALARS),
    *(field(f"r{kind}", 30 + kind, kind, F.LABEL_REPEATED) for kind in SCALARS),
    field("one", 60, F.TYPE_MESSAGE, **INNER),
    field("many", 61, F.TYPE_MESSAGE, F.LABEL_REPEATED, **INNER),
    field("color", 62, F.TYPE_ENUM, type_name=".a.Color"),
    field("maybe", 63, F.TYPE_INT32, proto3_optional=True),
)
INTS = st.integers(-(2**31), 2**31 - 1)


@given(st.data())
@settings(deadline=None, max_examples=80)
def test_what_googles_runtime_wrote_is_read_as_it_was(data):
    made, expected = message(EVERY), {}
    for kind, values in SCALARS.items():
        expected[f"f{kind}"] = data.draw(values)
        setattr(made, f"f{kind}", expected[f"f{kind}"])
        expected[f"r{kind}"] = data.draw(st.lists(values, max_size=2))
        getattr(made, f"r{kind}").extend(expected[f"r{kind}"])
    one = data.draw(st.none() | INTS)
    if one is not None:
        made.one.x = one
        made.one.SetInParent()
    expected["one"] = None if one is None else {"x": one}
    many = data.draw(st.lists(INTS, max_size=2))
    for number in many:
        made.many.add(x=number)
    expected["many"] = [{"x": number} for number in many]
    color = data.draw(st.sampled_from([0, 1, 7]))
    made.color = color
    expected["color"] = {0: "RED", 1: "BLUE", 7: "7"}[color]  # an unknown number is itself
    maybe = data.draw(st.none() | st.just(0) | INTS)
    if maybe is not None:
        made.maybe = maybe
    expected["maybe"] = maybe
    assert value_of([native(EVERY)], made.SerializeToString()) == expected


@given(st.binary(max_size=60))
@settings(deadline=None, max_examples=200)
def test_any_payload_is_a_value_or_an_error(payload):
    told([native(EVERY)], [payload])


def test_fields_that_are_not_known_are_left_out_and_a_map_is_one():
    entry = descriptor_pb2.DescriptorProto(name="MEntry")
    entry.options.map_entry = True
    entry.field.extend([field("key", 1, F.TYPE_STRING), field("value", 2, F.TYPE_MESSAGE, **INNER)])
    files = set_of(field("m", 1, F.TYPE_MESSAGE, F.LABEL_REPEATED, type_name=".a.Outer.MEntry"))
    files.file[0].message_type[0].nested_type.append(entry)
    made = message(files)
    made.m["k"].x = 5
    unknown = message(set_of(field("other", 9, F.TYPE_STRING)))
    unknown.other = "x"
    payload = made.SerializeToString() + unknown.SerializeToString()
    assert value_of([native(files)], payload) == {"m": [("k", {"x": 5})]}


def test_older_writers_are_resolved_by_name():
    older = set_of(field("n", 1, F.TYPE_INT32), field("gone", 2, F.TYPE_STRING))
    newer = set_of(field("n", 4, F.TYPE_INT64), field("new", 2, F.TYPE_STRING))
    made = message(older)
    made.n, made.gone = 3, "x"
    schemas = [native(older), native(newer, 1)]
    assert value_of(schemas, made.SerializeToString()) == {"n": 3, "new": None}


def test_a_type_within_itself_is_text():
    files = set_of(
        field("v", 1, F.TYPE_BYTES), field("next", 2, F.TYPE_MESSAGE, type_name=".a.Outer")
    )
    made = message(files)
    made.next.next.v = b"\xff"
    found = value_of([native(files)], made.SerializeToString())
    assert found["next"] == '{"v":"","next":{"v":"\u00ff","next":null}}'
    deep = b""
    for _ in range(300):
        deep = b"\x12" + _varint(len(deep)) + deep
    assert "not a a.Outer" in error_of([native(files)], deep)


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def test_text_that_is_none_is_an_error():
    files = set_of(field("s", 1, F.TYPE_STRING))
    assert "not a a.Outer" in error_of([native(files)], b"\x0a\x01\xff")


def test_protobuf_is_bytes_unless_the_caller_gives_a_descriptor():
    files = set_of(field("n", 1, F.TYPE_INT32))
    made = message(files)
    made.n = 3
    payload = made.SerializeToString()
    schemas = [schema("PROTOBUF", {"type": "record", "name": "Outer", "fields": []})]
    assert TypedValues(schemas).type == pa.binary()
    assert value_of(schemas, payload) == payload
    given_one = ProtobufShape(files.SerializeToString(), "a.Outer")
    assert value_of(schemas, payload, given=given_one) == {"n": 3}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (b"\xff", "its descriptor has no message a.Outer"),
        (b"", "its descriptor has no message a.Outer"),
        (
            descriptor_pb2.FileDescriptorSet(file=[outer_file()]).SerializeToString(),
            "lacks inner.proto",
        ),
        (
            descriptor_pb2.FileDescriptorSet(
                file=[outer_file(field("x", 1, F.TYPE_MESSAGE, type_name=".a.No")), inner_file()]
            ).SerializeToString(),
            "its descriptor has no message a.Outer",
        ),
    ],
)
def test_a_descriptor_that_is_none_is_refused(files, says):
    with pytest.raises(FormatError, match=says):
        ProtobufShape(files, "a.Outer")


@pytest.mark.parametrize(
    "definition",
    [
        b"",
        b"{}",
        b"[]",
        b'{"fileDescriptorSet":"*","rootMessageTypeName":"x"}',
        json.dumps(3).encode(),
    ],
)
def test_so_is_a_definition(definition):
    made = TypedValues([schema("PROTOBUF_NATIVE", definition)])
    assert "its definition" in made.why
