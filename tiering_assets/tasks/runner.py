"""How tasks are run: in this process, or by Spark. Same descriptors, same rows.

Owns the packing of blocks into tasks. A runner may run a task more than once; nothing that decides
about an attempt depends on how often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Lock
from typing import Any, Protocol

from tiering_assets.resources.settings import Settings
from tiering_assets.tasks.descriptors import BlockRow, BlockTask
from tiering_assets.tasks.worker import Worker, run_task

Progress = Callable[[BlockRow], None]


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
    """One task after the other in this process; what small fleets and fault tests use.

    Threads have theirs run one after the other, too: this process is one spender of its budgets.
    `alone` is the lock for that.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        make_worker: Callable[[], Worker] | None = None,
        alone: AbstractContextManager[Any] | None = None,
    ):
        self._make_worker = make_worker or (lambda: Worker(settings))
        self._alone = alone or Lock()

    def begin(self) -> None:
        """Nothing to begin."""

    def start(self) -> None:
        """Nothing to start."""

    def run(
        self, tasks: Sequence[BlockTask], *, progress: Progress | None = None
    ) -> list[BlockRow]:
        rows: list[BlockRow] = []
        with self._alone, self._make_worker() as worker:
            for task in tasks:
                for row in run_task(task, worker):
                    rows.append(row)
                    if progress is not None:
                        progress(row)
        return rows

    def interrupt(self, run_id: str, attempts: Sequence[str]) -> None:
        """Nothing to do: these tasks die with the process that runs them."""


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


def pack_tasks(tasks: Sequence[BlockTask], slots: int) -> list[list[BlockTask]]:
    """Spread tasks over slots, largest first, each to the slot with the least work so far."""
    packed: list[list[BlockTask]] = [[] for _ in range(max(1, min(slots, len(tasks))))]
    work = [0] * len(packed)
    for task in sorted(tasks, key=lambda t: (-t.bytes, t.source.ledger_id)):
        slot = work.index(min(work))
        packed[slot].append(task)
        work[slot] += task.bytes
    return packed
