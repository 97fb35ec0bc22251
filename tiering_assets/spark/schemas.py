"""What goes into Spark and what comes out: one schema for task rows, one for block rows.

Owns: both directions carry descriptors and facts, a few hundred bytes each, never payload. The
columns of a block row are the fields of BlockRow, so a field added there is a column here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_type_hints

from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, TaskKind, failure_row

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task as it travels to a worker. `ledger_id` and `attempt` are there for people.

    `refusal` is the row, as JSON, of a worker that must not run the task (spark/bootstrap.py).
    """

    task_no: int
    ledger_id: int
    attempt: str
    descriptor: str
    refusal: str


def task_schema() -> StructType:
    """Return the columns of the rows that go in; `task_no` is the partition and an int."""
    from pyspark.sql import types as t

    return t.StructType(
        [
            t.StructField("task_no", t.IntegerType(), nullable=False),
            t.StructField("ledger_id", t.LongType(), nullable=False),
            t.StructField("attempt", t.StringType(), nullable=False),
            t.StructField("descriptor", t.StringType(), nullable=False),
            t.StructField("refusal", t.StringType(), nullable=False),
        ]
    )


def block_row_schema() -> StructType:
    """Return the columns of the rows that come out: the fields of BlockRow, in order."""
    from pyspark.sql import types as t

    spark_types = {
        TaskKind: t.StringType(),
        str: t.StringType(),
        int: t.LongType(),
        float: t.DoubleType(),
        bool: t.BooleanType(),
    }
    return t.StructType(
        [
            t.StructField(one.name, spark_types[one.kind], nullable=one.nullable)
            for one in _columns()
        ]
    )


def rows_to_arrow(rows: Sequence[BlockRow]) -> pa.RecordBatch:
    """Return one batch of block rows, as a worker yields it."""
    import pyarrow as pa

    arrow_types: dict[Any, pa.DataType] = {
        TaskKind: pa.string(),
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
    }
    schema = pa.schema(
        [pa.field(one.name, arrow_types[one.kind], nullable=one.nullable) for one in _columns()]
    )
    return _batch_of([_values(row) for row in rows], schema)


def _batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """By way of JSON: for lists of Python's values pyarrow imports pandas.

    That takes a worker half a CPU second and 50 MB.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    text = "\n".join(json.dumps(row, allow_nan=False) for row in rows).encode()
    if not text:
        return pa.RecordBatch.from_pylist([], schema=schema)
    table = arrow_json.read_json(
        BytesIO(text),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="error"
        ),
    )
    [batch] = table.combine_chunks().to_batches()
    return batch


def block_row(columns: Mapping[str, Any]) -> BlockRow:
    """Return the block row of a collected row's columns. ValueError for an unknown kind."""
    return BlockRow(**{**columns, "kind": TaskKind(columns["kind"])})


def refusal_of(task: BlockTask) -> str:
    """Return the row of a worker that refuses the task; the bootstrap adds what is wrong.

    It knows a column's type by its value alone, so there is one in each.
    """
    row = failure_row(task, task.blocks[0], PrerequisiteError("refused"), 0.0)
    values = _values(row)
    empty = {one.name: one.kind() for one in _columns() if values[one.name] is None}
    return json.dumps(values | empty)


def _values(row: BlockRow) -> dict[str, Any]:
    return {one.name: getattr(row, one.name) for one in _columns()} | {"kind": row.kind.value}


class _Column(NamedTuple):
    name: str
    kind: Any
    nullable: bool


@cache
def _columns() -> tuple[_Column, ...]:
    hints = get_type_hints(BlockRow)
    return tuple(_column(item.name, hints[item.name]) for item in fields(BlockRow))


def _column(name: str, hint: Any) -> _Column:
    kinds = get_args(hint)  # of `int | None`; of a plain type there are none
    return _Column(name, kinds[0] if kinds else hint, nullable=type(None) in kinds)
