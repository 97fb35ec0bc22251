"""How far a run is, told every ten seconds: ledgers, bytes, rate, time left; how long each phase
took.

Owns: the figures are of rows that arrived, which every runner hands over as its tasks end; a task
says nothing while it runs, so no request is made for it. A run that ends within ten seconds tells
nothing. The line carries the figures as an event, for whoever shows them in another way: a
terminal gets them every second, as a bar that it draws over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from tiering_assets.ground.effects import Line, about
from tiering_assets.ground.stack import Stack
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, TaskKind

EVERY_S: Final = 10.0
BAR_EVERY_S: Final = 1.0


class ChosenLedger(Protocol):
    """A ledger that is worked on. `ml_name` is its topic, `object_bytes` what will be stored."""

    @property
    def ledger_id(self) -> int: ...
    @property
    def ml_name(self) -> str: ...
    @property
    def object_bytes(self) -> int: ...


def tell_chosen(
    stack: Stack, to_copy: Sequence[ChosenLedger], to_read_back: Sequence[ChosenLedger]
) -> None:
    """The first line with figures, as soon as they are known: people see what they wait for."""
    whole = [*to_copy, *to_read_back]
    topics = len({one.ml_name for one in whole})
    stack.tell(
        f"{len(to_copy)} ledgers to copy and {len(to_read_back)} to read back, of {topics} topics, "
        f"{sum(one.object_bytes for one in whole) / 1e6:.1f} MB in all",
        *(one.ledger_id for one in whole),
    )


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


@dataclass(slots=True)
class LedgerTally:
    """Of one ledger's tasks: blocks that are left, and what those that are done came to.

    `seconds` are those of its tasks, which run side by side; `sent_before` counts blocks that an
    earlier run had sent.
    """

    left: set[tuple[TaskKind, str, int]] = field(default_factory=set)
    blocks: int = 0
    bytes: int = 0
    seconds: float = 0.0
    sent_before: int = 0

    @property
    def copied_text(self) -> str:
        """`12.8 MB copied in 0.42 s, 3 blocks, 1 sent before`."""
        blocks = f", {self.blocks} blocks" if self.blocks > 1 else ""
        before = f", {self.sent_before} sent before" if self.sent_before else ""
        return f"{self.bytes / 1e6:.1f} MB copied in {self.seconds:.2f} s{blocks}{before}"


class Figured(Protocol):
    """Whatever knows how far it is."""

    def figures(self) -> TaskFigures: ...


class TaskProgress:
    """Counts the rows of some tasks. Each block counts once, whoever ran it twice."""

    def __init__(
        self, action: str, tasks: Sequence[BlockTask], *, clock: Callable[[], float]
    ) -> None:
        self._action, self._clock, self._began = action, clock, clock()
        self._bytes = sum(task.bytes for task in tasks)
        self._ledgers: dict[int, LedgerTally] = {}
        for task in tasks:
            tally = self._ledgers.setdefault(task.source.ledger_id, LedgerTally())
            tally.left.update((task.kind, task.attempt, block.part_number) for block in task.blocks)
        self._done = 0

    def count(self, row: BlockRow) -> LedgerTally | None:
        """The ledger's tally where this row is its last. A failed block is none that is done."""
        tally = self._ledgers.get(row.ledger_id)
        block = (row.kind, row.attempt, row.part_number)
        if tally is None or row.error or block not in tally.left:
            return None
        tally.left.remove(block)
        tally.blocks += 1
        tally.bytes += row.block_length
        tally.seconds += row.seconds
        tally.sent_before += not row.sent
        self._done += row.block_length
        return None if tally.left else tally

    def figures(self) -> TaskFigures:
        return _figures(
            self._action,
            ledgers=(sum(not one.left for one in self._ledgers.values()), len(self._ledgers)),
            size=(self._done, self._bytes),
            seconds=self._clock() - self._began,
        )


