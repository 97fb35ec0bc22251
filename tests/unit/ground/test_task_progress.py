"""Progress counts each block once, says what is left by what was done, and carries its figures."""

import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.support.made_ledger import MadeLedger
from tests.support.sim_scene import Scene
from tiering_assets.ground.task_progress import (
    LedgerProgress,
    TaskProgress,
    in_phase,
    phase,
    phases_of,
    span_text,
    telling,
)
from tiering_assets.ground.turns import every
from tiering_assets.tasks.descriptors import TaskKind, failure_row
from tiering_assets.tasks.runner import split_task

BLOCK = 4096


def tasks_of(*ledger_ids):
    ledgers = [MadeLedger(entries=40, size=256, block_bytes=BLOCK) for _ in ledger_ids]
    found = []
    for ledger_id, ledger in zip(ledger_ids, ledgers, strict=True):
        task = ledger.task(TaskKind.COPY)
        task = replace(
            task, attempt=f"a{ledger_id}", source=replace(task.source, ledger_id=ledger_id)
        )
        found += split_task(task, bytes_max=BLOCK)
    return found


def row_of(task, block):
    return replace(failure_row(task, block, ValueError(), 1.0), error="")


def rows_of(tasks):
    return [row_of(task, block) for task in tasks for block in task.blocks]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_the_figures_are_those_of_the_rows():
    clock, tasks = Clock(), tasks_of(1, 2)
    progress = TaskProgress("copying", tasks, clock=clock)
    first = [row for row in rows_of(tasks) if row.ledger_id == 1]
    clock.now = 5.0
    for row in [*first, *first]:  # a task that Spark ran twice
        progress.count(row)
    found = progress.figures()
    whole = sum(block.block_length for task in tasks for block in task.blocks)
    assert (found.ledgers_done, found.ledgers) == (1, 2)
    assert (found.bytes_done, found.bytes) == (whole // 2, whole)
    assert found.bytes_per_s == whole // 2 / 5
    assert found.seconds_left == pytest.approx(5.0)


def test_a_failed_block_is_not_done():
    [task, *_rest] = tasks = tasks_of(1)
    progress = TaskProgress("copying", tasks, clock=Clock())
    progress.count(failure_row(task, task.blocks[0], ValueError("no"), 1.0))
    assert (progress.figures().bytes_done, progress.figures().seconds_left) == (0, None)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (119, "119 s"), (121, "2 min"), (7300, "2 h 2 min")]
)
def test_a_span_is_said_as_people_do(seconds, said):
    assert span_text(seconds) == said


def test_a_line_says_it_and_carries_it():
    said: list[Any] = []
    ticks = []

    @contextmanager
    def noted(seconds, act):
        ticks.append((seconds, act))
        yield

    stack = replace(Scene().process(), narrate=said.append, every=noted)
    tasks = tasks_of(7)
    with telling(stack, "copying", tasks) as count:
        count(rows_of(tasks)[0])
        [(seconds, tell)] = ticks
        tell()
    [line] = said
    assert seconds == 10.0
    assert line.startswith("copying: 0 of 1 ledgers, 0.0 of 0.0 MB, ")
    assert line.event["progress"]["bytes_done"] == rows_of(tasks)[0].block_length
    assert line.event["progress"]["ledgers"] == 1


def test_the_last_block_of_a_ledger_says_what_all_of_them_came_to():
    tasks = tasks_of(1, 2)
    progress = TaskProgress("copying", tasks, clock=Clock())
    first = [row for row in rows_of(tasks) if row.ledger_id == 1]
    resumed = [replace(first[0], sent=False), *first[1:]]
    tallies: list[Any] = [progress.count(row) for row in resumed]
    *early, last = tallies
    assert {*early} == {None}
    size = sum(row.block_length for row in first)
    assert last.copied_text == (
        f"{size / 1e6:.1f} MB copied in {len(first)}.00 s, {len(first)} blocks, 1 sent before"
    )
    assert progress.count(first[-1]) is None  # told once, whoever runs a task twice


def test_a_ledger_of_one_block_says_no_more_than_its_block_did():
    """The event budget of a ledger has no room for more."""
    [task] = split_task(
        MadeLedger(entries=1, size=64, block_bytes=BLOCK).task(TaskKind.COPY), bytes_max=BLOCK
    )
    tally: Any = TaskProgress("copying", [task], clock=Clock()).count(row_of(task, task.blocks[0]))
    assert tally.copied_text == "0.0 MB copied in 1.00 s"
    assert len(f"ledger 7: {tally.copied_text}") <= len("ledger 7 block 1: 0.0 MB in 1.00 s")


def test_ledgers_are_counted_as_a_whole_where_they_have_no_tasks():
    clock = Clock()
    progress = LedgerProgress("publishing", {1: 30, 2: 50, 3: 20}, clock=clock)
    assert progress.figures().seconds_left is None
    clock.now = 4.0
    progress.count([1, 2])
    progress.count(i for i in (2,))
    assert progress.figures().text == (
        "publishing: 2 of 3 ledgers, 0.0 of 0.0 MB, 0.0 MB/s, 1 s left"
    )


class NotedBar:
    def __init__(self):
        self.said = []

    def show(self, line):
        self.said.append(line)

    def clear(self):
        self.said.append(None)


def test_where_somebody_watches_a_bar_has_it_within_two_seconds_and_is_gone_after_it():
    bar, ticks = NotedBar(), []

    @contextmanager
    def noted(seconds, act):
        ticks.append(seconds)
        act()
        yield

    stack = replace(Scene().process(), narrate=pytest.fail, bar=bar, every=noted)
    with pytest.raises(ValueError, match="ended"), telling(stack, "copying", tasks_of(7)):
        raise ValueError("ended")
    line, gone = bar.said
    assert ticks == [1.0]
    assert line.event["progress"]["bytes_done"] == 0
    assert gone is None


def test_phases_add_up_by_name_and_count_what_failed():
    clock = Clock()
    stack = replace(Scene().process(), monotonic=clock)

    @in_phase("copy")
    def copy(stack, seconds):
        clock.now += seconds
        if seconds == 3:
            raise ValueError("ended")
        return "copied"

    with phase(stack, "plan"):
        clock.now += 0.25
    assert copy(stack, 2) == "copied"
    with pytest.raises(ValueError, match="ended"):
        copy(stack, 3)
    assert phases_of(stack).seconds == {"plan": 0.25, "copy": 5.0}


def test_nothing_is_told_of_what_ends_before_the_first_time():
    told = []
    with every(3600, lambda: told.append(1)):
        pass
    assert told == []


def test_it_is_told_while_the_work_goes_on_and_not_after_it():
    told = threading.Semaphore(0)
    with every(0.01, told.release):
        assert told.acquire(timeout=10)
        assert told.acquire(timeout=10)
    while told.acquire(blocking=False):
        pass
    assert not told.acquire(timeout=0.05)
