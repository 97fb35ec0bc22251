"""Rows as `cold/decode.py` gives them, with what typed values are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tiering_assets.cold.columns import schema_of
from tiering_assets.cold.values.payload_schema import PayloadSchema
from tiering_assets.cold.values.typed import NEEDED, TypedValues


def stored_version(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def rows_of(payloads: Sequence[bytes | None], version: int | None = 0, **told: Any) -> Any:
    """One row a payload. `told` are other columns: one value, or a list of them."""
    given: dict[str, Any] = {
        "payload": list(payloads),
        "schema_version": None if version is None else stored_version(version),
        "null_value": False,
        "encrypted": False,
        "key": None,
        "key_is_base64": False,
        "ledger_id": 7,
        "publish_time": 0,
        **told,
    }
    count = len(payloads)
    schema = schema_of(NEEDED)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(value if isinstance(value, list) else [value] * count, schema.field(name).type)
            for name, value in ((name, given[name]) for name in NEEDED)
        ],
        schema=schema,
    )


def schema(kind: str, definition: Any = b"", version: int = 0, **more: Any) -> PayloadSchema:
    """`definition` is bytes, or what becomes JSON."""
    body = definition if isinstance(definition, bytes) else json.dumps(definition).encode()
    properties: Mapping[str, str] = more.pop("properties", {})
    return PayloadSchema(version=version, type=kind, definition=body, properties=properties, **more)


def told(
    schemas: Sequence[PayloadSchema],
    payloads: Sequence[bytes | None],
    version: int | None = 0,
    *,
    given: Any = None,
    **columns: Any,
) -> tuple[list[Any], list[str | None]]:
    """Values and errors."""
    made = TypedValues(schemas, given)
    values, errors = made.columns(rows_of(payloads, version, **columns))
    assert values.type == made.type
    assert len(values) == len(errors) == len(payloads)
    values.validate(full=True)
    return values.to_pylist(), errors.to_pylist()


def value_of(
    schemas: Sequence[PayloadSchema], payload: bytes, version: int = 0, **more: Any
) -> Any:
    """The one value of a sound payload."""
    [value], [error] = told(schemas, [payload], version, **more)
    assert error is None, error
    return value


def error_of(
    schemas: Sequence[PayloadSchema], payload: bytes, version: int = 0, **more: Any
) -> str:
    """What is wrong with a payload."""
    [value], [error] = told(schemas, [payload], version, **more)
    assert value is None
    assert error is not None
    return error