class LedgerProgress:
    """Counts ledgers that have something done to them as a whole; `sizes` are their bytes."""

    def __init__(
        self, action: str, sizes: Mapping[int, int], *, clock: Callable[[], float]
    ) -> None:
        self._action, self._clock, self._began = action, clock, clock()
        self._sizes, self._done = sizes, set[int]()

    def count(self, ledger_ids: Iterable[int]) -> None:
        self._done.update(ledger_ids)

    def figures(self) -> TaskFigures:
        done = {*self._done}
        return _figures(
            self._action,
            ledgers=(len(done), len(self._sizes)),
            size=(sum(self._sizes[i] for i in done), sum(self._sizes.values())),
            seconds=self._clock() - self._began,
        )


def _figures(
    action: str, *, ledgers: tuple[int, int], size: tuple[int, int], seconds: float
) -> TaskFigures:
    rate = size[0] / max(seconds, 1e-9)
    return TaskFigures(
        action=action,
        ledgers_done=ledgers[0],
        ledgers=ledgers[1],
        bytes_done=size[0],
        bytes=size[1],
        bytes_per_s=rate,
        seconds_left=(size[1] - size[0]) / rate if size[0] else None,
    )


@contextmanager
def telling(
    stack: Stack, action: str, tasks: Sequence[BlockTask]
) -> Iterator[Callable[[BlockRow], LedgerTally | None]]:
    """Yield what to call with each row of the tasks that run within; tells how far they are."""
    progress = TaskProgress(action, tasks, clock=stack.monotonic)
    with _told(stack, progress):
        yield progress.count


@contextmanager
def telling_ledgers(
    stack: Stack, action: str, sizes: Mapping[int, int]
) -> Iterator[Callable[[Iterable[int]], None]]:
    """Yield what to call with the ledgers that are done; tells how far the block is."""
    progress = LedgerProgress(action, sizes, clock=stack.monotonic)
    with _told(stack, progress):
        yield progress.count


@contextmanager
def _told(stack: Stack, progress: Figured) -> Iterator[None]:
    """Lines every ten seconds, or a bar every second; it is gone when the block ends."""
    bar = stack.bar
    show, every_s = (stack.narrate, EVERY_S) if bar is None else (bar.show, BAR_EVERY_S)
    try:
        with stack.every(every_s, lambda: show(line_of(progress.figures()))):
            yield
    finally:
        if bar is not None:
            bar.clear()


def line_of(found: TaskFigures) -> Line:
    """The figures as a line that carries them."""
    line = about(found.text)
    line.event = {"progress": asdict(found)}
    return line


@dataclass(slots=True)
class PhaseSeconds:
    """How long each phase of this run took so far; one that came twice took both."""

    seconds: dict[str, float] = field(default_factory=dict)


def phases_of(stack: Stack) -> PhaseSeconds:
    return stack.memory.shared(PhaseSeconds)


@contextmanager
def phase(stack: Stack, name: str) -> Iterator[None]:
    """Within it the run is in this phase, and its seconds are counted."""
    began = stack.monotonic()
    try:
        yield
    finally:
        spent = phases_of(stack).seconds
        spent[name] = spent.get(name, 0.0) + stack.monotonic() - began


Args = ParamSpec("Args")
Result = TypeVar("Result")


def in_phase(
    name: str,
) -> Callable[
    [Callable[Concatenate[Stack, Args], Result]], Callable[Concatenate[Stack, Args], Result]
]:
    """The same for all that a function does, whose first argument is the stack."""

    def decorate(
        act: Callable[Concatenate[Stack, Args], Result],
    ) -> Callable[Concatenate[Stack, Args], Result]:
        @wraps(act)
        def timed(stack: Stack, /, *args: Args.args, **kwargs: Args.kwargs) -> Result:
            with phase(stack, name):
                return act(stack, *args, **kwargs)

        return timed

    return decorate
