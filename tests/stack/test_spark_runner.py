"""Spark's workers against a real S3 server: the same rows and bytes as in this process, once each,
and whole after a worker was killed in the middle of a part.
"""

import socket
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import psutil
import pytest

from tests.support.sim_ledger import SimBookies, SimLedger
from tests.support.spark_copies import BLOCK, completed, copy_tasks, ledger_of, wait_for
from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.resources.spark_session import spark_session
from tiering_assets.spark.runner import open_spark_runner
from tiering_assets.tasks.descriptors import BlockRow, TaskKind
from tiering_assets.tasks.runner import LocalRunner, split_task

pytestmark = [pytest.mark.stack, pytest.mark.spark]

READ_BATCH_OPCODE = 7


@pytest.fixture
def bookies():
    with ExitStack() as stack:
        yield SimBookies(stack)


@pytest.fixture
def settings(stack):
    return stack.settings()


@pytest.fixture
def objects(settings):
    return S3ObjectStore(settings.store)


def facts(rows):
    """Rows in a fixed order, without how long they took."""
    plain = [replace(row, seconds=0.0) for row in rows]
    return sorted(plain, key=lambda row: (row.ledger_id, row.kind.value, row.part_number))


def spark_workers():
    """The Python processes that run tasks: children of pyspark's daemon."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            parent = process.parent()
            if parent is not None and "pyspark.daemon" in parent.cmdline():
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def batches_from(bookies, block):
    """How often the first entry of a block was asked for."""
    asked = Counter(seen.entry_id for seen in bookies.reads() if seen.opcode == READ_BATCH_OPCODE)
    return asked[block.first_entry_id]


def wait_for_retry(running, bookies):
    asked = len(bookies.reads())
    wait_for(lambda: running.done() or len(bookies.reads()) > asked, what="a retry")


def test_both_runners_give_the_same_rows_and_bytes(spark_runner, settings, bookies, objects):
    local_runner = LocalRunner(settings)
    rows, bodies = {}, {}
    for name, runner in (("local", local_runner), ("spark", spark_runner)):
        ledgers = [ledger_of(bookies, number, megabytes=12) for number in (21, 22)]
        copies = [copy_tasks(objects, ledger) for ledger in ledgers]
        small = SimLedger.store(bookies, 23, [b"hello", b"world"], block_bytes=BLOCK)
        small = replace(small, key=f"{uuid.uuid4()}-ledger-23")
        told: list[BlockRow] = []
        found = runner.run([*copies[0], *copies[1], small.task()], progress=told.append)
        assert told == found
        bodies[name] = [completed(objects, tasks, found) for tasks in copies]
        bodies[name].append(objects.get(small.key).body)
        assert bodies[name] == [ledger.object_bytes() for ledger in (*ledgers, small)]
        for kind in (TaskKind.READ_BACK, TaskKind.READ_SOURCE):
            pieces = [
                piece
                for ledger in (*ledgers, small)
                for piece in split_task(ledger.task(kind), bytes_max=BLOCK)
            ]
            found += runner.run(pieces)
        assert not [row.error for row in found if row.error]
        rows[name] = facts(found)
    assert len(rows["local"]) == 3 * (2 * 3 + 1)
    assert rows["local"] == rows["spark"]
    assert bodies["local"] == bodies["spark"]


def test_each_task_runs_once(spark_runner, bookies, objects):
    ledger = ledger_of(bookies, 24, megabytes=20)
    tasks = copy_tasks(objects, ledger)
    rows = spark_runner.run(tasks)
    assert sorted(row.part_number for row in rows) == [block.part_number for block in ledger.blocks]
    assert [batches_from(bookies, block) for block in ledger.blocks] == [1] * len(ledger.blocks)
    assert completed(objects, tasks, rows) == ledger.object_bytes()


def test_a_long_run_tells_how_far_it_is_before_its_end(spark_runner, settings, bookies, objects):
    """A job hands rows over at its end, so a run of more than the cores do at once is several."""
    ledger = ledger_of(bookies, 27, megabytes=30)
    tasks = copy_tasks(objects, ledger)
    assert len(tasks) > 4
    blockwise = replace(settings, offload=replace(settings.offload, task_bytes=BLOCK))
    seen: list[set[int]] = []

    def told(_row: BlockRow) -> None:
        asked = {r.entry_id for r in bookies.reads() if r.opcode == READ_BATCH_OPCODE}
        seen.append({b.part_number for b in ledger.blocks if b.first_entry_id in asked})

    spark_runner.start()  # the process has one session, whoever asks
    with open_spark_runner(blockwise) as runner:
        rows = runner.run(tasks, progress=told)
    parts = {block.part_number for block in ledger.blocks}
    assert {row.part_number for row in rows} == parts
    assert len(seen) == len(parts)
    assert seen[0] < seen[-1] == parts
    assert completed(objects, tasks, rows) == ledger.object_bytes()


def test_a_session_begins_beside_other_work_and_its_failure_is_told_by_start(settings):
    broken = replace(settings, spark=SparkSettings(master="spark://127.0.0.1:1"))
    with open_spark_runner(broken) as runner:
        runner.begin()
        runner.begin()
        with pytest.raises(PrerequisiteError, match="no server listens there"):
            runner.start()


def test_a_failing_ledger_is_a_row_and_its_neighbour_is_done(spark_runner, bookies, objects):
    good, bad = (ledger_of(bookies, number, megabytes=1) for number in (25, 26))
    for sim in bookies.sims.values():
        sim.faults.flipped = {(26, 3)}
    rows = spark_runner.run([bad.task(), good.task()])
    assert {row.ledger_id: row.error_class for row in rows} == {
        25: "",
        26: "EntryUnavailableError",
    }
    assert "ledger 26 entry 3" in next(row.error for row in rows if row.error)
    assert objects.get(good.key).body == good.object_bytes()
    assert objects.head(bad.key) is None


def test_no_tasks_are_no_job(spark_runner):
    assert spark_runner.run([]) == []


def test_a_worker_killed_in_mid_part_is_survived(spark_runner, bookies, objects):
    ledger = ledger_of(bookies, 27, megabytes=12)
    tasks = copy_tasks(objects, ledger)
    for sim in bookies.sims.values():
        sim.faults.delay_s = 0.3
    with ThreadPoolExecutor(1) as background:
        running = background.submit(spark_runner.run, tasks)
        wait_for(lambda: len(bookies.reads()) >= 2, what="tasks that read")
        assert not running.done()
        killed = spark_workers()
        for process in killed:
            process.kill()
        assert killed
        rows = running.result(timeout=120)
    assert not [row.error for row in rows if row.error]
    assert sorted(row.part_number for row in rows) == [block.part_number for block in ledger.blocks]
    again = [batches_from(bookies, block) for block in ledger.blocks]
    assert max(again) > 1, "no task ran again, so nothing was killed in mid-part"
    assert completed(objects, tasks, rows) == ledger.object_bytes()


def test_workers_killed_every_time_are_rows_that_may_be_tried_again(spark_runner, bookies, objects):
    ledger = ledger_of(bookies, 28, megabytes=6)
    tasks = copy_tasks(objects, ledger)
    for sim in bookies.sims.values():
        sim.faults.silent = True
    with ThreadPoolExecutor(1) as background:
        running = background.submit(spark_runner.run, tasks)
        deadline = time.monotonic() + 120
        while not running.done():
            assert time.monotonic() < deadline
            wait_for_retry(running, bookies)
            for process in spark_workers():
                process.kill()
        rows = running.result()
    assert len(rows) == len(tasks)
    assert all("Spark gave the job up" in row.error and row.retryable for row in rows)
    for sim in bookies.sims.values():
        sim.faults.silent = False
    rows = spark_runner.run(tasks)
    assert not [row.error for row in rows if row.error], "the session is of no use any more"
    assert completed(objects, tasks, rows) == ledger.object_bytes()


def test_a_session_of_another_cluster_is_not_taken_for_the_one_of_the_settings(spark_runner):
    with socket.create_server(("127.0.0.1", 0)) as master:  # somebody listens: we get that far
        url = f"spark://127.0.0.1:{master.getsockname()[1]}"
        with (
            pytest.raises(PrerequisiteError, match=rf"{url}, and this process .* at local"),
            spark_session(SparkSettings(master=url)),
        ):
            pass
