"""Payloads as a column `value` of the newest schema's type, and what is wrong with some of them.

Owns: a message whose value cannot be told has null and a text that says why; it never ends the
reading of others. A message that says it has no value has null and no text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from tiering_assets.cold.values.payload_schema import (
    DELETED,
    PayloadSchema,
    meant,
    newest,
    version_number,
)
from tiering_assets.cold.values.primitives import decode_numbers
from tiering_assets.cold.values.protobuf import ProtobufShape
from tiering_assets.cold.values.readers import Decode, Shape, decoder_of, shape_of
from tiering_assets.resources.arrow_columns import pc
from tiering_assets.resources.errors import FormatError

NEEDED: Final = (
    "payload",
    "schema_version",
    "null_value",
    "encrypted",
    "key",
    "key_is_base64",
    "ledger_id",
    "publish_time",
)
"""Columns that values are made of."""
NO_SCHEMA: Final = "written without a schema"
NOT_ARCHIVED: Final = "schema not archived"
_MS: Final[Any] = pa.timestamp("ms", "UTC")


class TypedValues:
    """Values of one topic by its archived schemas. `type` is that of the newest, bytes without one.

    What is wrong with the newest itself is said of every row: `why`.
    """

    def __init__(
        self, schemas: Sequence[PayloadSchema], given: ProtobufShape | None = None
    ) -> None:
        self._given = given
        self._by_version: dict[int, list[PayloadSchema]] = {}
        for one in sorted(schemas, key=lambda one: (one.incarnation, one.version)):
            self._by_version.setdefault(one.version, []).append(one)
        self._decoders: dict[tuple[int, int], Decode | FormatError] = {}
        self._newest, self.why = newest(schemas), ""
        self._shape = Shape(type=pa.binary())
        if self._newest is not None:
            try:
                self._shape = shape_of(self._newest, given)
            except FormatError as error:
                self.why = f"{self._newest.said}, the newest: {error}"

    @property
    def type(self) -> pa.DataType:
        return self._shape.type

    def columns(self, rows: Mapping[str, Any]) -> tuple[Any, Any]:
        """`value` and `value_error` of rows with the columns NEEDED."""
        quick = self._all_at_once(rows)
        if quick is not None:
            return quick, pa.nulls(len(quick), pa.string())
        told = [rows[name].to_pylist() for name in NEEDED[:-1]]
        times = rows["publish_time"].cast(_MS).cast(pa.int64()).to_pylist()
        values: list[Any] = []
        errors: list[str | None] = []
        for row in zip(*told, times, strict=True):
            value, error = self._one(*row)
            values.append(value)
            errors.append(error)
        return pa.array(values, self.type), pa.array(errors, pa.string())

    def _one(
        self,
        payload: bytes | None,
        stored: bytes | None,
        null_value: bool | None,
        encrypted: bool | None,
        key: str | None,
        key_is_base64: bool | None,
        *of_row: int,
    ) -> tuple[Any, str | None]:
        """The columns NEEDED of one row, in their order."""
        if payload is None or null_value:
            return None, None
        if encrypted:
            return None, "encrypted"
        if stored is None:
            return None, NO_SCHEMA
        try:
            schema = self._schema(stored, *of_row)
        except FormatError as error:
            return None, str(error)
        if schema is None:
            return None, NOT_ARCHIVED
        if self.why:
            return None, self.why
        try:
            told_key = None
            if key is not None and schema.type == "KEY_VALUE":
                told_key = _bytes_of(key, is_base64=bool(key_is_base64))
            return self._decoder(schema)(payload, told_key), None
        except FormatError as error:
            return None, f"{schema.said}: {error}"

    def _schema(
        self, stored: bytes, ledger_id: int, publish_ms: int | None
    ) -> PayloadSchema | None:
        candidates = self._by_version.get(version_number(stored))
        if candidates is None:
            return None
        found = candidates[0]
        if len(candidates) > 1:
            found = meant(candidates, ledger_id=ledger_id, publish_ms=publish_ms)
        return None if found.type == DELETED else found

    def _decoder(self, schema: PayloadSchema) -> Decode:
        place = schema.incarnation, schema.version
        known = self._decoders.get(place)
        if known is None:
            try:
                known = decoder_of(schema, self._shape, self._given)
            except FormatError as error:
                known = error
            self._decoders[place] = known
        if isinstance(known, FormatError):
            raise known
        return known

    def _all_at_once(self, rows: Mapping[str, Any]) -> Any:
        """Where all are plain numbers of the newest schema, and nothing is unusual. Else None."""
        newest_one, versions = self._newest, rows["schema_version"]
        if newest_one is None or len(self._by_version.get(newest_one.version, ())) != 1:
            return None
        if versions.null_count or not len(versions):
            return None
        stored = newest_one.version.to_bytes(8, "big", signed=True)
        flags = (rows["null_value"], rows["encrypted"])
        if any(pc.any(pc.fill_null(one, False)).as_py() for one in flags):
            return None
        if pc.unique(versions).to_pylist() != [stored]:
            return None
        return decode_numbers(newest_one.type, rows["payload"])


def _bytes_of(key: str, *, is_base64: bool) -> bytes:
    if not is_base64:
        return key.encode()
    try:
        return base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError("its key is no base64") from error
