"""Messages as lines of JSON, or as a file of Arrow or Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tiering_assets.cli.shared.usage import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


VALUE: Final = "value"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Format(StrEnum):
    JSONL = "jsonl"
    ARROW = "arrow"
    PARQUET = "parquet"


def documents(found: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Each message. Bytes that are text are shown as text, others as base64 by another name."""
    from tiering_assets.cli.lineage.value_documents import told_bytes, told_value
    from tiering_assets.resources.tables import rows_in

    for row in rows_in(_with_times_as_numbers(found)):
        told: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, bytes):
                told |= told_bytes(name, value)
            elif name == VALUE:
                told[name] = told_value(value)
            elif isinstance(value, list):
                told[name] = dict(value)
            else:
                told[name] = _time(value) if name.endswith("_time") and value is not None else value
        yield told


def _with_times_as_numbers(found: pa.RecordBatch) -> pa.RecordBatch:
    """Of ms: producers write some that no calendar has."""
    import pyarrow as pa

    columns = [
        one.cast(pa.int64()) if pa.types.is_timestamp(one.type) and name != VALUE else one
        for name, one in zip(found.schema.names, found.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, found.schema.names)


def _time(ms: int) -> str | int:
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat()
    except OverflowError:
        return ms


def line_of(document: dict[str, Any]) -> str:
    return json.dumps(document)


@contextmanager
def messages_file(path: Path, kind: Format, schema: pa.Schema) -> Iterator[Callable[[Any], None]]:
    """Writes what it is given into a new file, which has its name once it is whole."""
    part = path.with_name(path.name + ".part")
    try:
        stream = part.open("xb")
    except FileExistsError:
        raise UsageError(f"--output {part}: another one writes it, or ended while it did") from None
    try:
        with stream, _writer(stream, kind, schema) as write:
            yield write
        part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def _writer(stream: Any, kind: Format, schema: pa.Schema) -> Iterator[Callable[[Any], None]]:
    import pyarrow as pa

    if kind is Format.JSONL:
        yield lambda found: stream.writelines(
            f"{line_of(one)}\n".encode() for one in documents(found)
        )
        return
    if kind is Format.ARROW:
        with pa.ipc.new_file(stream, schema) as writer:
            yield writer.write_batch
        return
    from pyarrow import parquet

    with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        yield writer.write_batch
