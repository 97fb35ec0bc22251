"""What a worker's tasks cost, without servers, against the accepted figures: `make bench-check`.

    python -m benchmarks.check [--accept]

Fixed work: a made ledger for each size of entries is copied, read from its bookies again, and read
back, by either loop over entries. A figure is CPU time over that of a yardstick: the same bytes
copied into fresh memory, digested and hashed by plain library calls, whole (native) or entry by
entry (python). The two take turns, so that other work on the machine slows both; medians of some
turns. Exits with 1 where one is more than 15 % above benchmarks/results/check.json, again and
again. What is as much below is told: it is to be accepted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from math import inf
from pathlib import Path
from statistics import median

from google_crc32c import value

from tests.support.made_ledger import MadeLedger, MadeWorker
from tiering_assets.resources.native.loader import this_loop
from tiering_assets.resources.spark_master import MIB
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.worker import run_task

RESULTS = Path(__file__).parent / "results" / "check.json"
SIZES = (100, 1024, 10 * 1024, 100 * 1024)
WORK = {"native": 32 * MIB, "python": 8 * MIB}  # bytes of each task
TURNS = 9
BLOCK = 8 * MIB
BATCH = 1 * MIB
OFF_MAX = 0.15
ROUNDS = 6


def yardstick_s(ledger: MadeLedger, *, native: bool) -> float:
    """CPU seconds for a GB of plain library calls, which do no more than must be done."""
    size, entries = ledger.size, ledger.entries
    if native:  # as many bytes a time as fit a batch
        size, entries = BATCH, max(1, size * entries // BATCH)
    source = memoryview(bytearray(size))
    began = time.process_time()
    room = memoryview(bytearray(min(BLOCK, size * entries)))
    whole = sha256()
    for i in range(entries):
        at = (i * size) % max(1, len(room) - size + 1)
        room[at : at + size] = source
        value(bytes(source))
        whole.update(source)
    return (time.process_time() - began) / (size * entries) * 1e9


def task_s(ledger: MadeLedger, kind: TaskKind, *, native: bool) -> float:
    """CPU seconds of one task for a GB of payload, those of making its input left out."""
    with MadeWorker(ledger) as worker:
        if not native:
            worker.core = None
        began = time.process_time()
        rows = list(run_task(ledger.task(kind), worker))
        spent = time.process_time() - began - worker.bookie.made_s - worker.objects.made_s
    if failed := [row.error for row in rows if row.error]:
        raise SystemExit(f"{kind.value} of entries of {ledger.size} bytes: {failed[0]}")
    return spent / (ledger.entries * ledger.size) * 1e9


def works() -> Iterator[tuple[str, Callable[[], float]]]:
    """Each piece of work by its name."""
    for loop, size in ((loop, size) for loop in WORK for size in SIZES):
        entries = max(4, WORK[loop] // size)
        ledger = MadeLedger(entries=entries, size=size, block_bytes=BLOCK)
        for kind in TaskKind:

            def figure(
                ledger: MadeLedger = ledger, kind: TaskKind = kind, native: bool = loop == "native"
            ) -> float:
                return median(turn(ledger, kind, native=native) for _ in range(TURNS))

            yield f"{loop} {kind.value} {size} B", figure


def turn(ledger: MadeLedger, kind: TaskKind, *, native: bool) -> float:
    """The task's cost over the yardstick's, taken before it and after it."""
    before = yardstick_s(ledger, native=native)
    spent = task_s(ledger, kind, native=native)
    return 2 * spent / (before + yardstick_s(ledger, native=native))


def judged(found: dict[str, float], accepted: dict[str, float]) -> tuple[list[str], list[str]]:
    """The names of what is slower than accepted, or not comparable, and of what is faster."""
    slower, faster = [], []
    for name in sorted({*found, *accepted}):
        was, now = accepted.get(name), found.get(name)
        if was is None or now is None or now / was > 1 + OFF_MAX:
            slower.append(name)
        elif now / was < 1 - OFF_MAX:
            faster.append(name)
    return slower, faster


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--accept", action="store_true", help="keep what is found")
    accept = parser.parse_args().accept
    if this_loop().core is None:
        raise SystemExit(f"the library is needed to be measured: {this_loop().said}")
    began = time.monotonic()
    work = dict(works())
    found: dict[str, float] = {}
    kept = json.loads(RESULTS.read_text())["figures"] if RESULTS.exists() and not accept else {}
    slower, faster = [*work], list[str]()
    for again in range(1 if accept else ROUNDS):
        for name in slower:
            figure = round(work[name](), 3) if name in work else inf
            found[name] = min(figure, found.get(name, figure))
            sys.stdout.write(f"{name}: {found[name]:.3g}{' (once more)' if again else ''}\n")
            sys.stdout.flush()
        slower, faster = judged(found, kept)
        if not slower:
            break
    sys.stdout.write(f"{len(found)} figures in {time.monotonic() - began:.0f} s\n")
    if accept:
        told = {"unit": "CPU time of the yardstick", "figures": found}
        RESULTS.write_text(json.dumps(told, indent=1) + "\n")
        return 0
    for what, names in (("slower", slower), ("faster", faster)):
        for name in names:
            sys.stdout.write(
                f"{what}: {name}: accepted {kept.get(name)}, found {found.get(name)}\n"
            )
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
