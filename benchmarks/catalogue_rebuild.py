"""What a rebuild of the catalogue costs: seconds and CPU, by ledgers, client and Spark's cores.

    .venv/bin/python -m benchmarks.catalogue_rebuild [--ledgers 10000] [--by here local[1,4]]

On the Versity gateway, whose objects are files: the records of so many released ledgers, 200 a run
and a publication each run, are planted as such. A ledger has attempt, certificate, release intent
and release. Prints JSON; docs/decisions/0027 has figures.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch
from uuid import UUID

import psutil

from benchmarks.catalogue import stack_of
from benchmarks.day_book import Counted
from benchmarks.versity import Gateway, build
from tests.unit.records.examples import EXAMPLES
from tiering_assets.catalogue.upkeep import rebuild as rebuilding
from tiering_assets.catalogue.upkeep.rebuild import rebuild
from tiering_assets.ground.day_book import Scribe
from tiering_assets.ground.record_book import RecordBook, utc_now
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.records.codec import encode_record
from tiering_assets.records.models import Attempt, Certificate, Publication, Release, ReleaseIntent
from tiering_assets.records.signature import with_digest
from tiering_assets.records.writer import Writer
from tiering_assets.resources.object_store.records import encode_record as encode_bytes
from tiering_assets.resources.object_store.records import record_sha256
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.s3_bulk import BulkS3ObjectStore
from tiering_assets.resources.settings import CatalogueSettings, Settings, StoreSettings
from tiering_assets.spark.lots import open_lots

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


def plant_run(settings: StoreSettings, folder: Path, instance: str, run: int) -> None:
    """The records of a run as the gateway's files, named on pages of its own."""
    objects = S3ObjectStore(settings)
    scribe = Scribe(
        writer=Writer(tool_version="0", host="bench", run_id=f"run-{run}"),
        command="benchmark",
        now=utc_now,
        tell=lambda _line: None,
        sleep=time.sleep,
        turn=nullcontext,
    )
    named = []
    for key, record in records_of(run):
        body = with_digest(encode_record(record))
        file = folder / f"tierkeeper/{instance}/{key}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encode_bytes(body))
        os.setxattr(file, "user.etag", f'"{record_sha256(body)[:32]}"'.encode())
        named.append(NamedRecord(key=key, sha256=record_sha256(body)))
    book = RecordBook(objects, instance, scribe)
    book.take_up(range(run * RUN, (run + 1) * RUN))
    book.name_found(named)
    book.close_page()


def cpu_s(process: psutil.Process) -> float:
    used = process.cpu_times()
    return used.user + used.system


class CpuSeconds:
    """Of this process, and of the most that all below it had used, but for the store."""

    def __init__(self, gateway: int) -> None:
        self._own, self._gateway = psutil.Process(), psutil.Process(gateway)
        self._below: dict[int, float] = {}
        self._before = cpu_s(self._own), cpu_s(self._gateway)

    def look(self) -> None:
        for one in self._own.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if one.pid != self._gateway.pid and "benchmarks.far_store" not in one.cmdline():
                    self._below[one.pid] = cpu_s(one)

    @property
    def used(self) -> tuple[float, float]:
        own, store = cpu_s(self._own) - self._before[0], cpu_s(self._gateway) - self._before[1]
        return own + sum(self._below.values()), store


def stack_at(settings: Settings, instance: str, tables: str, store: str) -> Stack:
    """As much of one as a rebuild needs. `store` is the client: obstore or boto3."""
    parts = stack_of(Counted(settings.store), settings, instance)
    objects: Any = {"obstore": BulkS3ObjectStore, "boto3": S3ObjectStore}[store](settings.store)
    given = {**vars(parts), "run_id": tables, "objects": objects, "book": parts.book.over(objects)}
    place = CatalogueSettings(root=tables)
    given["settings"] = replace(settings, catalogue=place)
    return cast(Stack, Parts(**given))


class Parts(SimpleNamespace):
    """Not a store's that `in_bulk` would change."""


def measure(settings: Settings, ledgers: int, by: str, store: str, gateway: int) -> dict[str, Any]:
    """`by` is `here`, or a Spark master."""
    instance = f"bench-{ledgers}"
    with tempfile.TemporaryDirectory() as tables:
        stack = stack_at(settings, instance, tables, store)
        carried = None
        if by != "here":
            spark = replace(settings, spark=replace(settings.spark, master=by))
            carried = partial(open_lots, spark)
        cpu, began = CpuSeconds(gateway), time.perf_counter()
        seen: list[tuple[float, str]] = []

        def tell(line: str) -> None:
            cpu.look()
            seen.append((time.perf_counter() - began, line))

        with patch.object(rebuilding, "CARRIED_FROM", 0):
            done = rebuild(stack, carried=carried, tell=tell)
        seconds = time.perf_counter() - began
        used = cpu.used
        if (done.ledgers, done.proof.late, done.proof.missing) != (ledgers, 0, 0):
            raise SystemExit(f"{done}")
        lots = [at for at, line in seen if "lots of ledgers" in line]
        made = next(at for at, line in seen if "listing every record" in line)
        return {
            "ledgers": ledgers,
            "events": done.events,
            "by": by,
            "client": store,
            "rebuild, s": round(seconds, 1),
            "of that pages, s": round(max(at for at, line in seen if "pages read" in line), 1),
            "first lot behind, s": round(lots[0], 1),
            "last lot behind, s": round(lots[-1], 1),
            "tables made behind, s": round(made, 1),
            "CPU s of it": round(used[0], 1),
            "CPU s of the store": round(used[1], 1),
            "memory of the first process, MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            // 1024,
        }


@contextmanager
def far_endpoint(endpoint: str, milliseconds: float) -> Iterator[str]:
    """The same server so far away, by a process of its own that its answers come through."""
    if not milliseconds:
        yield endpoint
        return
    server = endpoint.removeprefix("http://")
    command = [sys.executable, "-m", "benchmarks.far_store", server, str(milliseconds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--ledgers", type=int, nargs="+", default=[10_000])
    parser.add_argument("--by", nargs="+", default=["here", "local[1,4]", "local[2,4]"])
    parser.add_argument("--client", default="obstore", choices=["obstore", "boto3"])
    parser.add_argument("--far", type=float, default=0, help="milliseconds that answers take more")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "store"
        gateway = Gateway(build(), home, access_key="bench-key", secret_key="bench-secret")
        try:
            store = StoreSettings(
                endpoint=gateway.endpoint,
                bucket="bench",
                access_key="bench-key",
                secret_key="bench-secret",
            )
            S3ObjectStore(store).create_bucket()
            for ledgers in asked.ledgers:
                plant = partial(plant_run, store, home / "objects/bench", f"bench-{ledgers}")
                with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
                    list(pool.map(plant, range(ledgers // RUN)))
                print(f"{ledgers} ledgers planted", flush=True)
                for by in asked.by:
                    with far_endpoint(gateway.endpoint, asked.far) as endpoint:
                        settings = replace(Settings(), store=replace(store, endpoint=endpoint))
                        row = measure(settings, ledgers, by, asked.client, gateway._process.pid)
                    print(json.dumps(row | {"far, ms": asked.far}, indent=1), flush=True)
        finally:
            gateway.close()


if __name__ == "__main__":
    main()
