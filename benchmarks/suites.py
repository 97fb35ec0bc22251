"""What a validation costs: CPU seconds by suite, ledgers and what is wrong. No server is needed.

    .venv/bin/python -m benchmarks.suites [--times 5] [--accept]

Each warm case is the median of some validations; cold is the first of a process, imports included.
"before" is the library by its public door alone, which is also who names what is wrong. The facts
are a golden ledger of four blocks, under as many ids as there are ledgers. --accept writes
benchmarks/results/suites.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.support.golden_objects import golden_ledger
from tests.support.index_damage import DAMAGES
from tests.support.index_facts import golden_index_facts
from tests.support.ledger_facts import SOUND
from tiering_assets.quality import expectations_run
from tiering_assets.quality.ledger_suites import validate_ledgers
from tiering_assets.quality.suites import validate_indexes

RESULT = Path(__file__).with_name("results") / "suites.json"
COUNTS = (1, 100, 1_000)
TOPICS = 20  # of one ledger each, released by one run

FACTS = golden_index_facts(golden_ledger("multi-block", 20))
COLD = """
import time
from benchmarks.suites import expectations_run, cases, library_alone
imported = time.process_time()
with library_alone({alone}):
    cases(1)["index suite, 1"]()
print(time.process_time() - imported)
"""


def cases(count: int) -> dict[str, Callable[[], object]]:
    """A release validates both: what was read of objects, and what records and lists say."""
    facts = [replace(FACTS, ledger_id=n) for n in range(count)]
    bad = [*facts[1:], replace(dict(DAMAGES)["block_offset"](FACTS), ledger_id=0)]
    rows = [SOUND.row(n) for n in range(1, count + 1)]
    return {
        f"index suite, {count}": lambda: validate_indexes(facts),
        f"index suite, {count}, one of them wrong": lambda: validate_indexes(bad),
        f"coverage and certificate suites, {count}": lambda: validate_ledgers(rows),
    }


def release_cases() -> dict[str, Callable[[], object]]:
    facts = [replace(FACTS, ledger_id=n) for n in range(1, TOPICS + 1)]
    rows = [SOUND.row(n) for n in range(1, TOPICS + 1)]

    def topic_by_topic() -> None:
        for one, row in zip(facts, rows, strict=True):
            validate_indexes([one])
            validate_ledgers([row])

    def together() -> None:
        validate_indexes(facts)
        validate_ledgers(rows)

    return {
        f"a release of {TOPICS} topics, one validation a topic": topic_by_topic,
        f"a release of {TOPICS} topics, one validation for all": together,
    }


@contextmanager
def library_alone(alone: bool = True) -> Iterator[None]:
    """Without the first look."""
    kept = expectations_run._kept
    if alone:
        expectations_run._kept = lambda *_args: None
    try:
        yield
    finally:
        expectations_run._kept = kept


def warm(case: Callable[[], object], times: int) -> float:
    """Median CPU seconds."""
    case()
    took = []
    for _ in range(times):
        began = time.process_time()
        case()
        took.append(time.process_time() - began)
    return statistics.median(took)


def cold(times: int, *, alone: bool) -> float:
    """Median CPU seconds of the first validation of a process."""
    code = COLD.format(alone=alone)
    took = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(times)
    ]
    return statistics.median(took)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--accept", action="store_true")
    asked = parser.parse_args()
    found: dict[str, dict[str, float]] = {}

    def tell(name: str, before: float, after: float) -> None:
        found[name] = {"before_cpu_s": round(before, 4), "after_cpu_s": round(after, 4)}
        sys.stderr.write(f"{name}: {before:.4f} -> {after:.4f} s of CPU\n")

    name = "the first of a process: index suite, 1, imports included"
    tell(name, cold(asked.times, alone=True), cold(asked.times, alone=False))
    every = {k: v for count in COUNTS for k, v in cases(count).items()} | release_cases()
    for name, case in every.items():
        with library_alone():
            before = warm(case, asked.times)
        tell(name, before, warm(case, asked.times))
    if asked.accept:
        document = {
            "schema": "tierkeeper/suites/1",
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "cores": os.cpu_count(),
            "python": sys.version.split()[0],
            "validations": found,
        }
        RESULT.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
