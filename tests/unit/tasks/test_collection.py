"""Block loops run without the cyclic collector, and memory stays within what docs/spark.md
states.
"""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.made_ledger import MadeLedger, MadeWorker
from tiering_assets.offload_format.decoder import BlockWalker
from tiering_assets.resources.errors import BookieNotAuthorizedError, FormatError
from tiering_assets.resources.spark_master import MIB, memory_overhead_mib
from tiering_assets.tasks import read_back
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.worker import run_task

ROOT = Path(__file__).parents[3]
LEDGER = MadeLedger(entries=3000, size=1000, block_bytes=MIB)


class Watched(MadeWorker):
    """Notes whether the collector is on whenever the loop asks for more, or begins to decode."""

    def __init__(self, *, fail=False):
        super().__init__(LEDGER)
        self.seen: list[bool] = []
        give = self.bookie.receive_batch

        def receive_batch(request):
            self.seen.append(gc.isenabled())
            if fail:
                raise BookieNotAuthorizedError("wrong password")
            return give(request)

        class Walker(BlockWalker):
            def feed(walker, chunk):  # noqa: N805 - self is the worker
                self.seen.append(gc.isenabled())
                if fail:
                    raise FormatError("no such block")
                return super().feed(chunk)

        self.bookie.receive_batch = receive_batch  # type: ignore[method-assign]
        self.core = None
        self.walker = Walker


@pytest.mark.parametrize("kind", TaskKind)
def test_the_collector_is_off_in_a_block_and_on_between_blocks(kind, monkeypatch):
    assert gc.isenabled()
    with Watched() as worker:
        monkeypatch.setattr(read_back, "BlockWalker", worker.walker)
        for row in run_task(LEDGER.task(kind), worker):
            assert not row.error
            assert gc.isenabled()
    assert len(worker.seen) >= len(LEDGER.blocks) > 2
    assert not any(worker.seen)


@pytest.mark.parametrize("kind", TaskKind)
def test_a_block_that_fails_leaves_the_collector_on(kind, monkeypatch):
    with Watched(fail=True) as worker:
        monkeypatch.setattr(read_back, "BlockWalker", worker.walker)
        rows = list(run_task(LEDGER.task(kind), worker))
    assert rows[-1].error
    assert worker.seen
    assert not any(worker.seen)
    assert gc.isenabled()


def test_the_bound_of_the_page_is_the_one_that_is_computed():
    page = (ROOT / "docs" / "spark.md").read_text()
    stated = re.search(r"blocks of (\d+) MiB that is (\d+) MiB a core", page)
    assert stated is not None
    assert memory_overhead_mib(block_bytes=int(stated[1]) * MIB, cores=1) == int(stated[2])


@pytest.mark.parametrize(
    ("mib", "block_mib"), [(64, 5), (256, 16), pytest.param(2048, 64, marks=pytest.mark.slow)]
)
def test_a_worker_needs_no_more_memory_than_stated_however_much_it_reads(mib, block_mib):
    command = ["-m", "tests.support.worker_memory", "--mib", str(mib), "--block-mib"]
    done = subprocess.run(
        [sys.executable, *command, str(block_mib), "--entry-bytes", "1024"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["blocks"] > mib // block_mib
    assert said["peak_bytes"] <= MIB * memory_overhead_mib(block_bytes=block_mib * MIB, cores=1)
    assert said["peak_bytes"] <= 3 * block_mib * MIB + 150_000_000
