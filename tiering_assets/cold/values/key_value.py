"""KeyValue: two schemas in one, and two parts in one payload or one of them in the message's key.

Owns: the layout of both: length, bytes, length, bytes; a length below 0 is a part that is null.
Source: Pulsar KeyValue and KeyValueSchemaInfo, 4.0.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from struct import Struct
from typing import Final

from tiering_assets.cold.values.payload_schema import PayloadSchema
from tiering_assets.resources.errors import FormatError

_LENGTH: Final = Struct(">i")
Parts = tuple[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class TwoSchemas:
    """Of the key and of the value. `separated`: the key is the message's own."""

    key: PayloadSchema
    value: PayloadSchema
    separated: bool


def two_schemas(schema: PayloadSchema) -> TwoSchemas:
    """What a KEY_VALUE schema is made of. FormatError where it is not."""
    key, value = split_parts(schema.definition)
    encoding = schema.properties.get("kv.encoding.type", "INLINE")
    if encoding not in ("INLINE", "SEPARATED"):
        raise FormatError(f"kv.encoding.type is {encoding!r:.40}")
    return TwoSchemas(
        _part(schema, "key", key), _part(schema, "value", value), encoding == "SEPARATED"
    )


def _part(schema: PayloadSchema, name: str, definition: bytes | None) -> PayloadSchema:
    kind = schema.properties.get(f"{name}.schema.type")
    if kind is None:
        raise FormatError(f"it has no property {name}.schema.type")
    try:
        properties = json.loads(schema.properties.get(f"{name}.schema.properties") or "{}")
    except (ValueError, RecursionError) as error:
        raise FormatError(f"property {name}.schema.properties is not JSON") from error
    if not isinstance(properties, dict):
        raise FormatError(f"property {name}.schema.properties is no object")
    return PayloadSchema(
        version=schema.version,
        type=kind,
        definition=definition or b"",
        properties={key: str(value) for key, value in properties.items()},
    )


def split_parts(data: bytes) -> Parts:
    """Two parts with their lengths. FormatError for other bytes."""
    key, at = _read_part(data, 0)
    value, at = _read_part(data, at)
    if at != len(data):
        raise FormatError(f"{len(data) - at} bytes behind key and value")
    return key, value


def _read_part(data: bytes, at: int) -> tuple[bytes | None, int]:
    if len(data) < at + _LENGTH.size:
        raise FormatError(f"{len(data)} bytes end within a length of key and value")
    [length] = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    if len(data) < at + length:
        raise FormatError(f"a part of {length} bytes, of which {len(data) - at} are there")
    return data[at : at + length], at + length
