"""From one version of a schema to its type of Arrow, and from payloads to values of the newest one.

Owns: which kind of schema is read how. A version is decoded by its own type, and then made to fit
the newest: Avro by its own rules of resolution where the newest has an Avro schema, all else by
names. Without a descriptor of the caller's, PROTOBUF stays bytes: brokers keep none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from tiering_assets.cold.values.avro import avro_decoder
from tiering_assets.cold.values.avro_shape import AvroShape, parse_definition
from tiering_assets.cold.values.fitted import fitter, of_base64, of_latin_1
from tiering_assets.cold.values.json_text import decode_json
from tiering_assets.cold.values.key_value import TwoSchemas, split_parts, two_schemas
from tiering_assets.cold.values.payload_schema import PayloadSchema
from tiering_assets.cold.values.primitives import PRIMITIVES, decode_primitive
from tiering_assets.cold.values.protobuf import ProtobufShape, native_shape
from tiering_assets.resources.errors import FormatError

Decode = Callable[[bytes, bytes | None], Any]
"""From payload and key of a message to what `pa.array` takes; FormatError where they are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What values are. `avro` is its schema where it has one, `parts` those of key and value."""

    type: pa.DataType
    avro: AvroShape | None = None
    parts: tuple[Shape, Shape] | None = None


def shape_of(schema: PayloadSchema, given: ProtobufShape | None = None) -> Shape:
    """The type of a version. FormatError for one that cannot be understood, or is not known."""
    match schema.type:
        case "AVRO":
            avro = AvroShape(parse_definition(schema.definition))
            return Shape(type=avro.type, avro=avro)
        case "JSON":
            return _json_shape(schema)
        case "PROTOBUF_NATIVE":
            return Shape(type=native_shape(schema.definition).type)
        case "PROTOBUF":
            return Shape(type=pa.binary() if given is None else given.type)
        case "KEY_VALUE":
            two = two_schemas(schema)
            key, value = shape_of(two.key, given), shape_of(two.value, given)
            both = pa.struct([pa.field("key", key.type), pa.field("value", value.type)])
            return Shape(type=both, parts=(key, value))
        case "STRING":
            return Shape(type=pa.string())
        case "NONE" | "BYTES":
            return Shape(type=pa.binary())
        case _:
            return _primitive_shape(schema.type)


def _primitive_shape(kind: str) -> Shape:
    if kind not in PRIMITIVES:
        raise FormatError(f"payloads of type {kind:.40} are not understood")
    return Shape(type=PRIMITIVES[kind].type)


def _json_shape(schema: PayloadSchema) -> Shape:
    """Brokers before 2.1 kept another schema of JSON: then the value is the text."""
    try:
        avro = AvroShape(parse_definition(schema.definition))
    except FormatError:
        return Shape(type=pa.string())
    return Shape(type=avro.type, avro=avro)


def decoder_of(schema: PayloadSchema, wanted: Shape, given: ProtobufShape | None = None) -> Decode:
    """How messages of this version become values of the wanted shape. FormatError as `shape_of`."""
    if schema.type == "KEY_VALUE":
        return _of_both(two_schemas(schema), wanted, given)
    decode, to_bytes = _plain_decoder(schema, wanted, given)

    fit = fitter(wanted.type, to_bytes=to_bytes)

    def decode_one(payload: bytes, _key: bytes | None) -> Any:
        return fit(decode(payload))

    return decode_one


def _plain_decoder(
    schema: PayloadSchema, wanted: Shape, given: ProtobufShape | None
) -> tuple[Callable[[bytes], Any], Callable[[str], bytes]]:
    match schema.type:
        case "AVRO":
            writer = AvroShape(parse_definition(schema.definition))
            return avro_decoder(writer, wanted.avro), of_latin_1
        case "JSON":
            return decode_json, of_base64
        case "PROTOBUF_NATIVE":
            return native_shape(schema.definition).decode, of_latin_1
        case "PROTOBUF" if given is not None:
            return given.decode, of_latin_1
        case "PROTOBUF" | "NONE" | "BYTES":
            return bytes, of_latin_1
        case kind:
            shape_of(schema)  # refuses what is not understood
            return partial(decode_primitive, kind), of_latin_1


def _of_both(two: TwoSchemas, wanted: Shape, given: ProtobufShape | None) -> Decode:
    if wanted.parts is None:
        raise FormatError("key and value, where the newest schema has one value")
    of_key = decoder_of(two.key, wanted.parts[0], given)
    of_value = decoder_of(two.value, wanted.parts[1], given)

    def decode(payload: bytes, key: bytes | None) -> Any:
        both = (key, payload) if two.separated else split_parts(payload)
        return {
            "key": None if both[0] is None else of_key(both[0], None),
            "value": None if both[1] is None else of_value(both[1], None),
        }

    return decode
