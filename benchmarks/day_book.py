"""What a page of the day book costs: finding the newest one, and appending by ten writers at once.

    .venv/bin/python -m benchmarks.day_book [--pages 10 10000] [--accept]

On a real store, at each number of pages that lie there: requests and milliseconds to find the
newest page by keys that count down (ours) and by keys that count up (doubling steps, then halves,
then one listing), and milliseconds of an append by one process and by each of ten. Prints JSON;
with --accept it goes to benchmarks/results/day-book.json. docs/decisions/0025 has the figures.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.agents import ROOT
from tiering_assets.ground.day_book import DayBook, Scribe
from tiering_assets.ground.record_book import utc_now
from tiering_assets.records import keys
from tiering_assets.records.writer import Writer
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import StoreSettings

RESULTS = ROOT / "benchmarks" / "results" / "day-book.json"
WRITERS, APPENDS, LOOKS = 10, 30, 20
APART_S = 0.1  # between two pages of a writer, on average: ten of them write 100 a second
_LISTED = 1000  # keys of a listing


class Counted:
    """A store that counts what it is asked."""

    def __init__(self, settings: StoreSettings) -> None:
        self._store = S3ObjectStore(settings)
        self.requests = 0

    def __getattr__(self, name: str) -> Any:
        really = getattr(self._store, name)

        def call(*given: Any, **how: Any) -> Any:
            self.requests += 1
            return really(*given, **how)

        return call


def book_of(store: Any, prefix: str, run: str) -> DayBook:
    return DayBook(
        store,
        prefix,
        Scribe(
            writer=Writer(tool_version="0", host="bench", run_id=run),
            command="benchmark",
            now=utc_now,
            tell=lambda _line: None,
            sleep=time.sleep,
            turn=nullcontext,
        ),
    )


def plant(store: Any, prefix: str, pages: int) -> None:
    """Bodies do not matter here; keys that count up lie in a folder of their own."""

    def put(number: int) -> None:
        store.put(prefix + keys.page(number), b"{}\n", if_absent=True)
        store.put(f"{prefix}up/{number:019d}.json", b"{}\n", if_absent=True)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(put, range(1, pages + 1)))


def newest_down(store: Any, prefix: str) -> int:
    first = next(iter(store.list_objects(prefix + keys.DAY_BOOK, at_once=1)))
    return keys.page_number(first.key.removeprefix(prefix))


def newest_up(store: Any, prefix: str) -> int:
    """The way that was not taken."""

    def is_there(number: int) -> bool:
        return store.head(f"{prefix}up/{number:019d}.json") is not None

    def listed_behind(number: int) -> list[Any]:
        return list(
            store.list_objects(f"{prefix}up/", start_after=f"{prefix}up/{number:019d}.json")
        )

    low, high = 0, _LISTED
    while is_there(high):
        low, high = high, 2 * high
    while high - low > _LISTED:
        middle = (low + high) // 2
        low, high = (middle, high) if is_there(middle) else (low, middle)
    return low + len(listed_behind(low))


def looked(
    store: Counted, find: Callable[[Any, str], int], prefix: str, pages: int
) -> dict[str, Any]:
    took = []
    store.requests = 0
    for _ in range(LOOKS):
        began = time.perf_counter()
        if find(store, prefix) != pages:
            raise SystemExit(f"{find.__name__} found another page than {pages}")
        took.append(1000 * (time.perf_counter() - began))
    return {"requests": store.requests / LOOKS, "ms": round(statistics.median(took), 2)}


def appended(settings: StoreSettings, prefix: str, run: str) -> list[float]:
    """Milliseconds of each page that one process appends."""
    book = book_of(S3ObjectStore(settings), prefix, run)
    took = []
    for number in range(APPENDS + 1):
        time.sleep(random.uniform(0, 2 * APART_S))
        began = time.perf_counter()
        book.take_up([number])
        took.append(1000 * (time.perf_counter() - began))
    return took[1:]  # the first one connects


def of_appends(took: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(took, n=20)
    return {
        "p50_ms": round(cuts[9], 2),
        "p95_ms": round(cuts[18], 2),
        "max_ms": round(max(took), 2),
    }


def measure(settings: StoreSettings, pages: int) -> dict[str, Any]:
    store, prefix = Counted(settings), f"tierkeeper/bench-{pages}/"
    plant(store, prefix, pages)
    found = {
        "pages": pages,
        "newest, keys count down": looked(store, newest_down, prefix, pages),
        "newest, keys count up": looked(store, newest_up, prefix, pages),
        "append, one writer": of_appends(appended(settings, prefix, "alone")),
    }
    with get_context("spawn").Pool(WRITERS) as pool:
        given = [(settings, prefix, f"run-{n}") for n in range(WRITERS)]
        took = [ms for one in pool.starmap(appended, given) for ms in one]
    found[f"append, {WRITERS} writers"] = of_appends(took)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--pages", type=int, nargs="+", default=[10, 10_000])
    parser.add_argument("--accept", action="store_true")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        DevStack.start(Path(folder) / "stack", StackOptions(bookies=0, with_broker=False)) as dev,
    ):
        rows = [measure(dev.settings().store, pages) for pages in asked.pages]
    text = json.dumps(rows, indent=1) + "\n"
    print(text)
    if asked.accept:
        RESULTS.write_text(text)


if __name__ == "__main__":
    main()
