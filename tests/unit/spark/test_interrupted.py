"""A connection to the JVM that Ctrl-C broke: each later use of it fails by words of its own."""

from __future__ import annotations

import threading

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from tests.support.made_ledger import MadeLedger
from tiering_assets.resources import ending
from tiering_assets.resources.settings import Settings
from tiering_assets.spark.runner import SparkRunner
from tiering_assets.spark.worker_probes import probe_session
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.worker_rows import WorkerOrder


class BrokenSession:
    """No connection outlives the interrupt, so whatever is asked of it fails."""

    def __init__(self):
        self.asked = []

    def addTag(self, tag):  # noqa: N802
        """Before the interrupt."""

    def __getattr__(self, name):
        def fail(*_values):
            self.asked.append(name)
            raise Py4JNetworkError("Answer from Java side is empty")

        return fail


@pytest.fixture
def asked(monkeypatch):
    flag = threading.Event()
    monkeypatch.setattr(ending, "_asked", flag)
    return flag


@pytest.fixture
def session():
    return BrokenSession()


@pytest.fixture
def run(session):
    tasks = [MadeLedger(entries=1, size=256, block_bytes=4096).task(TaskKind.COPY)]
    return lambda: SparkRunner(lambda: session, Settings()).run(tasks)


def test_a_run_that_was_asked_to_end_is_interrupted_and_no_lost_job(asked, session, run):
    asked.set()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert session.asked == ["createDataFrame", "interruptTag", "removeTag"]


def test_a_job_that_is_lost_by_itself_is_a_failure_that_may_be_tried_again(asked, session, run):
    [row] = run()
    assert (row.retryable, "Answer from Java side is empty" in row.error) == (True, True)
    assert "interruptTag" not in session.asked


def test_a_probe_that_was_asked_to_end_is_interrupted(asked, session):
    asked.set()
    with pytest.raises(KeyboardInterrupt):
        probe_session(session, Settings(), WorkerOrder(bookies={}, upload_prefix="probe/"))
