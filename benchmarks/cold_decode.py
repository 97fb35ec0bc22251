"""Messages of a block as columns: rows and bytes a second of one core, beside a walk one by one.

    .venv/bin/python -m benchmarks.cold_decode [--times 5] [--accept]

Each figure is the median CPU of some decodings of entries that lie in memory; the ways take
turns. No server is needed. "arrays" is what a process without the library does (resources/native).
"one by one" is the plain decoder, whose rows become columns as well; it takes a part of the
entries. --accept writes benchmarks/results/cold_decode.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.cold_goals import BATCHED, SINGLE
from benchmarks.speed import turns_of_a_loop
from tests.support.cold_entries import CODECS, TIME, entries_of, single
from tests.support.pulsar_entries import EVENT_TIME, MESSAGES_IN_BATCH, UNCOMPRESSED_SIZE, message
from tiering_assets.cold.columns import COLUMNS, schema_of
from tiering_assets.cold.decode import decode_entries
from tiering_assets.cold.plain_rows import as_columns, rows_of_entry

RESULT = Path(__file__).with_name("results") / "cold_decode.json"
NINE: Final = (
    "ledger_id",
    "entry_id",
    "batch_index",
    "publish_time",
    "event_time",
    "producer",
    "sequence_id",
    "key",
    "payload",
)
OF_ENTRIES: Final = ("ledger_id", "entry_id", "batch_index", "publish_time", "producer")
_SHARE: Final = 20  # of the entries is walked one by one


@dataclass(frozen=True)
class Case:
    name: str
    entries: Sequence[bytes]
    columns: Sequence[str]
    unit: str
    goal: float


def cases() -> list[Case]:
    batches = [_batch(500, 100) for _ in range(8)] * 100
    singles = [_single(1024) for _ in range(1000)] * 60
    small = [_single(100) for _ in range(1000)] * 200
    return [
        Case(f"{BATCHED}, nine columns", batches, NINE, "rows_per_s", 1.5e6),
        Case(f"{BATCHED}, all columns", batches, COLUMNS.names, "rows_per_s", 1e6),
        Case(f"{BATCHED}, columns of entries alone", batches, OF_ENTRIES, "rows_per_s", 0),
        Case(f"{SINGLE}, nine columns", singles, NINE, "bytes_per_s", 600e6),
        Case("single messages of 100 B, nine columns", small, NINE, "rows_per_s", 0),
    ]


def _batch(count: int, size: int) -> bytes:
    code, squeeze = CODECS["LZ4"]
    half = size // 2
    body = b"".join(
        single(random.randbytes(half) + b"a" * half, (2, b"key-%d" % (n % 50)), (8, n))
        for n in range(count)
    )
    fields = ((8, code), (UNCOMPRESSED_SIZE, len(body)), (MESSAGES_IN_BATCH, count))
    return message(TIME, *fields, payload=squeeze(body))


def _single(size: int) -> bytes:
    key = (6, b"key-%d" % random.randrange(50))
    return message(TIME, key, (EVENT_TIME, TIME), payload=random.randbytes(size))


def measured(case: Case, times: int) -> dict[str, Any]:
    """Of all ways, in turns."""
    some = case.entries[: max(1, len(case.entries) // _SHARE)]
    whole, part = entries_of(case.entries), sum(map(len, some))

    def walked() -> Any:
        rows = (
            row for n, one in enumerate(some) for row in rows_of_entry(one, ledger_id=7, entry_id=n)
        )
        return as_columns(rows, schema_of(case.columns))

    ours, arrays, plain = [], [], []
    for _ in range(times):
        ours.append(_took(lambda: decode_entries(whole, case.columns)))
        arrays.append(_took(lambda: decode_entries(replace(whole, core=None), case.columns)))
        plain.append(_took(walked))
    size = sum(map(len, case.entries))
    rows, cpu_s = ours[0][0], statistics.median(one for _, one in ours)
    walked_s = statistics.median(one for _, one in plain) / part  # a byte
    found = {"rows_per_s": rows / cpu_s, "bytes_per_s": size / cpu_s}
    return {
        **{name: round(value) for name, value in found.items()},
        "cpu_s_per_gb": round(cpu_s / size * 1e9, 3),
        "arrays_cpu_s_per_gb": round(statistics.median(one for _, one in arrays) / size * 1e9, 3),
        "one_by_one_cpu_s_per_gb": round(walked_s * 1e9, 3),
        "times_as_fast": round(walked_s / (cpu_s / size), 1),
        "goal": {case.unit: case.goal, "met": found[case.unit] >= case.goal} if case.goal else None,
    }


def _took(act: Callable[[], Any]) -> tuple[int, float]:
    began = time.process_time()
    found = act()
    return found.num_rows, time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--accept", action="store_true")
    asked = parser.parse_args()
    random.seed(1)
    found = {}
    for case in cases():
        found[case.name] = measured(case, asked.times)
        sys.stderr.write(f"{case.name}: {json.dumps(found[case.name])}\n")
    document = {
        "schema": "tierkeeper/cold-decode/1",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 2),
            **turns_of_a_loop(),
        },
        "cases": found,
    }
    if asked.accept:
        RESULT.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
