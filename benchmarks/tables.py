"""What printing a table costs: CPU and wall seconds of rows that are in memory, by where they go.

    .venv/bin/python -m benchmarks.tables [--rows 1000 100000] [--times 3] [--accept]

The rows are those of `ledger list`. Each case is the median of some prints: into a pipe that
another process empties, and to a terminal of 100 columns, which shows 200 rows and counts the rest.
--accept writes benchmarks/results/tables.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tiering_assets.cli.shared.output import print_table
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.cli.terminal.screen import Screen, printing_on
from tiering_assets.look.ledger.states import LedgerState

RESULT = Path(__file__).with_name("results") / "tables.json"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = (
    Column("LEDGER", ValueKind.ID),
    Column("STATE", ValueKind.STATE),
    Column("ENTRIES", ValueKind.NUMBER),
    Column("SIZE", ValueKind.SIZE),
    Column("CLOSED", ValueKind.TIME),
    Column("BY"),
    Column("TOPIC", ValueKind.TOPIC),
)
SCREENS = {
    "pipe": Screen(),
    "terminal": Screen(width=100, now=NOW),
    "terminal with colour": Screen(width=100, colour=True, now=NOW),
}


def made(rows: int) -> list[tuple[object, ...]]:
    states = [*LedgerState]
    return [
        (
            4_000_000 + i,
            states[i % len(states)],
            50_000 + i,
            1_000_003 * (i % 999),
            NOW - timedelta(minutes=i),
            ("tierkeeper", "broker", None)[i % 3],
            f"persistent://tenant-{i % 7}/namespace-{i % 31}/orders-of-customers-partition-{i % 64}",
        )
        for i in range(rows)
    ]


@contextmanager
def read_by_another() -> Iterator[None]:
    """Standard output is a pipe to a process that reads all of it."""
    sys.stdout.flush()
    kept = os.dup(1)
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader:
        assert reader.stdin is not None
        os.dup2(reader.stdin.fileno(), 1)
        reader.stdin.close()
        try:
            yield
            sys.stdout.flush()
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def seconds(rows: list[tuple[object, ...]], screen: Screen) -> tuple[float, float]:
    """CPU and wall seconds until the last byte is on its way."""
    with read_by_another(), printing_on(screen):
        began, used = time.monotonic(), time.process_time()
        print_table(COLUMNS, rows)
        sys.stdout.flush()
        return time.process_time() - used, time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--accept", action="store_true")
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    for count in asked.rows:
        rows = made(count)
        for name, screen in SCREENS.items():
            seconds(rows[:1], screen)  # imports
            took = [seconds(rows, screen) for _ in range(asked.times)]
            cpu, wall = (statistics.median(column) for column in zip(*took, strict=True))
            found[f"{count} rows, {name}"] = {"cpu_s": round(cpu, 4), "wall_s": round(wall, 4)}
            sys.stderr.write(f"{count} rows, {name}: {cpu:.3f} s of CPU, {wall:.3f} s\n")
    if asked.accept:
        document = {
            "schema": "tierkeeper/tables/1",
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "cores": os.cpu_count(),
            "python": sys.version.split()[0],
            "prints": found,
        }
        RESULT.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
