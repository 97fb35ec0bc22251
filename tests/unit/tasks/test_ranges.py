"""Blocks are read ahead by ranges, few in memory; whatever happens, no thread is left."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

from tests.support.made_ledger import MadeLedger, MadeWorker
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.settings import OffloadSettings, Settings
from tiering_assets.resources.spark_master import MIB
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.ranges import read_blocks
from tiering_assets.tasks.worker import FETCHES_AT_ONCE, run_task

LEDGER = MadeLedger(entries=4000, size=1000, block_bytes=MIB)
SETTINGS = Settings(offload=OffloadSettings(read_range_bytes=200_000))
TASK = LEDGER.task(TaskKind.READ_BACK)


def fetchers():
    return [one for one in threading.enumerate() if one.name.startswith("range-fetch")]


class Store:
    """Counts what is asked at once, and fails or stalls where it is told to."""

    def __init__(self, worker, *, fails_at=None, stall_s=0.0):
        self._give, self._lock = worker.objects.get_range, threading.Lock()
        self.fails_at, self.stall_s = fails_at, stall_s
        self.asked: list[tuple[int, int]] = []
        self.now = self.most = 0
        worker.objects.get_range = self.get_range

    def get_range(self, key, *, start, length, version_id=None, into=None):
        with self._lock:
            self.asked.append((start, length))
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            time.sleep(self.stall_s)
            if self.fails_at is not None and start <= self.fails_at < start + length:
                raise ObjectStoreError(f"no answer at {start}")
            return self._give(key, start=start, length=length, into=into)
        finally:
            with self._lock:
                self.now -= 1


@pytest.fixture
def worker():
    with MadeWorker(LEDGER, SETTINGS) as made:
        yield made


def test_every_byte_is_asked_for_once_and_some_ranges_at_a_time(worker):
    store = Store(worker, stall_s=0.005)
    rows = list(run_task(TASK, worker))
    assert not [row.error for row in rows if row.error]
    assert len(rows) == len(LEDGER.blocks) == 4
    asked = sorted(store.asked)
    assert asked[0][0] == 0
    assert all(a + n == b for (a, n), (b, _) in pairwise(asked))
    assert sum(asked[-1]) == sum(block.block_length for block in LEDGER.blocks)
    assert max(length for _start, length in asked) == 200_000
    assert 1 < store.most <= FETCHES_AT_ONCE
    assert fetchers() == []


def test_no_more_than_the_block_after_next_is_begun(worker):
    store = Store(worker)
    blocks = read_blocks(TASK, worker)
    first, body = next(blocks)
    time.sleep(0.1)
    ends = LEDGER.blocks[1].offset + LEDGER.blocks[1].block_length
    assert max(start for start, _length in store.asked) < ends
    assert len(body) == first.block_length
    blocks.close()


def test_small_blocks_are_read_two_ahead_so_that_every_thread_waits_for_the_store():
    """Two ranges a block: while one is decoded, four of the next two are asked for."""
    settings = Settings(offload=OffloadSettings(read_range_bytes=600_000))
    with MadeWorker(LEDGER, settings) as worker:
        store = Store(worker, stall_s=0.05)
        blocks = read_blocks(TASK, worker)
        next(blocks)
        ends = [block.offset + block.block_length for block in LEDGER.blocks]
        assert sum(start < ends[2] for start, _length in store.asked) == len(store.asked) == 6
        assert store.most == FETCHES_AT_ONCE
        blocks.close()
        assert fetchers() == []


@pytest.mark.parametrize("range_bytes", [200_000, 600_000, 5_000_000])
def test_every_block_has_its_own_bytes_however_many_are_read_ahead(range_bytes):
    settings = Settings(offload=OffloadSettings(read_range_bytes=range_bytes))
    with MadeWorker(LEDGER, settings) as worker:
        found = [(block, bytes(body)) for block, body in read_blocks(TASK, worker)]
        assert [block for block, _body in found] == list(LEDGER.blocks)
        for block, body in found:
            whole = memoryview(bytearray(block.block_length))
            worker.objects.get_range(
                TASK.data_key, start=block.offset, length=block.block_length, into=whole
            )
            assert body == bytes(whole)


def test_a_reading_that_nobody_wants_the_rest_of_leaves_no_thread(worker):
    store = Store(worker, stall_s=0.02)
    blocks = read_blocks(TASK, worker)
    next(blocks)
    blocks.close()
    assert fetchers() == []
    asked = len(store.asked)
    time.sleep(0.1)
    assert len(store.asked) == asked


def test_an_abandoned_task_leaves_no_thread(worker):
    Store(worker, stall_s=0.02)
    rows = run_task(TASK, worker)
    assert not next(rows).error
    rows.close()
    assert fetchers() == []


@pytest.mark.parametrize("block", range(4))
def test_blocks_before_a_range_that_fails_are_given_and_no_thread_is_left(worker, block):
    failing = LEDGER.blocks[block]
    store = Store(worker, fails_at=failing.offset + 300_000)
    rows = list(run_task(TASK, worker))
    assert [row.part_number for row in rows] == list(range(1, block + 2))
    assert [bool(row.error) for row in rows] == [False] * block + [True]
    assert rows[-1].retryable
    assert "no answer at" in rows[-1].error
    assert fetchers() == []
    before = sum(one.block_length for one in LEDGER.blocks[: block + 2])
    assert max(start for start, _length in store.asked) < before


def test_a_store_that_stalls_holds_the_task_and_nothing_else(worker):
    store = Store(worker, stall_s=0.3)
    rows = run_task(TASK, worker)
    began = time.monotonic()
    assert not next(rows).error
    assert time.monotonic() - began >= 0.3
    assert store.most <= FETCHES_AT_ONCE
    rows.close()
    assert fetchers() == []
