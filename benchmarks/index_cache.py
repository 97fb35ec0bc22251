"""What the index cache costs and saves: single messages, whole blocks, and many cached blocks.

    .venv/bin/python -m benchmarks.index_cache [--blocks 10,10000] [--times 9] [--accept]

Requests and bytes of random messages of a block of 64 MiB, without a cache, cold and warm, and the
CPU of each. Then the CPU that whole blocks take with and without learning where their entries lie,
in turns. Then what a read, a write and a look at all takes with so many blocks in the cache.
Objects lie in memory, so no figure has the time of a store in it. --accept writes
benchmarks/results/index_cache.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tests.support.cached_blocks import MIB, CachedBucket, encoded, placed_plans
from tests.support.cold_entries import TIME
from tests.support.pulsar_entries import message
from tiering_assets.cold.decode import Entries
from tiering_assets.cold.frames import entries_of_block
from tiering_assets.lineage.known_places import KnownPlaces
from tiering_assets.lineage.messages.read_messages import MessagesAsked, read_messages
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.read_entry import read_entry
from tiering_assets.resources.kept_files import KeptFiles

RESULT = Path(__file__).with_name("results") / "index_cache.json"
BLOCK_BYTES: Final = 64 * MIB
_FILE_BYTES: Final = 40 + 257 * 8 + 32  # of a block of 64 MiB with small entries
_READS: Final = 30
_MANY: Final = 300
Learn = Callable[[PlacedBlock, Entries], None]


def block_of(size: int) -> tuple[bytes, PlacedBlock]:
    """A full block of messages of that many bytes."""
    some = [message(TIME, (6, b"key-%d" % n), payload=random.randbytes(size)) for n in range(100)]
    longest = max(map(len, some))
    count = (BLOCK_BYTES - 128) // (12 + longest)
    data, plans = encoded([some[n % 100] for n in range(count)], BLOCK_BYTES)
    return data, placed_plans(data, plans)[0]


def reads(size: int, folder: Path) -> dict[str, Any]:
    """Of the same random messages, each way."""
    data, block = block_of(size)
    bucket = CachedBucket(data, folder)
    entries = [random.randrange(block.entries) for _ in range(_READS)]

    def cold(entry: int) -> Any:
        shutil.rmtree(folder, ignore_errors=True)
        return read_entry(bucket.stack, block, entry)

    ways: dict[str, Callable[[int], Any]] = {
        "without": partial(read_entry, bucket.uncached, block),
        "cold": cold,
        "warm": partial(read_entry, bucket.stack, block),
    }
    return {name: _told(way, entries) for name, way in ways.items()}


def _told(way: Callable[[int], Any], entries: Sequence[int]) -> dict[str, Any]:
    took, costs = [], []
    for entry in entries:
        began = time.process_time()
        costs.append(way(entry).cost)
        took.append(time.process_time() - began)
    read = [cost.bytes_read for cost in costs]
    return {
        "requests_max": max(cost.requests for cost in costs),
        "bytes_median": statistics.median(read),
        "bytes_max": max(read),
        "cpu_ms_median": round(statistics.median(took) * 1e3, 2),
        "cpu_ms_max": round(max(took) * 1e3, 2),
    }


def learning(size: int, columns: Sequence[str], folder: Path, times: int) -> dict[str, Any]:
    """CPU of a whole block as columns, and with what is learnt of it; in turns."""
    data, block = block_of(size)
    places = KnownPlaces(KeptFiles(folder, 1024 * MIB))
    asked = MessagesAsked(span=None, columns=columns)
    ways = {"plain": None, "learning": places.learn}
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(times):
        for name, learn in ways.items():
            shutil.rmtree(folder, ignore_errors=True)
            began = time.process_time()
            _whole(data, block, asked, learn)
            took[name].append(time.process_time() - began)
    alone = []
    for _ in range(times):
        shutil.rmtree(folder, ignore_errors=True)
        entries = _entries(data, block)
        began = time.process_time()
        places.learn(block, entries)
        alone.append(time.process_time() - began)
    medians = {name: statistics.median(each) for name, each in took.items()}
    by_turn = [b / a for a, b in zip(took["plain"], took["learning"], strict=True)]
    return {
        **{f"{name}_cpu_ms": round(value * 1e3, 1) for name, value in medians.items()},
        "ratio_of_turns_median": round(statistics.median(by_turn), 4),
        "learning_alone_ms": round(statistics.median(alone) * 1e3, 3),
        "share_of_plain": round(statistics.median(alone) / medians["plain"], 5),
    }


def _whole(data: bytes, block: PlacedBlock, asked: MessagesAsked, learn: Learn | None) -> None:
    def read(one: PlacedBlock) -> Entries:
        entries = _entries(data, one)
        if learn is not None:
            learn(one, entries)
        return entries

    for _found in read_messages(
        read, [block], asked, before=lambda _: iter(()), after=lambda _: iter(())
    ):
        pass


def _entries(data: bytes, block: PlacedBlock) -> Entries:
    return entries_of_block(
        data, ledger_id=42, first_entry_id=block.first_entry_id, count=block.entries
    )


def growth(count: int, folder: Path) -> dict[str, Any]:
    """A cache with room for so many, filled with them, then read and written at random."""
    shutil.rmtree(folder, ignore_errors=True)
    files = KeptFiles(folder, max(count * 4096, 16 * MIB))
    data = random.randbytes(_FILE_BYTES)
    began = time.perf_counter()
    for number in range(count):
        path = files.root / (name := _name(number))[:2] / f"{name[2:]}.kept"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    filled_s = time.perf_counter() - began
    wanted = [_name(random.randrange(count)) for _ in range(_MANY)]
    read = [_seconds(partial(files.read, name)) for name in wanted]
    kept = [_seconds(partial(files.keep, _name(-n - 1), data)) for n in range(_MANY)]
    began = time.perf_counter()
    held = files.held()
    held_s = time.perf_counter() - began
    per_shelf = [len(list(one.iterdir())) for one in folder.iterdir()]
    return {
        "blocks": count,
        "bound_bytes": files.bytes_max,
        "held_after": {"files": held.files, "bytes": held.bytes},
        "files_of_a_folder_median": statistics.median(per_shelf),
        "files_of_a_folder_max": max(per_shelf),
        "file_bytes": _FILE_BYTES,
        "read_ms_median": round(statistics.median(read) * 1e3, 3),
        "keep_ms_median": round(statistics.median(kept) * 1e3, 3),
        "keep_ms_p95": round(sorted(kept)[int(_MANY * 0.95)] * 1e3, 3),
        "look_at_all_s": round(held_s, 3),
        "filled_s": round(filled_s, 1),
    }


def _name(number: int) -> str:
    return sha256(b"%d" % number).hexdigest()


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--blocks", default="10,10000")
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--accept", action="store_true")
    asked = parser.parse_args()
    random.seed(1)
    document: dict[str, Any] = {
        "schema": "tierkeeper/index-cache/1",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2)},
        "reads": {},
        "learning": {},
        "growth": [],
    }

    def tell(part: str, name: str, found: Any) -> None:
        sys.stderr.write(f"{part}, {name}: {json.dumps(found)}\n")

    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, "cache")
        for size in (100, 1024, 100_000):
            name = f"messages of {size} B"
            document["reads"][name] = reads(size, folder)
            tell("reads", name, document["reads"][name])
        for size, columns in (
            (1024, ("entry_id", "publish_time")),
            (1024, ("entry_id", "publish_time", "key", "payload")),
            (100, ("entry_id", "publish_time")),
        ):
            name = f"messages of {size} B, {len(columns)} columns"
            document["learning"][name] = learning(size, columns, folder, asked.times)
            tell("learning", name, document["learning"][name])
        for count in map(int, asked.blocks.split(",")):
            document["growth"].append(growth(count, folder))
            tell("growth", f"{count} blocks", document["growth"][-1])
    if asked.accept:
        RESULT.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
