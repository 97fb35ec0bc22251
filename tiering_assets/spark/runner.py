"""The task runner on Spark: descriptors placed by task number, one row a block back.

Owns: a DataFrame that sends parts has exactly one action, and nothing stands after its mapInArrow.
A job hands rows over at its end, in every way to a Spark; so a long run is many small jobs, which
tell how far it is (docs/decisions/0023).
Sorts, counts, `isEmpty` and a second action each run every task again; `first` and `limit` skip
some. A partition whose worker is lost is run again by Spark, as often as the master allows.
A job that Spark gives up is told as failure rows, as every other failure is. Operations carry their
attempts as tags, so that who takes an attempt over can interrupt them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from tiering_assets.resources import ending
from tiering_assets.resources.errors import PrerequisiteError, TierkeeperError
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_of_workers import plain_settings
from tiering_assets.resources.spark_master import parse_master
from tiering_assets.resources.spark_session import interrupt_run, load_pyspark
from tiering_assets.spark.bootstrap import checked
from tiering_assets.spark.lost_jobs import explain
from tiering_assets.spark.schemas import (
    TaskRow,
    block_row,
    block_row_schema,
    refusal_of,
    task_schema,
)
from tiering_assets.spark.session import check_spark, open_session, packages_name
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, encode_task, failure_row
from tiering_assets.tasks.runner import Progress, pack_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOBS_AT_ONCE = 8  # threads that wait for a job each; one more than runs, so the next is ready
_ENTRY = "tiering_assets.spark.worker_main:run_batches"


@contextmanager
def open_spark_runner(
    settings: Settings, *, run_id: str = "", narrate: Callable[[str], None] | None = None
) -> Iterator[SparkRunner]:
    """Yield a runner on this process's session, started before its first task if there is none.

    A run that finds nothing to do pays for no JVM. Errors as in `open_session`; bad settings are
    told at once. `run_id` lets a later run interrupt what this one leaves behind. `narrate` is told
    once that Spark starts.
    """
    check_spark(settings)
    with ExitStack() as exits:
        unwanted = Event()
        opened = open_session(settings, run_id=run_id, given_up=unwanted.is_set)
        runner = SparkRunner(lambda: exits.enter_context(opened), settings, narrate)
        try:
            yield runner
        finally:
            unwanted.set()
            runner.settle()


class SparkRunner:
    """Runs tasks in Spark's Python workers; rows arrive, and progress is told, job by job."""

    def __init__(
        self,
        open_: Callable[[], SparkSession],
        settings: Settings,
        narrate: Callable[[str], None] | None = None,
    ) -> None:
        self._open, self._narrate = open_, narrate
        self._opening: Future[SparkSession] | None = None
        self._lock = Lock()
        self._settings = settings
        self._cores = parse_master(settings.spark).cores

    def run(
        self, tasks: Sequence[BlockTask], *, progress: Progress | None = None
    ) -> list[BlockRow]:
        if not tasks:
            return []
        session, ours = self._opened(), f"tierkeeper-{uuid4().hex}"
        packed = pack_tasks(tasks, self.slots(tasks))
        jobs = small_jobs(packed, cores=self._cores)
        if len(jobs) == 1:
            return _told(self._job(session, packed, ours), progress)
        rows: list[BlockRow] = []
        with ThreadPoolExecutor(min(self._cores + 1, JOBS_AT_ONCE)) as pool:
            under_way = [pool.submit(self._job, session, job, ours) for job in jobs]
            try:
                for done in as_completed(under_way):
                    rows += _told(done.result(), progress)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                _drop(session, ours)
                raise
        return rows

    def _job(
        self, session: SparkSession, packed: Sequence[Sequence[BlockTask]], ours: str
    ) -> list[BlockRow]:
        """Every row of one job, in the thread whose tags it has."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        tasks = [task for slot in packed for task in slot]
        tags = [ours, *sorted({attempt_tag(task.attempt) for task in tasks})]
        for tag in tags:
            session.addTag(tag)
        try:
            rows = _collect(self._sent(session, packed))
        except (PySparkException, Py4JError, OSError) as error:
            if ending.asked():  # Ctrl-C broke the connection, whose next use fails by its own words
                _drop(session, ours)
                raise KeyboardInterrupt from error
            rows = _given_up(tasks, error)
        except BaseException:
            _drop(session, ours)
            raise
        finally:
            with suppress(PySparkException, Py4JError, OSError):
                for tag in tags:
                    session.removeTag(tag)
        return rows

    def begin(self) -> None:
        """Open the session in a thread: it takes seconds, in which the caller has work to do."""
        if self._opening is None:
            load_pyspark(self._settings.spark)
        self._begun()

    def _begun(self) -> Future[SparkSession]:
        with self._lock:
            if self._opening is None:
                self._opening = Future()
                if self._narrate is not None:
                    self._narrate("starting Spark")
                Thread(
                    target=_fulfil,
                    args=(self._opening, self._open),
                    name="spark-session",
                    daemon=True,
                ).start()
            return self._opening

    def start(self) -> None:
        """Wait for the session. Errors as in `open_session`."""
        self._opened()

    def _opened(self) -> SparkSession:
        return self._begun().result()

    def settle(self) -> None:
        """Wait until a session that was begun is there to be closed, or will never be."""
        if self._opening is not None:
            wait([self._opening])

    def interrupt(self, run_id: str, attempts: Sequence[str]) -> None:
        """End what a dead run's tasks still do for these attempts, where Spark lets us.

        Best effort: what cannot be interrupted sends parts of an attempt that nobody completes, or
        the same parts again (docs/spark.md#takeovers).
        """
        from pyspark.errors import PySparkException

        tags = [attempt_tag(attempt) for attempt in attempts]
        with suppress(PySparkException, TierkeeperError):
            interrupt_run(self._settings.spark, run_id, tags)

    def slots(self, tasks: Sequence[BlockTask]) -> int:
        """Return how many Spark tasks to make of these: enough for all cores, and not too small."""
        work = sum(task.bytes for task in tasks)
        return min(len(tasks), max(self._cores, -(-work // self._settings.offload.task_bytes)))

    def _sent(self, session: SparkSession, packed: Sequence[Sequence[BlockTask]]) -> DataFrame:
        rows = [
            TaskRow(
                task_no=task_no,
                ledger_id=task.source.ledger_id,
                attempt=task.attempt,
                descriptor=encode_task(task),
                refusal=refusal_of(task),
            )
            for task_no, slot in enumerate(packed)
            for task in slot
        ]
        schema = task_schema()
        values = [tuple(getattr(row, name) for name in schema.names) for row in rows]
        run_partition = checked(
            _ENTRY,
            {"plain": plain_settings(self._settings)},
            packages=packages_name(self._settings),
        )
        placed = session.createDataFrame(values, schema).repartitionById(len(packed), "task_no")
        return placed.mapInArrow(run_partition, block_row_schema())


def small_jobs(
    packed: Sequence[Sequence[BlockTask]], *, cores: int
) -> list[Sequence[Sequence[BlockTask]]]:
    """The slots in jobs whose ends tell how far a run is: a job hands over nothing before its end.

    What the cores do at once is one job; more is told by several, which fill the cores together:
    a slot each, and more of them where there are many cores.
    """
    if len(packed) <= cores:
        return [packed]
    size = -(-cores // (JOBS_AT_ONCE - 1))
    return [packed[start : start + size] for start in range(0, len(packed), size)]


def _told(rows: list[BlockRow], progress: Progress | None) -> list[BlockRow]:
    if progress is not None:
        for row in rows:
            progress(row)
    return rows


def _fulfil(opening: Future[SparkSession], open_: Callable[[], SparkSession]) -> None:
    try:
        opening.set_result(open_())
    except BaseException as error:  # noqa: BLE001  whoever waits for the session gets it
        opening.set_exception(error)


def _collect(frame: DataFrame) -> list[BlockRow]:
    """The one action. Nothing else may be asked of a frame that has effects."""
    return [block_row(row.asDict()) for row in frame.collect()]


def _drop(session: SparkSession, tag: str) -> None:
    """Nobody waits for these tasks any more; a session that cannot be told ends with us."""
    with suppress(Exception):
        session.interruptTag(tag)


def attempt_tag(attempt: str) -> str:
    """The tag of an attempt's operations. Spark takes no comma and no empty tag."""
    return "tierkeeper-attempt-" + re.sub(r"[^A-Za-z0-9._-]", "_", attempt)


def _given_up(tasks: Sequence[BlockTask], error: Exception) -> list[BlockRow]:
    """Spark lost a worker too often, or itself: what the tasks did is unknown, so none is done."""
    lost = explain(str(error) or type(error).__name__)
    retryable = not isinstance(lost, PrerequisiteError)
    return [
        replace(failure_row(task, task.blocks[0], lost, 0.0), retryable=retryable) for task in tasks
    ]
