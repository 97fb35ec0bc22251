"""Records to and from JSON objects, validated both ways.

Owns: what is written can be read again (a record that could not be is refused before it is
written), values have exactly their field's JSON type, times carry their offset, and a record of
another kind or a newer major schema is refused by name instead of being half understood. A record
that says no more than an older version could is written as that one, byte by byte as it was. Fields
that a newer minor version added are ignored, as the formats of other stores do. Errors name fields,
never the values found in them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast, get_args

from pydantic import TypeAdapter, ValidationError

from tiering_assets.records import models
from tiering_assets.records.models import Record
from tiering_assets.resources.errors import FormatError

R = TypeVar("R", bound=Record)

RECORD_TYPES: Final[tuple[type[Record], ...]] = get_args(Record)

_TYPE_OF: Final[Mapping[str, type[Record]]] = {kind.kind: kind for kind in RECORD_TYPES}


@dataclass(frozen=True, slots=True)
class OlderVersion:
    """A version that is still read: without these fields of the newer one, but meaning them so."""

    schema: str
    meant: Mapping[str, Any]


OLDER: Final[Mapping[str, OlderVersion]] = {
    models.Certificate.kind: OlderVersion("tierkeeper/certificate/1", {"block_digest": "entries"}),
}


@functools.cache
def adapter(kind: str) -> TypeAdapter[Any]:
    """Pydantic's reader and writer of one kind of record; a process makes those that it uses."""
    return TypeAdapter(_TYPE_OF[kind])


def encode_record(record: Record) -> dict[str, Any]:
    """A JSON object with its `schema` field first. ValueError when it could not be read again."""
    body = adapter(record.kind).dump_python(record, mode="json", warnings=False)
    again, problem = _validate(record.kind, body)
    if problem is not None:
        raise ValueError(f"record {record.kind}: {problem}")
    if again != record:
        raise ValueError(f"record {record.kind}: JSON cannot hold it unchanged")
    older = OLDER.get(record.kind)
    if older is not None and older.meant.items() <= body.items():
        kept = {name: value for name, value in body.items() if name not in older.meant}
        return {"schema": older.schema, **kept}
    return {"schema": record.kind, **body}


def decode_record(record_type: type[R], body: Mapping[str, Any], *, key: str) -> R:
    """Read one record. FormatError names the key and what is wrong with it."""
    found = body.get("schema")
    expected, older = record_type.kind, OLDER.get(record_type.kind)
    fields = {name: value for name, value in body.items() if name != "schema"}
    if older is not None and found == older.schema:
        fields |= older.meant
    elif found != expected:
        raise FormatError(f"record {key}: schema {found!r:.100}, expected {expected!r}")
    record, problem = _validate(expected, fields)
    if problem is not None:
        raise FormatError(f"record {key}: {problem}")
    return cast(R, record)


def _validate(kind: str, body: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The record, or what is wrong with it.

    By way of JSON text: only there strict means the JSON types. The problem is a value and not a
    chained error, because pydantic's own error text quotes the input.
    """
    try:
        text = json.dumps(body, allow_nan=False)
        return adapter(kind).validate_json(text, strict=True), None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return None, f"field {where}: {first['msg']}" if where else first["msg"]
    except (TypeError, ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"
