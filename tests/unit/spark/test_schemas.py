"""The columns are the contract's fields, and a row survives the way through Arrow."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from tiering_assets.spark.schemas import (
    TaskRow,
    block_row,
    block_row_schema,
    rows_to_arrow,
    task_schema,
)
from tiering_assets.tasks.descriptors import BlockRow, TaskKind

LONGS = st.integers(-(2**63), 2**63 - 1)
BLOCK_ROWS = st.builds(
    BlockRow,
    kind=st.sampled_from(TaskKind),
    attempt=st.text(),
    ledger_id=LONGS,
    part_number=LONGS,
    entries=LONGS,
    payload_bytes=LONGS,
    block_length=LONGS,
    sha256=st.text(),
    entries_sha256=st.text(),
    seconds=st.floats(allow_nan=False),
    header=st.text(),
    error=st.text(),
    error_class=st.text(),
    retryable=st.booleans(),
    etag=st.text(),
    sent=st.booleans(),
)


def test_block_rows_have_one_typed_column_a_field():
    schema = block_row_schema()
    assert schema.names == [item.name for item in fields(BlockRow)]
    assert {name: type(schema[name].dataType) for name in schema.names} == {
        "kind": t.StringType,
        "attempt": t.StringType,
        "ledger_id": t.LongType,
        "part_number": t.LongType,
        "entries": t.LongType,
        "payload_bytes": t.LongType,
        "block_length": t.LongType,
        "sha256": t.StringType,
        "entries_sha256": t.StringType,
        "seconds": t.DoubleType,
        "header": t.StringType,
        "error": t.StringType,
        "error_class": t.StringType,
        "retryable": t.BooleanType,
        "etag": t.StringType,
        "sent": t.BooleanType,
    }
    assert not any(field.nullable for field in schema.fields)


def test_task_rows_have_one_typed_column_a_field():
    schema = task_schema()
    assert schema.names == [item.name for item in fields(TaskRow)]
    assert [type(field.dataType) for field in schema.fields] == [
        t.IntegerType,
        t.LongType,
        t.StringType,
        t.StringType,
        t.StringType,
    ]


@settings(deadline=None)  # the first example pays for importing pyarrow
@given(st.lists(BLOCK_ROWS, max_size=5))
def test_rows_survive_arrow(rows):
    batch = rows_to_arrow(rows)
    assert batch.schema.names == block_row_schema().names
    assert [block_row(columns) for columns in batch.to_pylist()] == rows
