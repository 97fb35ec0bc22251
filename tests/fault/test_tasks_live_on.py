"""Tasks that nobody waits for any more: they send parts late, twice, or of an attempt that has an
heir.
"""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.support.dagster_job import OffloadJob
from tests.support.fault_lab import YOUNGEST_S
from tests.support.http_proxy import Do, HttpProxy
from tests.support.tiered_cluster import wait_until
from tiering_assets.batch import pipeline
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.resources.spark_session import interrupt_run
from tiering_assets.spark.runner import open_spark_runner
from tiering_assets.tasks.runner import LocalRunner

pytestmark = [pytest.mark.stack, pytest.mark.fault]

BLOCKS = 2


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("live-on")


def part_of(method, path):
    """Number of the part that this request sends, else None."""
    number = parse_qs(urlsplit(path).query).get("partNumber")
    return int(number[0]) if method == "PUT" and number else None


def completes(method, path):
    return method == "POST" and "uploadId=" in path


def publish(lab, topic):
    """Publish what is proven by now, at the store's own address, which is the broker's, too."""
    with lab.open(lab.with_section("publish", confirm_timeout_s=60.0)) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert (outcome.state, outcome.error) == ("published", None)
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


class Zombies:
    """Holds the first parts that are sent, and lets them through when the upload is completed."""

    def __init__(self, count):
        self.count, self.sent = count, []
        self._over = threading.Event()
        self._passed = threading.Semaphore(0)

    def __call__(self, method, path):
        number = part_of(method, path)
        if number is not None:
            self.sent.append(number)
            if len(self.sent) <= self.count:
                self._over.wait(300)
                self._passed.release()
        elif completes(method, path) and not self._over.is_set():
            self._over.set()
            for _ in range(self.count):
                self._passed.acquire(timeout=30)
        return Do.PASS

    @property
    def held(self):
        return not self._over.is_set() and len(self.sent) >= self.count


@pytest.mark.spark
@pytest.mark.prove(
    instead="tests/fault/test_tasks_live_on.py::"
    "test_a_part_that_arrives_just_before_complete_never_reaches_a_reader"
)
def test_a_dead_runs_tasks_are_interrupted_and_its_last_parts_harm_nothing(
    lab, remote_spark, monkeypatch, tmp_path
):
    """A run of Dagster: both workers are busy with its parts, which arrive just before Complete."""
    namespace = lab.namespace("dead-run")
    topic = lab.multi_block_topic(namespace)
    zombies = Zombies(BLOCKS)
    with HttpProxy(lab.settings.store.endpoint, zombies) as proxy:
        lab.read_from(namespace, proxy.url)  # or nothing would be copied for it
        settings = replace(
            lab.settings,
            store=replace(lab.settings.store, endpoint=proxy.url, read_timeout_s=300.0),
            offload=replace(lab.settings.offload, claim_ttl_s=YOUNGEST_S, task_bytes=1),
            spark=SparkSettings(master=remote_spark.connect, code="ship"),
        )
        by_spark = replace(settings, dagster=replace(settings.dagster, runner="spark"))
        job = OffloadJob(tmp_path, by_spark, [topic.ledger_id])
        dead = job.start()
        try:
            wait_until(lambda: zombies.held or dead.poll() is not None, "parts", timeout_s=300)
            assert dead.poll() is None, job.said(3000)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(dead.pid, signal.SIGKILL)
            dead.wait()
        interrupted = []
        monkeypatch.setattr(
            "tiering_assets.spark.runner.interrupt_run",
            lambda *args: interrupted.append(interrupt_run(*args)),
        )
        with (
            open_spark_runner(settings, run_id="heir") as runner,
            lab.open(settings, runner=runner, run_id="heir") as stack,
        ):
            lab.older(stack)
            [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
            assert (outcome.state, outcome.error) == ("verified", None)
            assert sum(interrupted) >= 1, "the dead run's operations were not reached"
            assert outcome.parts_sent == BLOCKS
            assert len(zombies.sent) == 2 * BLOCKS
    lab.read_from(namespace, lab.settings.store.endpoint)
    publish(lab, topic)


class Remembering(LocalRunner):
    """A runner whose tasks may be run again."""

    def __init__(self, settings):
        super().__init__(settings)
        self.tasks = []

    def run(self, tasks, *, progress=None):
        self.tasks += tasks
        return super().run(tasks, progress=progress)


@pytest.mark.parametrize("bytes_of", ["the same task", "somebody else"])
def test_a_part_that_arrives_just_before_complete_never_reaches_a_reader(lab, namespace, bytes_of):
    topic = lab.multi_block_topic(namespace)
    direct = S3ObjectStore(lab.settings.store)
    struck: list[str] = []

    def rule(method, path):
        if completes(method, path) and not struck:
            struck.append(path)
            if bytes_of == "the same task":
                assert {row.error for row in LocalRunner(lab.settings).run(runner.tasks)} == {""}
            else:
                parts = urlsplit(path)
                key = unquote(parts.path).removeprefix(f"/{lab.settings.store.bucket}/")
                junk = bytes(5 * 1024 * 1024)
                direct.upload_part(
                    key,
                    parse_qs(parts.query)["uploadId"][0],
                    part_number=1,
                    body=junk,
                    sha256=sha256(junk).digest(),
                )
        return Do.PASS

    with HttpProxy(lab.settings.store.endpoint, rule) as proxy:
        settings = lab.with_section("store", endpoint=proxy.url, read_timeout_s=60.0)
        runner = Remembering(settings)
        with lab.open(settings, runner=runner) as stack:
            [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
            assert struck
            if bytes_of == "the same task" or outcome.error is None:
                assert (outcome.state, outcome.error) == ("verified", None)  # by the right part
            else:
                assert outcome.certificate is None
    publish(lab, topic)


def test_two_runs_at_once_publish_once_and_a_claim_saves_the_second_copy(
    lab, namespace, monkeypatch
):
    """With claims one of them copies; without, both may, or go on with the same attempt."""
    claimed, free = lab.multi_block_topic(namespace), lab.multi_block_topic(namespace)

    def at_once(topic):
        start = threading.Barrier(2)

        def one(stack):
            start.wait(60)
            return offload_batch(stack, [topic.ledger_id], publish=False)[0]

        with lab.open() as first, lab.open() as second, ThreadPoolExecutor(2) as threads:
            outcomes = [*threads.map(one, (first, second))]
        publish(lab, topic)
        return sum(outcome.parts_sent for outcome in outcomes)

    assert at_once(claimed) == BLOCKS
    monkeypatch.setattr(pipeline, "claim_ledger", lambda _stack, _ledger_id: None)
    assert BLOCKS <= at_once(free) <= 2 * BLOCKS
