"""Payloads and schemas as Pulsar's own client for Python makes them."""

import json

from pulsar.schema import (
    Array,
    AvroSchema,
    Boolean,
    Bytes,
    Double,
    Integer,
    JsonSchema,
    Long,
    Map,
    Record,
    String,
    StringSchema,
)

from tests.support.typed_rows import schema, stored_version, told, value_of


class Older(Record):  # type: ignore[misc]  # the client has no types
    id = Integer(required=True)
    note = String()


class Newer(Record):  # type: ignore[misc]  # the client has no types
    note = String()
    id = Long(required=True)
    price = Double()
    paid = Boolean()
    raw = Bytes()
    tags = Map(Long())
    names = Array(String())


Older.__name__ = Newer.__name__ = "Order"  # Avro resolves records by their names


def definition(record):
    return json.dumps(record.schema()).encode()


def test_avro_of_two_versions():
    older, newer = AvroSchema(Older), AvroSchema(Newer)
    payloads = [
        older.encode(Older(id=1, note="first")),
        newer.encode(
            Newer(id=1 << 40, price=0.25, paid=True, raw=b"\xff", tags={"a": 7}, names=["x"])
        ),
    ]
    schemas = [schema("AVRO", definition(Older)), schema("AVRO", definition(Newer), 1)]
    found, errors = told(schemas, payloads, schema_version=[stored_version(0), stored_version(1)])
    nothing = dict.fromkeys(("note", "price", "paid", "raw", "tags", "names"))
    assert errors == [None, None]
    assert found == [
        nothing | {"id": 1, "note": "first"},
        {
            **nothing,
            "id": 1 << 40,
            "price": 0.25,
            "paid": True,
            "raw": b"\xff",
            "tags": [("a", 7)],
            "names": ["x"],
        },
    ]


def test_json_and_text():
    payload = JsonSchema(Older).encode(Older(id=5, note="\u00e4"))
    assert value_of([schema("JSON", definition(Older))], payload) == {"id": 5, "note": "\u00e4"}
    assert value_of([schema("STRING")], StringSchema().encode("zw\u00f6lf")) == "zw\u00f6lf"
