"""Rows of entries that the plain decoder reads, one by one: what is unusual, damaged or no message.

Owns: an entry that cannot be read is an error that names it, or a row that says so. None is left
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from tiering_assets.offload_format.message_decoder import (
    DecodedEntry,
    EntryMessage,
    decode_entry,
)
from tiering_assets.offload_format.wire_fields import signed
from tiering_assets.resources.errors import FormatError

Row = Mapping[str, Any]
_MS: Final = ("publish_time", "event_time", "broker_time")


def rows_of_entry(
    entry: bytes,
    *,
    ledger_id: int,
    entry_id: int,
    markers: bool = False,
    verify: bool = False,
    on_error: str = "fail",
) -> Iterator[Row]:
    """Its rows, times in ms. FormatError that names the entry, unless `on_error` is "row"."""
    place = {"ledger_id": ledger_id, "entry_id": entry_id}
    try:
        found = decode_entry(entry)
        if verify and found.checksum is False:
            raise FormatError("its CRC32C does not fit its bytes")
    except FormatError as error:
        if on_error == "row":
            yield {**place, "error": str(error)}
            return
        raise FormatError(f"ledger {ledger_id}, entry {entry_id}: {error}") from error
    if found.marker is not None and not markers:
        return
    for message in found.messages:
        yield {**place, **_of_entry(found, message), **_of_message(message)}


def _of_entry(found: DecodedEntry, message: EntryMessage) -> Row:
    which, chunks, uuid = found.chunk or (None, None, None)
    most, least = found.transaction or (None, None)
    index = found.broker_index
    if index is not None and message.batch_index >= 0:
        index -= (found.batch_size or 1) - 1 - message.batch_index
    return {
        "batch_size": found.batch_size,
        "publish_time": found.publish_time_ms,
        "broker_time": _signed(found.broker_time_ms),
        "broker_index": None if index is None else signed(index),
        "producer": found.producer,
        "schema_version": found.schema_version,
        "replicated_from": found.replicated_from,
        "marker": found.marker,
        "txn_most": _signed(most),
        "txn_least": _signed(least),
        "encrypted": found.encrypted,
        "codec": found.codec,
        "uncompressed_bytes": found.uncompressed_bytes,
        "chunk": which,
        "chunks": chunks,
        "chunk_uuid": uuid,
    }


def _of_message(message: EntryMessage) -> Row:
    return {
        "batch_index": message.batch_index,
        "event_time": message.event_time_ms,
        "sequence_id": message.sequence_id,
        "key": message.key,
        "key_is_base64": message.key_is_base64,
        "ordering_key": message.ordering_key,
        "properties": [*message.properties.items()],
        "null_value": message.null_value,
        "compacted_out": message.compacted_out,
        "payload": message.payload,
    }


def as_columns(rows: Iterable[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as columns of this schema; null where a row does not say."""
    rows = [*rows]
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        kind = pa.int64() if field.name in _MS else field.type
        columns.append(pa.array(values, kind).cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def as_rows(found: Any) -> list[dict[str, Any]]:
    """The other way round."""
    columns = [
        column.cast(pa.int64()) if field.name in _MS else column
        for field, column in zip(found.schema, found.columns, strict=True)
    ]
    plain: Any = pa.RecordBatch.from_arrays(columns, names=found.schema.names)
    rows: list[dict[str, Any]] = plain.to_pylist()
    return rows


def _signed(value: int | None) -> int | None:
    return None if value is None else signed(value)
