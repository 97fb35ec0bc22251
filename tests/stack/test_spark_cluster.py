"""Spark's workers elsewhere: a standalone master's and a Connect server's, which have only what
their machine gives them. Objects are read back from the store and compared with bytes made another
way.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.support.http_proxy import Do, HttpProxy
from tests.support.sim_ledger import SimBookies, SimLedger
from tests.support.spark_copies import completed, copy_tasks, errors_of, ledger_of, wait_for
from tests.support.spark_driver import SparkDriver
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.spark import bootstrap, build
from tiering_assets.spark.runner import SparkRunner, open_spark_runner
from tiering_assets.spark.session import open_session
from tiering_assets.spark.worker_probes import probe_session
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.worker_rows import WorkerOrder

pytestmark = [pytest.mark.stack, pytest.mark.spark]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bookies():
    with ExitStack() as stack:
        yield SimBookies(stack)


@pytest.fixture
def objects(stack):
    return S3ObjectStore(stack.settings().store)


@pytest.fixture
def settings(stack):
    return stack.settings()


# ----- Spark Connect


def test_connect_with_shipped_code_copies_and_reads_back(connect, bookies, objects):
    ledger = ledger_of(bookies, 31, megabytes=12)
    tasks = copy_tasks(objects, ledger)
    rows = connect.run(tasks)
    assert errors_of(rows) == {("", False, "")}
    assert completed(objects, tasks, rows) == ledger.object_bytes()
    back = connect.run([ledger.task(TaskKind.READ_BACK)])
    assert {(row.part_number, row.sha256, row.entries_sha256) for row in back} == {
        (row.part_number, row.sha256, row.entries_sha256) for row in rows
    }


@pytest.mark.parametrize("carried", [True, False], ids=["with the library", "without it"])
def test_shipped_code_has_the_library_and_does_the_same_without_it(
    settings, remote_spark, bookies, objects, monkeypatch, carried
):
    """Workers that have nothing of ours but the zip."""
    if not carried:
        monkeypatch.setattr(build, "_libraries", lambda: ())
    build.shipped_zip.cache_clear()
    ledger = ledger_of(bookies, 34 + carried, megabytes=6)
    spark = SparkSettings(master=remote_spark.connect, code="ship")
    ours = replace(settings, spark=spark)
    try:
        with open_session(ours) as session:
            answers = probe_session(session, ours, WorkerOrder(bookies={}, upload_prefix="probe/"))
            tasks = copy_tasks(objects, ledger)
            rows = SparkRunner(lambda: session, ours).run(tasks)
    finally:
        build.shipped_zip.cache_clear()
    loops = {row.software.loop for row in answers.rows if row.software}
    native, python = answers.driver.loop, "Python's: no library was built with this code"
    assert loops == {native if carried else python}
    assert native.startswith("native: core-")
    assert errors_of(rows) == {("", False, "")}
    assert completed(objects, tasks, rows) == ledger.object_bytes()


def test_workers_without_our_code_are_named_in_every_row(settings, remote_spark, bookies):
    ledgers = [SimLedger.store(bookies, n, [b"x"], block_bytes=4096) for n in (32, 33)]
    spark = SparkSettings(master=remote_spark.connect, code="installed")
    with open_spark_runner(replace(settings, spark=spark)) as runner:
        rows = runner.run([ledger.task() for ledger in ledgers])
    assert sorted(row.ledger_id for row in rows) == [32, 33]
    for kind, retryable, message in errors_of(rows):
        assert (kind, retryable) == ("PrerequisiteError", False)
        assert "has no code of tierkeeper" in message
        assert build.build_hash() in message
        assert "set spark.code = ship" in message


def test_a_driver_of_another_build_or_python_is_named_with_both_values(
    connect, bookies, monkeypatch
):
    task = SimLedger.store(bookies, 34, [b"x"], block_bytes=4096).task()
    ours = build.build_hash()
    monkeypatch.setattr(build, "build_hash", lambda: "0123456789abcdef")
    [(kind, retryable, message)] = errors_of(connect.run([task]))
    assert (kind, retryable) == ("PrerequisiteError", False)
    assert f"has build {ours} of tierkeeper, the driver 0123456789abcdef" in message
    monkeypatch.undo()
    checked = bootstrap.checked

    def as_if_older(*args, **kwargs):
        function = checked(*args, **kwargs)
        assert isinstance(function, partial)
        function.keywords["expected"]["python"] = "3.10"
        return function

    monkeypatch.setattr("tiering_assets.spark.runner.checked", as_if_older)
    [(kind, retryable, message)] = errors_of(connect.run([task]))
    assert (kind, retryable) == ("PrerequisiteError", False)
    assert f"has Python {bootstrap.python_minor()}" in message
    assert "the driver 3.10" in message


@pytest.mark.timeout(900)
def test_a_slow_task_runs_twice_under_speculation_and_the_object_is_right(
    connect, settings, bookies, objects, remote_spark
):
    """Both send the part; the store has one of each number, whoever was first.

    Whether a task is slow is Spark's to say: beside tasks whose workers had to start, none may be.
    """
    twice = (
        sent_beside_a_slow_task(number, settings, bookies, objects, remote_spark) > 1
        for number in range(3)
    )
    assert any(twice), "nothing was speculated on"


def sent_beside_a_slow_task(number, settings, bookies, objects, remote_spark):
    """How often the part of a task was sent whose first sending takes a minute."""
    ledger = ledger_of(bookies, 350 + number, megabytes=18)
    tasks = copy_tasks(objects, ledger)
    assert len(tasks) == 4
    sent: list[int] = []

    def rule(method, path):
        part = path.partition("partNumber=")[2].partition("&")[0]
        if method != "PUT" or not part:
            return Do.PASS
        sent.append(int(part))
        return Do.STALL if part == "4" and sent.count(4) == 1 else Do.PASS

    with HttpProxy(settings.store.endpoint, rule, stall_s=60.0) as proxy:
        slow = replace(
            settings,
            # Longer than the stall: a second part is another task's, not the client's own retry.
            store=replace(settings.store, endpoint=proxy.url, read_timeout_s=300.0),
            offload=replace(settings.offload, task_bytes=1),  # a Spark task each
            spark=SparkSettings(master=remote_spark.connect, code="ship"),
        )
        with open_spark_runner(slow) as runner:
            rows = runner.run(tasks)
    assert errors_of(rows) == {("", False, "")}
    assert sorted(row.part_number for row in rows) == [1, 2, 3, 4]
    assert len(sent) - len(rows) <= 2  # of the parts that two tasks could have on their way
    assert completed(objects, tasks, rows) == ledger.object_bytes()
    return sent.count(4)


# ----- a standalone master


def test_standalone_survives_an_executor_killed_in_mid_part(
    settings, remote_spark, bookies, objects
):
    ledger = ledger_of(bookies, 36, megabytes=12)
    tasks = copy_tasks(objects, ledger)
    for sim in bookies.sims.values():
        sim.faults.delay_s = 0.3
    spark = SparkSettings(master=remote_spark.master, code="ship", executor_memory="512m")
    began = time.time()
    driver = SparkDriver(replace(settings, spark=spark), tasks)
    with ThreadPoolExecutor(1) as background:
        running = background.submit(driver.rows)
        wait_for(
            lambda: len(bookies.reads()) >= 2 or running.done(),
            what="tasks that read",
            seconds=400.0,
        )
        assert not running.done()
        [killed, *_] = remote_spark.executors(since=began)
        killed.kill()
        rows = running.result()
    assert errors_of(rows) == {("", False, "")}
    assert completed(objects, tasks, rows) == ledger.object_bytes()


def test_a_master_whose_workers_have_too_little_to_give_is_told(settings, remote_spark, bookies):
    """As with no workers at all, Spark itself would wait for ever."""
    task = SimLedger.store(bookies, 38, [b"x"], block_bytes=4096).task()
    spark = SparkSettings(
        master=remote_spark.master, code="ship", executor_memory="64g", start_timeout_s=3.0
    )
    driver = SparkDriver(replace(settings, spark=spark), [task])
    with pytest.raises(RuntimeError, match=r"no executor within 3 s .*64g free"):
        driver.rows()


@pytest.mark.parametrize(
    "python",
    [
        "stale_python",
        pytest.param(
            "older_python",
            marks=pytest.mark.prove(
                instead="tests/stack/test_spark_cluster.py::"
                "test_a_driver_of_another_build_or_python_is_named_with_both_values"
            ),
        ),
    ],
)
def test_standalone_workers_of_another_build_or_python_are_named(
    settings, remote_spark, bookies, python
):
    task = SimLedger.store(bookies, 37, [b"x"], block_bytes=4096).task()
    spark = SparkSettings(
        master=remote_spark.master, python=getattr(remote_spark, python), executor_memory="512m"
    )
    [(kind, retryable, message)] = errors_of(
        SparkDriver(replace(settings, spark=spark), [task]).rows()
    )
    assert (kind, retryable) == ("PrerequisiteError", False), message
    if python == "older_python":
        assert f"have Python 3.10, the driver {bootstrap.python_minor()}" in message
    else:
        assert "has build" in message
        assert f"the driver {build.build_hash()}" in message
