"""What runs in a Python worker of Spark: descriptors in, one Arrow batch of rows a task out.

Owns: whatever goes wrong with a task is a row, not an exception: an exception would run every task
of the partition again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tiering_assets.resources.garbage import freeze_once
from tiering_assets.resources.settings_of_workers import PlainSettings, worker_settings
from tiering_assets.spark.schemas import rows_to_arrow
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, decode_task, failure_row
from tiering_assets.tasks.worker import Worker, run_task

if TYPE_CHECKING:
    import pyarrow as pa


def run_batches(
    batches: Iterator[pa.RecordBatch], plain: PlainSettings
) -> Iterator[pa.RecordBatch]:
    """Run every task of a partition with one Worker and yield the rows of each as one batch."""
    freeze_once("worker")
    with ExitStack() as opened:
        worker: Worker | None = None
        for batch in batches:
            for text in batch.column("descriptor").to_pylist():
                task = decode_task(str(text))
                started = time.perf_counter()
                rows: list[BlockRow] = []
                try:
                    if worker is None:
                        worker = opened.enter_context(Worker(worker_settings(plain)))
                    rows.extend(run_task(task, worker))
                except Exception as error:  # noqa: BLE001 - the edge of a process
                    rows.append(_unexpected(task, rows, error, time.perf_counter() - started))
                yield rows_to_arrow(rows)


def _unexpected(
    task: BlockTask, rows: list[BlockRow], error: Exception, seconds: float
) -> BlockRow:
    done = {row.part_number for row in rows}
    block = next((b for b in task.blocks if b.part_number not in done), task.blocks[-1])
    return failure_row(task, block, error, seconds)
