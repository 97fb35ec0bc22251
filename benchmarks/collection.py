"""What an entry costs a worker, cyclic collections included: microseconds of CPU, nothing sent.

    .venv/bin/python -m benchmarks.collection [--entries 500000] [--size 100]

Whole tasks run over a ledger that is made as it is read; the making is not counted, nor is the
uploader's thread. Twice: in a process as lean as a Spark worker, and in one that has loaded Great
Expectations, as a run that copies, reads back and judges in one process has.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

from tests.support.made_ledger import MadeLedger, MadeWorker
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.worker import run_task

NAMES = {
    TaskKind.COPY: "copy",
    TaskKind.READ_SOURCE: "verify: bookies again",
    TaskKind.READ_BACK: "verify: read back",
}


def spent_us(ledger: MadeLedger, kind: TaskKind) -> float:
    """Microseconds an entry of one task."""
    with MadeWorker(ledger) as worker:
        began = time.thread_time()
        rows = list(run_task(ledger.task(kind), worker))
        spent = time.thread_time() - began - worker.made_s
    if failed := [row.error for row in rows if row.error]:
        raise SystemExit(failed[0])
    return 1e6 * spent / ledger.entries


def here(ledger: MadeLedger, rounds: int, *, judge: bool) -> dict[str, float]:
    """Medians of this process."""
    if judge:
        from tiering_assets.quality.expectations_run import _batch_definition

        _batch_definition()
    tries = [{name: spent_us(ledger, kind) for kind, name in NAMES.items()} for _ in range(rounds)]
    return {name: round(statistics.median(t[name] for t in tries), 2) for name in NAMES.values()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--entries", type=int, default=500_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--process", choices=("worker", "run"), help="only this, as JSON")
    options = parser.parse_args()
    if options.process:
        ledger = MadeLedger(options.entries, options.size, block_bytes=64 * 1024 * 1024)
        print(json.dumps(here(ledger, options.rounds, judge=options.process == "run")))
        return
    for process in ("worker", "run"):
        again = [sys.executable, "-m", "benchmarks.collection", *sys.argv[1:]]
        done = subprocess.run([*again, "--process", process], capture_output=True, check=True)
        said = "  ".join(f"{name} {us}" for name, us in json.loads(done.stdout).items())
        print(f"{process:7} us per entry of {options.size} B: {said}", flush=True)


if __name__ == "__main__":
    main()
