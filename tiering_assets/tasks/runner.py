"""How tasks are run: in this process, or by Spark. Same descriptors, same rows.

Owns the packing of blocks into tasks. A runner may run a task more than once; nothing that decides
about an attempt depends on how often.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import replace
from threading import Event, Lock
from typing import Any, Protocol

from tiering_assets.resources.settings import Settings
from tiering_assets.tasks.descriptors import BlockRow, BlockTask
from tiering_assets.tasks.worker import Worker, run_task

TASKS_AT_ONCE = 2  # of a local runner: a third gains nothing where the store is the bound
Progress = Callable[[BlockRow], object]


class TaskRunner(Protocol):
    """Runs tasks to their end and returns every row, failures included, in no fixed order."""

    def begin(self) -> None:
        """Begin to get ready, as tasks will come; returns at once, and repeating it does nothing.

        What goes wrong is told by `start`.
        """
        ...

    def start(self) -> None:
        """Be ready, as tasks are about to come: what cannot run them says so before a write."""
        ...

    def run(
        self, tasks: Sequence[BlockTask], *, progress: Progress | None = None
    ) -> list[BlockRow]: ...

    def interrupt(self, run_id: str, attempts: Sequence[str]) -> None:
        """End what the tasks of a dead run still do for these attempts, where they can be reached.

        Saves work; nothing is safer for it. Never raises for what cannot be reached.
        """
        ...


class LocalRunner:
    """Two tasks at a time in this process, the largest first; what small fleets use.

    Topics that are worked on side by side have their tasks run one lot after the other: this
    process is one spender of its budgets. `alone` is the lock for that.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        make_worker: Callable[[], Worker] | None = None,
        alone: AbstractContextManager[Any] | None = None,
        at_once: int = TASKS_AT_ONCE,
    ):
        self._make_worker = make_worker or (lambda: Worker(settings))
        self._alone = alone or Lock()
        self._at_once = at_once

    def begin(self) -> None:
        """Nothing to begin."""

    def start(self) -> None:
        """Nothing to start."""

    def run(
        self, tasks: Sequence[BlockTask], *, progress: Progress | None = None
    ) -> list[BlockRow]:
        joined = join_tasks(tasks, self._at_once)
        lot = _Lot(joined, progress)
        with self._alone, ExitStack() as exits:
            workers = [exits.enter_context(self._make_worker())]
            for _ in range(min(self._at_once, len(joined)) - 1):
                workers.append(exits.enter_context(workers[0].beside()))
            lot.run(workers)
        return lot.rows

    def interrupt(self, run_id: str, attempts: Sequence[str]) -> None:
        """Nothing to do: these tasks die with the process that runs them."""


class _Lot:
    """Tasks that some workers of this process take up, one after the other, until none is left."""

    def __init__(self, tasks: Sequence[BlockTask], progress: Progress | None) -> None:
        self._left = deque(sorted(tasks, key=lambda task: -task.bytes))
        self._progress, self._lock, self._ended = progress, Lock(), Event()
        self.rows: list[BlockRow] = []

    def run(self, workers: Sequence[Worker]) -> None:
        """Whoever is asked to end begins no other block, and leaves no thread."""
        if len(workers) == 1:
            self._take_up(workers[0])
            return
        with ThreadPoolExecutor(len(workers), thread_name_prefix="task") as pool:
            try:
                for one in [pool.submit(self._take_up, worker) for worker in workers]:
                    one.result()
            except BaseException:
                self._ended.set()
                raise

    def _take_up(self, worker: Worker) -> None:
        while (task := self._next()) is not None:
            with closing(run_task(task, worker)) as rows:
                for row in rows:
                    self._take(row)
                    if self._ended.is_set():
                        return

    def _next(self) -> BlockTask | None:
        with self._lock:
            return self._left.popleft() if self._left and not self._ended.is_set() else None

    def _take(self, row: BlockRow) -> None:
        with self._lock:
            self.rows.append(row)
            if self._progress is not None:
                self._progress(row)


def split_task(task: BlockTask, *, bytes_max: int) -> list[BlockTask]:
    """Cut a ledger's blocks into consecutive tasks of about `bytes_max` bytes of work each."""
    pieces: list[BlockTask] = []
    start = size = 0
    for i, block in enumerate(task.blocks):
        if i > start and size + block.block_length > bytes_max:
            pieces.append(replace(task, blocks=task.blocks[start:i]))
            start, size = i, 0
        size += block.block_length
    pieces.append(replace(task, blocks=task.blocks[start:]))
    return pieces


def join_tasks(tasks: Sequence[BlockTask], slots: int) -> list[BlockTask]:
    """Join a ledger's consecutive pieces again where they are in the same share of so many.

    Shares are equal, so slots end together. At the end of a task nothing is encoded while its last
    blocks are sent, and at its beginning nothing is sent.
    """
    share = max(1.0, sum(task.bytes for task in tasks) / max(1, slots))
    joined: list[BlockTask] = []
    before, last_share = 0, -1
    for task in tasks:
        own_share = int((before + task.bytes / 2) / share)
        if own_share == last_share and _follows(joined[-1], task):
            joined[-1] = replace(joined[-1], blocks=joined[-1].blocks + task.blocks)
        else:
            joined.append(task)
        before, last_share = before + task.bytes, own_share
    return joined


def _follows(one: BlockTask, other: BlockTask) -> bool:
    adjoins = one.blocks[-1].part_number + 1 == other.blocks[0].part_number
    return adjoins and replace(one, blocks=other.blocks) == other


def pack_tasks(tasks: Sequence[BlockTask], slots: int) -> list[list[BlockTask]]:
    """Spread tasks over slots, largest first, each to the slot with the least work so far."""
    packed: list[list[BlockTask]] = [[] for _ in range(max(1, min(slots, len(tasks))))]
    work = [0] * len(packed)
    for task in sorted(tasks, key=lambda t: (-t.bytes, t.source.ledger_id)):
        slot = work.index(min(work))
        packed[slot].append(task)
        work[slot] += task.bytes
    return packed
