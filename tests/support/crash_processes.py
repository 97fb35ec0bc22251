"""One kill per process kind, where Dagster orchestrates and Spark copies.

Owns: each process dies in the middle of a part (the proxy holds the first one while it is killed),
or in the run worker between two steps of the publication; the same job, run again, must come to the
same end as after any other kill. The broker and the audit are those of crash_matrix.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import psutil

from tests.support.crash_audit import at_once
from tests.support.crash_matrix import RUNS_MAX, Result, finish, readable
from tests.support.crash_scene import Scene, Shop
from tests.support.dagster_job import OffloadJob

SPARK_WORKER = "process: Spark's Python worker"
SPARK_JVM = "process: Spark's JVM"
DRIVER = "process: driver of the job"
RUN_WORKER = "process: Dagster's run worker"
KINDS = (SPARK_WORKER, SPARK_JVM, DRIVER, RUN_WORKER)
IN_FLIGHT = 2  # Spark's local master has two cores, and each has a block on the way
_TIMEOUT_S = 240.0
# What a run launcher does: make a run, and become the worker that executes it.
_LAUNCH = """
import json, os, sys
import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._grpc.types import ExecuteRunArgs
repository = ReconstructableRepository.for_module("tiering_assets.definitions", "defs")
job = repository.get_reconstructable_job("offload")
instance = dg.DagsterInstance.get()
run = instance.create_run_for_job(
    job.get_definition(), run_config=json.loads(sys.argv[1]), job_code_origin=job.get_python_origin()
)
worker = ExecuteRunArgs(job.get_python_origin(), run.run_id, instance.get_ref(), True)
command = worker.get_command_args()  # dagster api execute_run …
os.execv(sys.executable, [sys.executable, "-m", *command[command.index("dagster") :]])
"""


def run_kind(shop: Shop, kind: str) -> Result:
    """Kill one process of a job that offloads a topic; run the job again; audit."""
    began = time.monotonic()
    result = Result(point=kind, case=kind)
    try:
        result.anomalies += _run(shop, kind, result)
    except Exception as error:  # noqa: BLE001  one kind's trouble is its own
        result.anomalies.append(f"{type(error).__name__}: {error}")
    finally:
        shop.work.on_part = lambda: None
    result.seconds = round(time.monotonic() - began, 1)
    return result


def _run(shop: Shop, kind: str, result: Result) -> Iterator[str]:
    work = shop.work
    subject = work.multi_block()
    scene = Scene(
        subject=subject, step="offload", arguments={}, settings=work.settings, sends=subject.blocks
    )
    job = _Job(shop, scene)
    point = "publish.context_set" if kind == RUN_WORKER else ""
    process = job.start(crash_at=point)
    if not point:
        work.on_part = lambda: job.kill(kind, process, result)
    ended = job.wait(process)
    work.on_part = lambda: None
    if point:
        result.kills = int(ended == -signal.SIGKILL)
    if not result.kills:
        yield f"not reached: the job ended with {ended}: {job.said()}"
        return
    with work.open() as stack:
        yield from at_once(stack, scene)
        yield from readable(work.lab, subject, reloaded=False)
        for _ in range(RUNS_MAX):
            work.lab.older(stack)  # the dead process's claim has run out
            if ended == 0 or (ended := job.wait(job.start())) == 0:
                break
        else:
            yield f"I12: the job, run again {RUNS_MAX} times, ends with {ended}: {job.said()}"
        result.parts_resent = max(0, work.sent(subject) - subject.blocks)
        if result.parts_resent > IN_FLIGHT:
            yield f"{result.parts_resent} blocks were sent again, {IN_FLIGHT} were on the way"
        yield from finish(work.lab, stack, scene)


class _Job:
    """Dagster's offload job of one ledger, each run a process group of its own."""

    def __init__(self, shop: Shop, scene: Scene) -> None:
        home = shop.directory / f"dagster-{scene.subject.topic.ledger_id}"
        home.mkdir()
        settings = replace(scene.settings, offload=replace(scene.settings.offload, task_bytes=1))
        self._job = OffloadJob(home, settings, scene.subject.ledger_ids)

    def start(self, *, crash_at: str = "") -> subprocess.Popen[bytes]:
        worker = [sys.executable, "-c", _LAUNCH, self._job.config] if crash_at else ()
        return self._job.start(worker, TIERKEEPER_CRASH_AT=crash_at)

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """How the run ended; what it left behind of its own group is ended, too."""
        try:
            return process.wait(_TIMEOUT_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def kill(self, kind: str, process: subprocess.Popen[bytes], result: Result) -> None:
        """Kill the process of this kind, once."""
        if result.kills:
            return
        below = psutil.Process(process.pid).children(recursive=True)
        if kind == SPARK_WORKER:
            found = [p for p in below if _is_worker(p)]
        elif kind == SPARK_JVM:
            found = [p for p in below if p.name() == "java"]
        else:
            found = [psutil.Process(process.pid)]
        for one in found:
            one.kill()
        result.kills = min(1, len(found))

    def said(self) -> str:
        return self._job.said(800)


def _is_worker(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        parent = process.parent()
        return parent is not None and "pyspark.daemon" in parent.cmdline()
    return False
