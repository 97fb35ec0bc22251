"""The task runner on Spark: descriptors placed by task number, one row a block back.

Owns: a DataFrame that sends parts has exactly one action, and nothing stands after its mapInArrow.
Sorts, counts, `isEmpty` and a second action each run every task again; `first` and `limit` skip
some. A partition whose worker is lost is run again by Spark, as often as the master allows.
A job that Spark gives up is told as failure rows, as every other failure is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from resources.errors import TierkeeperError
from resources.settings import Settings
from resources.spark_session import local_cores, spark_session
from tiering_assets.spark.schemas import TaskRow, block_row, block_row_schema, task_schema
from tiering_assets.spark.worker_main import credentials, plain_settings, run_batches
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, encode_task, failure_row
from tiering_assets.tasks.runner import Progress, pack_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MESSAGE_MAX = 500  # characters of Spark's own words in a row; stack traces are longer


@contextmanager
def open_spark_runner(settings: Settings) -> Iterator[SparkRunner]:
    """Yield a runner on this process's session, started with its first task if there is none.

    A run that finds nothing to do pays for no JVM. Workers inherit the credentials among `settings`
    through the environment of the JVM. Errors as in `spark_session`; a bad master is told at once.
    """
    local_cores(settings.spark.master)
    with ExitStack() as exits:

        def start() -> SparkSession:
            return exits.enter_context(
                spark_session(settings.spark, worker_environment=credentials(settings))
            )

        yield SparkRunner(start, settings)


class SparkRunner:
    """Runs tasks in Spark's Python workers; rows arrive, and progress is told, at the end."""

    def __init__(self, start: Callable[[], SparkSession], settings: Settings) -> None:
        self._start = start
        self._session: SparkSession | None = None
        self._settings = settings
        self._cores = local_cores(settings.spark.master)

    def run(
        self, tasks: Sequence[BlockTask], *, progress: Progress | None = None
    ) -> list[BlockRow]:
        if not tasks:
            return []
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        if self._session is None:
            self._session = self._start()
        session, tag = self._session, f"tierkeeper-{uuid4().hex}"
        session.addTag(tag)
        try:
            rows = _collect(self._sent(session, tasks))
        except (PySparkException, Py4JError, OSError) as error:
            rows = _given_up(tasks, error)
        except BaseException:
            session.interruptTag(tag)  # Ctrl-C: nobody waits for these tasks any more
            raise
        finally:
            session.removeTag(tag)
        if progress is not None:
            for row in rows:
                progress(row)
        return rows

    def slots(self, tasks: Sequence[BlockTask]) -> int:
        """Return how many Spark tasks to make of these: enough for all cores, and not too small."""
        work = sum(task.bytes for task in tasks)
        return min(len(tasks), max(self._cores, -(-work // self._settings.offload.task_bytes)))

    def _sent(self, session: SparkSession, tasks: Sequence[BlockTask]) -> DataFrame:
        packed = pack_tasks(tasks, self.slots(tasks))
        rows = [
            TaskRow(
                task_no=task_no,
                ledger_id=task.source.ledger_id,
                attempt=task.attempt,
                descriptor=encode_task(task),
            )
            for task_no, slot in enumerate(packed)
            for task in slot
        ]
        schema = task_schema()
        values = [tuple(getattr(row, name) for name in schema.names) for row in rows]
        run_partition = partial(run_batches, plain=plain_settings(self._settings))
        placed = session.createDataFrame(values, schema).repartitionById(len(packed), "task_no")
        return placed.mapInArrow(run_partition, block_row_schema())


def _collect(frame: DataFrame) -> list[BlockRow]:
    """The one action. Nothing else may be asked of a frame that has effects."""
    return [block_row(row.asDict()) for row in frame.collect()]


def _given_up(tasks: Sequence[BlockTask], error: Exception) -> list[BlockRow]:
    """Spark lost a worker too often, or itself: what the tasks did is unknown, so none is done."""
    said = re.sub(r"\s+", " ", str(error))[:_MESSAGE_MAX]
    lost = TierkeeperError(f"Spark gave the job up: {said or type(error).__name__}")
    return [replace(failure_row(task, task.blocks[0], lost, 0.0), retryable=True) for task in tasks]
