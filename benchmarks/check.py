"""What a worker's tasks cost, without servers, against the accepted figures: `make bench-check`.

    python -m benchmarks.check [--accept]

Fixed work: a made ledger for each size of entries is copied, read from its bookies again, and read
back, by either loop over entries. A figure is CPU time over that of a yardstick: the same bytes
copied into fresh memory, digested and hashed by plain library calls, whole (native) or entry by
entry (python). The two take turns, so that other work on the machine slows both; medians of some
turns. Each figure has a process of its own: what the allocator kept of the figures before made
one differ by a fifth. Exits with 1 where one is more than 15 % above
benchmarks/results/check.json, again and again. What is as much below is told: it is to be accepted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
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


def names() -> list[str]:
    """Every figure: the loop, the task, the size of its entries in bytes."""
    return [f"{loop} {kind.value} {size} B" for loop in WORK for size in SIZES for kind in TaskKind]


def figure(name: str) -> float:
    """The median of some turns."""
    loop, kind, size = name.removesuffix(" B").split()
    entries = max(4, WORK[loop] // int(size))
    ledger = MadeLedger(entries=entries, size=int(size), block_bytes=BLOCK)
    return median(turn(ledger, TaskKind(kind), native=loop == "native") for _ in range(TURNS))


def apart(name: str) -> float:
    """The figure as a fresh process finds it."""
    asked = [sys.executable, "-m", "benchmarks.check", "--only", name]
    told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    return round(float(told), 3)


def turn(ledger: MadeLedger, kind: TaskKind, *, native: bool) -> float:
    """The task's cost over the yardstick's, taken before it and after it."""
    before = yardstick_s(ledger, native=native)
    spent = task_s(ledger, kind, native=native)
    return 2 * spent / (before + yardstick_s(ledger, native=native))


def machine() -> str:
    """The kind of processor this is, as Linux names it."""
    told = dict[str, str]()
    for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        told[name.strip()] = value.strip()
    kind = (told.get(x, "?") for x in ("cpu family", "model", "stepping"))
    return f"{told.get('model name', 'unnamed')}, {'/'.join(kind)}"


Sets = dict[str, dict[str, float]]  # the accepted figures of each kind of machine


def judged(found: dict[str, float], kept: Sets) -> tuple[list[str], list[str]]:
    """The names of what is slower than on any machine, or not comparable, and of what is faster."""
    slower, faster = [], []
    for name in sorted({*found, *(name for figures in kept.values() for name in figures)}):
        was, now = [x[name] for x in kept.values() if name in x], found.get(name)
        if now is None or len(was) < len(kept) or not was or now / max(was) > 1 + OFF_MAX:
            slower.append(name)
        elif now / min(was) < 1 - OFF_MAX:
            faster.append(name)
    return slower, faster


def accepted_sets() -> Sets:
    sets: Sets = json.loads(RESULTS.read_text())["machines"]
    return sets


def accept(began: float) -> int:
    """Keep the median of three looks at each figure as those of this kind of machine."""
    figures: dict[str, float] = {}
    for name in names():
        looks = sorted(apart(name) for _ in range(3))
        figures[name] = looks[1]
        sys.stdout.write(f"{name}: {looks[0]:.3g} to {looks[2]:.3g}\n")
        sys.stdout.flush()
    told = {"unit": "CPU time of the yardstick", "machines": accepted_sets() | {machine(): figures}}
    RESULTS.write_text(json.dumps(told, indent=1) + "\n")
    sys.stdout.write(f"{len(figures)} figures kept in {time.monotonic() - began:.0f} s\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--accept", action="store_true", help="keep what is found")
    parser.add_argument("--only", choices=names(), metavar="NAME", help="print this figure alone")
    asked = parser.parse_args()
    if this_loop().core is None:
        raise SystemExit(f"the library is needed to be measured: {this_loop().said}")
    if asked.only:
        sys.stdout.write(f"{figure(asked.only)}\n")
        return 0
    began = time.monotonic()
    if asked.accept:
        return accept(began)
    kept = accepted_sets()
    found: dict[str, float] = {}
    slower, faster = names(), list[str]()
    for again in range(ROUNDS):
        for name in slower:
            now = apart(name) if name in names() else inf
            found[name] = min(now, found.get(name, now))
            sys.stdout.write(f"{name}: {found[name]:.3g}{' (once more)' if again else ''}\n")
            sys.stdout.flush()
        slower, faster = judged(found, kept)
        if not slower:
            break
    sys.stdout.write(f"{len(found)} figures in {time.monotonic() - began:.0f} s\n")
    for what, those in (("slower", slower), ("faster", faster)):
        for name in those:
            was = ", ".join(str(figures.get(name)) for figures in kept.values())
            sys.stdout.write(f"{what}: {name}: accepted {was}, found {found.get(name)}\n")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
