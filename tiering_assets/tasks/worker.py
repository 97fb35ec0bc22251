"""What one worker process owns while it runs tasks: bookie connections, a store client, buffers.

Owns: buffers are bounded (three blocks) however many blocks a task has, and everything is closed
when the process leaves the task. Plain functions: Spark only carries them (spark/runner.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from types import TracebackType
from typing import Self

from tiering_assets.resources.bookkeeper.address_map import AddressMap
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.errors import SettingsError, TierkeeperError
from tiering_assets.resources.native.loader import core
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.resources.settings import Settings
from tiering_assets.tasks.budget_record import read_budget
from tiering_assets.tasks.descriptors import (
    BlockRow,
    BlockTask,
    LedgerSource,
    TaskKind,
    failure_row,
)
from tiering_assets.tasks.polite_share import look_every_s
from tiering_assets.tasks.politeness import (
    Politeness,
    PoliteReads,
    PoliteSends,
    politeness_of_process,
)
from tiering_assets.tasks.rates import Budget, Rates, Reading, no_reading, parts_of

UPLOADS_AT_ONCE = 2
FETCHES_AT_ONCE = 4


class Worker:
    """Connections and settings of one worker; use as a context manager.

    `reached` is told of the points where a test may kill the process (ground/effects.py). Every
    worker is a spender of its own: its `rates` begin empty. The budget is not read for them where
    the process has `known` it a moment ago.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: ObjectStore | None = None,
        clock: Callable[[], float] = time.perf_counter,
        rates: Rates | None = None,
        known: Callable[[], Reading | None] = no_reading,
        sends: PoliteSends | None = None,
        reached: Callable[..., None] = lambda _point, *_ledger_ids, **_about: None,
    ) -> None:
        self.settings = settings
        self.reached = reached
        self._budget_key = self._topic = ""
        self.rates = rates or Rates(
            settings.budget, parts=lambda: parts_of(settings), read=self._budget, known=known
        )
        self._exit = ExitStack()
        politeness = _politeness(settings)
        self.sends = sends or PoliteSends(self.rates, politeness)
        self.store = store or self._exit.enter_context(
            closing(S3ObjectStore(settings.store, meter=self.sends))
        )
        self.clock = clock
        self.core = core()
        self._addresses: dict[str, tuple[str, int]] = {}
        self.reads = PoliteReads(self.rates, politeness)
        self._pool = self._exit.enter_context(
            BookiePool(settings.bookies, self._addresses, meter=self.reads)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exit.close()

    def reader(self, source: LedgerSource) -> LedgerReader:
        """A reader of a task's ledger. Tasks run one after the other, so they share the pool."""
        self._addresses.update(source.addresses)
        ways = AddressMap.parse(self.settings.bookies.address_map)
        self.reads.pages = sorted(map(ways.dialled, source.pages.values()))
        password = self.settings.bookies.password.encode()
        return LedgerReader(
            source.metadata(password),
            self._pool,
            self.settings.bookies,
            core=self.core,
            readable_to=source.readable_to(),
        )

    @contextmanager
    def taking_up(self, task: BlockTask) -> Iterator[None]:
        """Spend from the budgets of the task's topic, and look for budgets where the task says."""
        self._budget_key = self._budget_key or task.budget_key
        self._topic = task.topic
        reads = task.kind is not TaskKind.READ_BACK
        with self.rates.of_topic(task.topic), self.reads.working() if reads else nullcontext():
            yield

    def _budget(self) -> Budget:
        return read_budget(self.store, self._budget_key)

    def uploader(self) -> Executor:
        """What sends parts while the next block is being encoded."""
        return self._threads(UPLOADS_AT_ONCE, "part-upload")

    def fetcher(self) -> Executor:
        """What reads ranges of an object while those before them are being decoded."""
        return self._threads(FETCHES_AT_ONCE, "range-fetch")

    def beside(self) -> Worker:
        """One more in this process, which spends with it, but has its own bookie connections."""
        return Worker(
            self.settings,
            store=self.store,
            clock=self.clock,
            rates=self.rates,
            sends=self.sends,  # the store's meter is one
            reached=self.reached,
        )

    def _threads(self, count: int, name: str) -> Executor:
        """They spend from the budgets of the task's topic, as the thread does that they serve."""
        topic, pages = self._topic, self.reads.pages

        def adopt() -> None:
            self.rates.adopt(topic)
            self.sends.adopt(pages)

        return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=adopt)


def _politeness(settings: Settings) -> Politeness | None:
    bound_s = settings.budget.add_latency_max_s
    if bound_s == 0:
        return None
    try:
        spenders = parts_of(settings)
    except SettingsError:  # a master that this runner has no use for
        spenders = settings.budget.runs_max
    return politeness_of_process(bound_s, look_every_s(spenders))


def run_task(task: BlockTask, worker: Worker) -> Generator[BlockRow]:
    """Run one task and yield a row per block, failures included; never raises for a bad ledger.

    A task stops at its first failing block: what stopped it would stop the next one, too. The
    driver treats a block without a row as not done.
    """
    from tiering_assets.tasks import copy, read_back

    actions = {
        TaskKind.COPY: copy.copy_blocks,
        TaskKind.READ_BACK: read_back.read_back_blocks,
        TaskKind.READ_SOURCE: read_back.read_source_blocks,
    }
    started = worker.clock()
    done: set[int] = set()
    try:
        with worker.taking_up(task):
            for row in actions[task.kind](task, worker):
                done.add(row.part_number)
                yield row
    except (TierkeeperError, OSError) as error:
        block = next((b for b in task.blocks if b.part_number not in done), task.blocks[-1])
        yield failure_row(task, block, error, worker.clock() - started)
