"""The columns are the contract's fields, and a row survives the way through Arrow."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

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

ROOT = Path(__file__).parents[3]
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
    seconds=st.floats(allow_nan=False, allow_infinity=False),
    header=st.text(),
    error=st.text(),
    error_class=st.text(),
    retryable=st.booleans(),
    etag=st.text(),
    sent=st.booleans(),
    messages=st.none() | LONGS,
    publish_min_ms=st.none() | LONGS,
    publish_max_ms=st.none() | LONGS,
    part=LONGS,
    part_bytes=LONGS,
    part_sha256=st.text(),
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
        "messages": t.LongType,
        "publish_min_ms": t.LongType,
        "publish_max_ms": t.LongType,
        "part": t.LongType,
        "part_bytes": t.LongType,
        "part_sha256": t.StringType,
    }
    assert {field.name for field in schema.fields if field.nullable} == {
        "messages",
        "publish_min_ms",
        "publish_max_ms",
    }


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


def test_a_worker_that_answers_has_not_imported_pandas():
    """It would take half a CPU second and 50 MB, in each of Spark's workers."""
    program = (
        "import sys; from tests.support.made_ledger import MadeLedger, MadeWorker;"
        "from tiering_assets.spark.schemas import rows_to_arrow;"
        "from tiering_assets.tasks.descriptors import TaskKind;"
        "from tiering_assets.tasks.worker import run_task;"
        "made = MadeLedger(entries=9, size=99, block_bytes=5 << 20);"
        "rows = list(run_task(made.task(TaskKind.READ_SOURCE), MadeWorker(made)));"
        "assert rows_to_arrow(rows).num_rows == 1;"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
