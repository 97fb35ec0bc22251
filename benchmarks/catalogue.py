"""What posting costs, and what is waited for at an answer, at two sizes of the catalogue.

    .venv/bin/python -m benchmarks.catalogue [--ledgers 2000 20000] [--accept]

On a real store, with so many ledgers in the tables already: seconds and requests of records to post
a run of 200 ledgers; an idle posting; the newest row of one ledger; counts by state. Rows that are
there already are written to the tables as a posting writes them. Prints JSON; with --accept it goes
to benchmarks/results/catalogue.json. docs/decisions/0026 has the figures.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pyarrow as pa

from benchmarks.agents import ROOT
from benchmarks.day_book import Counted
from tests.support.audited_bucket import put_chain
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.facts.known_ledger import KnownAttempt, KnownLedger, row_of_ledger
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.ground.day_book import Scribe
from tiering_assets.ground.record_book import RecordBook, utc_now
from tiering_assets.ground.stack import Stack
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.records.models import Attempt, Certificate, Publication
from tiering_assets.records.writer import Writer
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.table_place import place_at
from tiering_assets.resources.tables import Table

RESULTS = ROOT / "benchmarks" / "results" / "catalogue.json"
RUN = 200
_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def stack_of(store: Counted, settings: Any, instance: str) -> Stack:
    """As much of one as posting needs."""
    scribe = Scribe(
        writer=Writer(tool_version="0", host="bench", run_id="bench"),
        command="benchmark",
        now=utc_now,
        tell=lambda _line: None,
        sleep=time.sleep,
        turn=nullcontext,
    )

    def in_parallel(act: Callable[[Any], Any], items: Any) -> list[Any]:
        with ThreadPoolExecutor(16) as threads:
            return list(threads.map(act, items))

    parts = SimpleNamespace(
        book=RecordBook(cast(Any, store), instance, scribe),
        objects=store,
        settings=settings,
        in_parallel=in_parallel,
    )
    return cast(Stack, parts)


def plant(table: Table, ledgers: int) -> None:
    """Ledgers of 100 topics that were released, as one posting."""
    rows = []
    for ledger_id in range(10_000_000, 10_000_000 + ledgers):
        at = _DAY + timedelta(seconds=ledger_id % 10_000_000)
        uid = str(UUID(int=ledger_id))
        known = KnownAttempt(
            certified_at=at,
            certificate_sha256=f"{ledger_id:064x}",
            object_bytes=1_000_000,
            published_at=at,
            released_at=at if ledger_id % 10 else None,
        )
        facts = KnownLedger(
            ledger_id=ledger_id,
            topic=f"public/default/persistent/t{ledger_id % 100}",
            entries=1000,
            bytes=1_000_000,
            attempts={uid: known},
        )
        rows.append({**row_of_ledger(facts, page=table.mark + 1), "turn": table.turn + 1})
    schema = TABLES["ledger_changes"]
    table.append(
        pa.Table.from_pylist(rows, schema=schema), mark=table.mark + 1, told={"in_work": "{}"}
    )


def a_run(stack: Stack, objects: Any, instance: str) -> None:
    """The records of an offload of 200 ledgers of ten topics, named on pages."""
    book = RecordBook(objects, instance)
    named = []

    def chain(ledger_id: int) -> list[NamedRecord]:
        of_topic = f"public/default/persistent/run{ledger_id % 10}-{ledger_id}"
        stored = put_chain(objects, book, ledger_id, ml_name=of_topic).stored
        kinds = [Attempt, Certificate, *([Publication] if ledger_id < 10 else [])]
        return [NamedRecord(key=stored[kind].key, sha256=stored[kind].sha256) for kind in kinds]

    with ThreadPoolExecutor(8) as threads:
        for some in threads.map(chain, range(RUN)):
            named += some
    stack.book.take_up(range(RUN))
    stack.book.name_found(named)
    stack.book.close_page()


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = act()
    return round(time.perf_counter() - began, 3), found


def measure(settings: Any, ledgers: int) -> dict[str, Any]:
    instance = f"bench-{ledgers}"
    store = Counted(settings.store)
    stack = stack_of(store, settings, instance)
    root = f"s3://{settings.store.bucket}/tierkeeper/{instance}/catalogue/1"
    catalogue = Catalogue(place_at(root, settings.store))
    a_run(stack, S3ObjectStore(settings.store), instance)
    post(stack, catalogue)
    tables = catalogue.opened(make=True)
    plant(tables["ledger_changes"], ledgers)
    for name in ("blocks", "events"):
        mark = tables[name].mark + 1
        empty = pa.Table.from_pylist([], schema=TABLES[name])
        tables[name].append(empty, mark=mark, told={"in_work": "{}"})
    stack.book.name_found(())  # the page of that mark
    a_run(stack, S3ObjectStore(settings.store), instance)
    store.requests = 0
    seconds, posted = timed(lambda: post(stack, catalogue))
    requests = store.requests
    store.requests = 0
    idle, _ = timed(lambda: post(stack, catalogue))
    idle_requests = store.requests
    one, found = timed(
        lambda: answer(
            catalogue.opened(),
            f"select * from ledgers where ledger_id = {10_000_000 + ledgers // 2}",
        )
    )
    if found.num_rows != 1 or posted.pages < 2:
        raise SystemExit(f"{found.num_rows} rows, {posted}")
    counts, _ = timed(
        lambda: answer(catalogue.opened(), "select state, count(*) from ledgers group by state")
    )
    return {
        "ledgers": ledgers,
        "post 200 ledgers, s": seconds,
        "records' requests": requests,
        "requests a ledger": round(requests / RUN, 2),
        "idle post, s": idle,
        "idle post, records' requests": idle_requests,
        "one ledger, s": one,
        "counts by state, s": counts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--ledgers", type=int, nargs="+", default=[2_000, 200_000])
    parser.add_argument("--accept", action="store_true")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        DevStack.start(Path(folder) / "stack", StackOptions(bookies=0, with_broker=False)) as dev,
    ):
        rows = [measure(dev.settings(), ledgers) for ledgers in asked.ledgers]
    text = json.dumps(rows, indent=1) + "\n"
    print(text)
    if asked.accept:
        RESULTS.write_text(text)


if __name__ == "__main__":
    main()
