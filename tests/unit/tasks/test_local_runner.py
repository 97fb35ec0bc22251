"""The local runner works on two tasks at a time, as one spender, and leaves no thread."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_ledger import SimBookies, SimLedger
from tiering_assets.resources.settings import BookieSettings, OffloadSettings, Settings
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.rates import Rates
from tiering_assets.tasks.runner import TASKS_AT_ONCE, LocalRunner
from tiering_assets.tasks.worker import Worker

SETTINGS = Settings(
    bookies=BookieSettings(request_timeout_s=1.5, connect_timeout_s=1.5, password="pw"),
    offload=OffloadSettings(read_range_bytes=1000),
)


class Store(SimulatedObjectStore):
    """Takes its time, and notes how many were asked at once, and by whom for which topic."""

    def __init__(self, rates):
        super().__init__(part_bytes_min=1)
        self.rates, self.meeting, self.stall_s = rates, threading.Lock(), 0.02
        self.busy, self.most = 0, 0
        self.topics: dict[str, set[str]] = {}

    def _slowly(self, act, key, *args, **named):
        with self.meeting:
            self.busy += 1
            self.most = max(self.most, self.busy)
            self.topics.setdefault(key, set()).add(self.rates._topic())
        try:
            time.sleep(self.stall_s)
            with self.meeting:
                return act(key, *args, **named)
        finally:
            with self.meeting:
                self.busy -= 1

    def put(self, key, *args, **named):
        return self._slowly(super().put, key, *args, **named)

    def upload_part(self, key, *args, **named):
        return self._slowly(super().upload_part, key, *args, **named)

    def get_range(self, key, *args, **named):
        return self._slowly(super().get_range, key, *args, **named)


@pytest.fixture
def rates():
    return Rates(SETTINGS.budget, parts=lambda: 1)


@pytest.fixture
def objects(rates):
    return Store(rates)


@pytest.fixture
def ledgers():
    with ExitStack() as stack:
        bookies = SimBookies(stack)
        yield [
            SimLedger.store(bookies, i, [b"%d" % i * 300] * 40, block_bytes=4096) for i in range(6)
        ]


@pytest.fixture
def runner(objects, rates):
    return LocalRunner(SETTINGS, make_worker=lambda: Worker(SETTINGS, store=objects, rates=rates))


def tasks_of(ledgers, objects):
    return [
        replace(
            ledger.task(upload_id=objects.create_upload(ledger.key, metadata={})),
            topic=f"topic-{ledger.source.ledger_id % 3}",
        )
        for ledger in ledgers
    ]


def threads():
    return [
        one.name for one in threading.enumerate() if one.name.startswith(("task", "part", "range"))
    ]


def copied(objects, ledgers, runner, **how):
    rows = runner.run(tasks_of(ledgers, objects), **how)
    assert not [row.error for row in rows if row.error]
    return rows


def test_two_tasks_run_at_a_time_and_no_thread_is_left(objects, ledgers, runner):
    rows = copied(objects, ledgers, runner)
    assert {(row.ledger_id, row.part_number) for row in rows} == {
        (ledger.source.ledger_id, block.part_number)
        for ledger in ledgers
        for block in ledger.blocks
    }
    assert TASKS_AT_ONCE < objects.most <= 2 * TASKS_AT_ONCE  # each with two parts on their way
    assert threads() == []


def test_one_at_a_time_gives_the_same_rows(objects, ledgers, runner, rates):
    one = LocalRunner(
        SETTINGS, make_worker=lambda: Worker(SETTINGS, store=objects, rates=rates), at_once=1
    )
    facts = [
        sorted(
            (row.ledger_id, row.part_number, row.sha256) for row in copied(objects, ledgers, each)
        )
        for each in (runner, one)
    ]
    assert facts[0] == facts[1]


def test_each_thread_spends_for_the_topic_of_its_task(objects, ledgers, runner):
    copied(objects, ledgers, runner)
    for ledger in ledgers:
        objects.complete_upload(ledger.key, *_of(objects, ledger))
    back = [
        replace(ledger.task(TaskKind.READ_BACK), topic=f"topic-{ledger.source.ledger_id % 3}")
        for ledger in ledgers
    ]
    assert not [row.error for row in runner.run(back) if row.error]
    assert objects.topics == {
        ledger.key: {f"topic-{ledger.source.ledger_id % 3}"} for ledger in ledgers
    }


def _of(objects, ledger):
    [upload] = objects.list_uploads(ledger.key)
    return upload.upload_id, objects.list_parts(ledger.key, upload.upload_id)


def test_rows_are_told_one_at_a_time(objects, ledgers, runner):
    telling = threading.Lock()

    def told(_row):
        assert telling.acquire(blocking=False)
        time.sleep(0.001)
        telling.release()

    copied(objects, ledgers, runner, progress=told)


def test_the_largest_task_is_begun_first(objects, ledgers, runner, rates):
    begun = []

    class Noted(Worker):
        def reader(self, source):
            begun.append(source.ledger_id)
            return super().reader(source)

    tasks = tasks_of(ledgers, objects)
    shorter = [replace(task, blocks=task.blocks[: i + 1]) for i, task in enumerate(tasks)]
    one = LocalRunner(
        SETTINGS, make_worker=lambda: Noted(SETTINGS, store=objects, rates=rates), at_once=1
    )
    one.run(shorter)
    sizes = [next(t.bytes for t in shorter if t.source.ledger_id == i) for i in begun]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


class EndedError(BaseException):
    """As of Ctrl-C, or of a process that a test kills at this point."""


def test_whoever_ends_the_run_begins_nothing_more_and_leaves_no_thread(objects, ledgers, runner):
    told = []

    def ends(row):
        told.append(row)
        raise EndedError

    with pytest.raises(EndedError):
        runner.run(tasks_of(ledgers, objects), progress=ends)
    assert threads() == []
    begun = {row.ledger_id for row in told}
    assert len(begun) <= TASKS_AT_ONCE
    assert len(objects.topics) <= TASKS_AT_ONCE


def test_a_task_that_fails_is_its_own(objects, ledgers, runner):
    tasks = tasks_of(ledgers, objects)
    tasks[2] = replace(tasks[2], upload_id="no such upload")
    rows = runner.run(tasks)
    failed = {row.ledger_id for row in rows if row.error}
    assert failed == {2}
    done = {row.ledger_id for row in rows} - failed
    assert done == {ledger.source.ledger_id for ledger in ledgers} - failed
