"""What a rebuild of the catalogue costs: seconds, CPU and memory, by the number of ledgers.

    .venv/bin/python -m benchmarks.catalogue_rebuild [--ledgers 10000] [--processes 2]

On a real store, with the records of so many released ledgers, 200 a run and a publication each run:
attempt, certificate, release intent and release of each. Then one settlement of all of them again
as a posting adds them, and the questions behind it. Prints JSON; docs/decisions/0027 has figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from benchmarks.catalogue import stack_of
from benchmarks.day_book import Counted
from tests.unit.records.examples import EXAMPLES
from tiering_assets.catalogue.upkeep.rebuild import rebuild
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.ground.day_book import Scribe
from tiering_assets.ground.record_book import RecordBook, utc_now
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.records.codec import encode_record
from tiering_assets.records.models import Attempt, Certificate, Publication, Release, ReleaseIntent
from tiering_assets.records.signature import with_digest
from tiering_assets.records.writer import Writer
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.object_store.records import encode_record as encode_bytes
from tiering_assets.resources.object_store.records import record_sha256
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import CatalogueSettings

RUN = 200


def example(kind: type, **changes: Any) -> Any:
    return replace(next(one for one in EXAMPLES if type(one) is kind), **changes)


def records_of(run: int) -> list[tuple[str, Any]]:
    """The records of a run, by key."""
    topic, found = f"public/default/persistent/t{run % 100}", []
    ids = range(run * RUN, (run + 1) * RUN)
    for ledger_id in ids:
        uid = UUID(int=(ledger_id + 1) * 7919 << 40)
        facts = replace(example(Attempt).ledger, ledger_id=ledger_id)
        found += [
            (keys.attempt(ledger_id, uid), example(Attempt, ledger=facts, uid=uid, ml_name=topic)),
            (
                keys.certificate(ledger_id, uid),
                example(Certificate, ledger=facts, uid=uid, ml_name=topic),
            ),
            (
                keys.release_intent(ledger_id, uid),
                example(ReleaseIntent, ledger=facts, uid=uid, ml_name=topic),
            ),
            (
                keys.release(ledger_id, uid),
                example(Release, ledger_id=ledger_id, uid=uid, ml_name=topic),
            ),
        ]
    published = example(Publication).ledgers[0]
    listed = tuple(
        replace(published, ledger_id=one, uid=UUID(int=(one + 1) * 7919 << 40)) for one in ids
    )
    publication = example(Publication, ml_name=topic, ledgers=listed)
    return [*found, (keys.publication(topic, run + 1), publication)]


def put_run(settings: Any, instance: str, run: int) -> None:
    """The records of a run, named on pages of its own."""
    objects = S3ObjectStore(settings)
    scribe = Scribe(
        writer=Writer(tool_version="0", host="bench", run_id=f"run-{run}"),
        command="benchmark",
        now=utc_now,
        tell=lambda _line: None,
        sleep=time.sleep,
        turn=nullcontext,
    )
    book = RecordBook(objects, instance, scribe)
    prefix, named = f"tierkeeper/{instance}/", []

    def put(one: tuple[str, Any]) -> NamedRecord:
        key, record = one
        body = with_digest(encode_record(record))
        objects.put(prefix + key, encode_bytes(body), content_type="application/json")
        return NamedRecord(key=key, sha256=record_sha256(body))

    with ThreadPoolExecutor(8) as threads:
        named = list(threads.map(put, records_of(run)))
    book.take_up(range(run * RUN, (run + 1) * RUN))
    book.name_found(named)
    book.close_page()


def cpu_s() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def measure(settings: Any, ledgers: int, processes: int, tables: str) -> dict[str, Any]:
    instance = f"bench-{ledgers}"
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(partial(put_run, settings.store, instance), range(ledgers // RUN)))
    parts = stack_of(Counted(settings.store), settings, instance)
    given = {**vars(parts), "run_id": "bench"}
    given["settings"] = replace(settings, catalogue=CatalogueSettings(root=tables))
    stack = cast(Stack, SimpleNamespace(**given))
    began, cpu = time.perf_counter(), cpu_s()
    done = rebuild(stack, processes=processes, tell=lambda line: print(line, flush=True))
    seconds, used = time.perf_counter() - began, cpu_s() - cpu
    if (done.ledgers, done.proof.late, done.proof.missing) != (ledgers, 0, 0):
        raise SystemExit(f"{done}")
    began = time.perf_counter()
    found = answer(Catalogue.of(stack).opened(), "select state, count(*) from ledgers group by 1")
    return {
        "ledgers": ledgers,
        "events": done.events,
        "processes": processes,
        "rebuild, s": round(seconds, 1),
        "rebuild, CPU s": round(used, 1),
        "memory of the first process, MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        // 1024,
        "counts by state, s": round(time.perf_counter() - began, 3),
        "states": found.num_rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--ledgers", type=int, nargs="+", default=[10_000])
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        DevStack.start(Path(folder) / "stack", StackOptions(bookies=0, with_broker=False)) as dev,
    ):
        for ledgers in asked.ledgers:
            tables = str(Path(folder) / f"tables-{ledgers}")
            row = measure(dev.settings(), ledgers, asked.processes, tables)
            print(json.dumps(row, indent=1), flush=True)


if __name__ == "__main__":
    main()
