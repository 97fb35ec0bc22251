"""Records to and from JSON objects, validated both ways.

Owns: what is written can be read again, and a record of another kind or a newer major schema is
refused by name instead of being half understood. Fields that a newer minor version added are
ignored, as the formats of other stores do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast, get_args

from pydantic import TypeAdapter, ValidationError

from resources.errors import FormatError
from tiering_assets.records.models import Record

R = TypeVar("R", bound=Record)


_ADAPTERS: Final[Mapping[str, TypeAdapter[Any]]] = {
    kind.kind: TypeAdapter(kind) for kind in get_args(Record)
}


def encode_record(record: Record) -> dict[str, Any]:
    """A JSON object with its `schema` field first."""
    body = _ADAPTERS[record.kind].dump_python(record, mode="json")
    return {"schema": record.kind, **body}


def decode_record(record_type: type[R], body: Mapping[str, Any], *, key: str) -> R:
    """Read one record. FormatError names the key and what is wrong with it."""
    found = body.get("schema")
    expected = cast(Any, record_type).kind
    if found != expected:
        raise FormatError(f"record {key}: schema {found!r}, expected {expected!r}")
    try:
        return cast(
            R,
            _ADAPTERS[expected].validate_python({k: v for k, v in body.items() if k != "schema"}),
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FormatError(f"record {key}: field {where}: {first['msg']}") from error
