"""Run a worker's three tasks over a ledger of some MiB, and print the most memory the process ever
had.

    python -m tests.support.worker_memory --mib 2048 --block-mib 64

Entries are small, so that there are many of them at once. Run it in a process of its own: the
figure is the kernel's for the whole process (VmHWM). What a Spark worker imports is imported first.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyspark.worker  # noqa: F401  a part of every Spark worker

from tests.support.made_ledger import MadeLedger, MadeWorker
from tiering_assets.resources.garbage import freeze_once
from tiering_assets.spark.schemas import rows_to_arrow
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.worker import run_task

MIB = 1024 * 1024


def peak_bytes() -> int:
    """The most resident memory that this process ever had."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, required=True)
    parser.add_argument("--block-mib", type=int, required=True)
    parser.add_argument("--entry-bytes", type=int, default=512)
    asked = parser.parse_args()
    ledger = MadeLedger(
        entries=asked.mib * MIB // asked.entry_bytes,
        size=asked.entry_bytes,
        block_bytes=asked.block_mib * MIB,
    )
    freeze_once("worker")
    started, entries, digests, batches = peak_bytes(), 0, set(), list[pa.RecordBatch]()
    with MadeWorker(ledger) as worker:
        for kind in (TaskKind.COPY, TaskKind.READ_SOURCE, TaskKind.READ_BACK):
            rows = list(run_task(ledger.task(kind), worker))
            if failed := [row.error for row in rows if row.error]:
                raise SystemExit(f"{kind.name}: {failed[0]}")
            entries += sum(row.entries for row in rows)
            digests |= {(row.part_number, row.entries_sha256) for row in rows}
            batches.append(rows_to_arrow(rows))
    if len(digests) != len(ledger.blocks) or entries != 3 * ledger.entries:
        raise SystemExit("the three tasks did not see the same entries")
    said = {"peak_bytes": peak_bytes(), "started_bytes": started, "blocks": len(ledger.blocks)}
    sys.stdout.write(json.dumps(said) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
