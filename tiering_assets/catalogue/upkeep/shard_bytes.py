"""A shard and its rows as bytes, for processes that share no memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tiering_assets.catalogue.columns import EVENTS
from tiering_assets.catalogue.upkeep.shard import ShardRows
from tiering_assets.catalogue.upkeep.spans import Shard

DOUBTS = pa.schema([EVENTS.field(name) for name in ("key", "what", "why")])


def bytes_of_task(shard: Shard, own: pa.Table, wide: pa.Table) -> bytes:
    """The ledgers, and the names of their records."""
    return _packed({"bounds": _bounds(shard), "own": own, "wide": wide})


def task_of(lot: bytes) -> tuple[Shard, pa.Table, pa.Table]:
    found = _unpacked(lot)
    [bounds] = found["bounds"].to_pylist()
    return Shard(bounds["first"], bounds["behind"]), found["own"], found["wide"]


def bytes_of_rows(rows: ShardRows) -> bytes:
    doubts = pa.Table.from_pylist(rows.doubts, schema=DOUBTS)
    return _packed({"ledgers": rows.ledgers, "blocks": rows.blocks, "doubts": doubts})


def rows_of(answer: bytes) -> ShardRows:
    found = _unpacked(answer)
    return ShardRows(
        ledgers=found["ledgers"], blocks=found["blocks"], doubts=found["doubts"].to_pylist()
    )


def _bounds(shard: Shard) -> pa.Table:
    schema = pa.schema([("first", pa.int64()), ("behind", pa.int64())])
    row: dict[str, Any] = {"first": shard.first, "behind": shard.behind}
    return pa.Table.from_pylist([row], schema=schema)


def _packed(tables: Mapping[str, pa.Table]) -> bytes:
    return _written(pa.table({name: [_written(table)] for name, table in tables.items()}))


def _unpacked(packed: bytes) -> dict[str, pa.Table]:
    [row] = _read(packed).to_pylist()
    return {name: _read(table) for name, table in row.items()}


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def _read(written: bytes) -> pa.Table:
    with pa.ipc.open_stream(written) as stream:
        return stream.read_all()
