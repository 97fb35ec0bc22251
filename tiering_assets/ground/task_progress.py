"""How far a run's tasks are, told every ten seconds: ledgers, bytes, rate, time left.

Owns: the figures are of rows that arrived, which every runner hands over as its tasks end; a task
says nothing while it runs, so no request is made for it. A run that ends within ten seconds tells
nothing. The line carries the figures as an event, for whoever shows them in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from tiering_assets.ground.effects import about
from tiering_assets.ground.stack import Stack
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, TaskKind

EVERY_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """What is done of how much; `seconds_left` is None while nothing is."""

    action: str
    ledgers_done: int
    ledgers: int
    bytes_done: int
    bytes: int
    bytes_per_s: float
    seconds_left: float | None

    @property
    def text(self) -> str:
        left = "" if self.seconds_left is None else f", {span_text(self.seconds_left)} left"
        return (
            f"{self.action}: {self.ledgers_done} of {self.ledgers} ledgers, "
            f"{self.bytes_done / 1e6:.1f} of {self.bytes / 1e6:.1f} MB, "
            f"{self.bytes_per_s / 1e6:.1f} MB/s{left}"
        )


def span_text(seconds: float) -> str:
    """A span that nobody measures by: seconds up to two minutes, then minutes, then hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


class TaskProgress:
    """Counts the rows of some tasks. Each block counts once, whoever ran it twice."""

    def __init__(
        self, action: str, tasks: Sequence[BlockTask], *, clock: Callable[[], float]
    ) -> None:
        self._action, self._clock, self._began = action, clock, clock()
        self._bytes = sum(task.bytes for task in tasks)
        self._left: dict[int, set[tuple[TaskKind, str, int]]] = {}
        for task in tasks:
            blocks = self._left.setdefault(task.source.ledger_id, set())
            blocks.update((task.kind, task.attempt, block.part_number) for block in task.blocks)
        self._done = 0

    def count(self, row: BlockRow) -> None:
        """A failed block is none that is done."""
        left, block = self._left.get(row.ledger_id, set()), (row.kind, row.attempt, row.part_number)
        if not row.error and block in left:
            left.remove(block)
            self._done += row.block_length

    def figures(self) -> TaskFigures:
        rate = self._done / max(self._clock() - self._began, 1e-9)
        return TaskFigures(
            action=self._action,
            ledgers_done=sum(not left for left in self._left.values()),
            ledgers=len(self._left),
            bytes_done=self._done,
            bytes=self._bytes,
            bytes_per_s=rate,
            seconds_left=(self._bytes - self._done) / rate if self._done else None,
        )


@contextmanager
def telling(
    stack: Stack, action: str, tasks: Sequence[BlockTask]
) -> Iterator[Callable[[BlockRow], None]]:
    """Yield what to call with each row of the tasks that run within; tells how far they are."""
    progress = TaskProgress(action, tasks, clock=stack.monotonic)

    def tell() -> None:
        found = progress.figures()
        line = about(found.text)
        line.event = {"progress": asdict(found)}
        stack.narrate(line)

    with stack.every(EVERY_S, tell):
        yield progress.count
