"""Schemas in Avro's JSON, which Pulsar keeps of AVRO and of JSON topics, as types of Arrow.

Owns: a union with null is the other type; of several others, and of a type within itself, the value
is text: JSON, where it is no text. Logical types that Arrow has become its own, and are taken out
of the schema, so that a reader gives plain numbers of any size. A field that may be null needs no
default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from tiering_assets.resources.errors import FormatError

_PLAIN: Final[dict[str, Any]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[dict[tuple[str, str], Any]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_DIGITS_MAX: Final = 38
_NAMED: Final = ("record", "error", "enum", "fixed")
_DEPTH_MAX: Final = 64


def parse_definition(definition: bytes) -> Any:
    """The JSON of a schema. FormatError for anything else."""
    try:
        return json.loads(definition)
    except (ValueError, RecursionError) as error:
        raise FormatError("its definition is not JSON") from error


class AvroShape:
    """What a schema means for Arrow. FormatError where it is none.

    `plain` is the schema without logical types. `within_itself`: a type of it holds itself.
    `has_free_items`: an array may have any number of items in no bytes.
    """

    def __init__(self, schema: Any) -> None:
        self._named: dict[str, Any] = {}
        self._depth = 0
        self.within_itself = self.has_free_items = False
        try:
            self.type: Any = self._type(schema, "", ())
            self.plain = _without_logical(schema)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise FormatError(f"its definition is no Avro schema: {error!r:.200}") from error

    def _type(self, schema: Any, space: str, within: tuple[str, ...]) -> Any:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise ValueError(f"more than {_DEPTH_MAX} types within types")
        found = self._type_of(schema, space, within)
        self._depth -= 1
        return found

    def _type_of(self, schema: Any, space: str, within: tuple[str, ...]) -> Any:
        if isinstance(schema, str):
            if schema in _PLAIN:
                return _PLAIN[schema]
            return self._of_name(_full(schema, space), within)
        if isinstance(schema, list):
            return self._union(schema, space, within)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self._type(kind, space, within)
        logical = self._logical(schema, kind)
        if logical is not None:
            self._keep(schema, kind, space)
            return logical
        if kind == "array":
            self.has_free_items |= self._is_free(schema["items"], space, ())
            return pa.list_(self._type(schema["items"], space, within))
        if kind == "map":
            return pa.map_(pa.string(), self._type(schema["values"], space, within))
        if kind in _NAMED:
            name = self._keep(schema, kind, space)
            return self._of_name(name, within)
        return self._type(kind, space, within)

    def _keep(self, schema: Any, kind: str, space: str) -> str:
        if kind not in _NAMED:
            return ""
        name = _full(schema["name"], schema.get("namespace", space) or "")
        self._named[name] = schema
        return name

    def _of_name(self, name: str, within: tuple[str, ...]) -> Any:
        schema = self._named[name]
        if schema["type"] == "enum":
            return pa.string()
        if schema["type"] == "fixed":
            logical = self._logical(schema, "fixed")
            return pa.binary() if logical is None else logical
        if name in within:
            self.within_itself = True
            return pa.string()
        space = name.rpartition(".")[0]
        return pa.struct(
            [
                pa.field(one["name"], self._type(one["type"], space, (*within, name)))
                for one in schema["fields"]
            ]
        )

    def _union(self, branches: Iterable[Any], space: str, within: tuple[str, ...]) -> Any:
        found = [self._type(one, space, within) for one in branches]
        others = [one for one in found if one != pa.null()]
        if not others:
            return pa.null()
        return others[0] if len(others) == 1 else pa.string()

    def _logical(self, schema: Any, kind: str) -> Any:
        name = schema.get("logicalType")
        if name == "decimal" and kind in ("bytes", "fixed"):
            precision, scale = schema.get("precision"), schema.get("scale", 0)
            known = isinstance(precision, int) and isinstance(scale, int)
            if known and 0 < precision <= _DIGITS_MAX and 0 <= scale <= precision:
                return pa.decimal128(precision, scale)
            return None
        return _LOGICAL.get((kind, name)) if isinstance(name, str) else None

    def _is_free(self, schema: Any, space: str, within: tuple[str, ...]) -> bool:
        """Whether a value takes no bytes, so that a count of them can be anything."""
        if isinstance(schema, list):
            return False  # a branch is always named
        if isinstance(schema, str):
            if schema == "null":
                return True
            name = _full(schema, space)
            known = self._named.get(name)
            return known is not None and name not in within and self._is_free(known, space, within)
        kind = schema["type"]
        if kind == "fixed":
            return bool(schema["size"] == 0)
        if kind in ("record", "error"):
            name = _full(schema["name"], schema.get("namespace", space) or "")
            inner = name.rpartition(".")[0]
            return all(
                self._is_free(one["type"], inner, (*within, name)) for one in schema["fields"]
            )
        if kind in ("array", "map", "enum", "bytes", "string"):
            return False
        return self._is_free(kind, space, within)


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _without_logical(schema: Any) -> Any:
    """The same schema; values of `default` are no schemas and stay."""
    if isinstance(schema, list):
        return [_without_logical(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: value for name, value in schema.items() if name != "logicalType"}
    for name in ("type", "items", "values"):
        if isinstance(plain.get(name), dict | list):
            plain[name] = _without_logical(plain[name])
    if isinstance(plain.get("fields"), list):
        plain["fields"] = [_with_default(_without_logical(one)) for one in plain["fields"]]
    return plain


def _with_default(field: dict[str, Any]) -> dict[str, Any]:
    """Clients write fields that may be null without a default: where one is missing, it is null."""
    kind = field["type"]
    return {"default": None, **field} if isinstance(kind, list) and "null" in kind else field
