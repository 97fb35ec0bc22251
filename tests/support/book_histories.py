"""Histories of a simulated fleet, posted to real tables and compared with what lies in the bucket.

    python -m tests.support.book_histories --seeds 1000

One seed is a schedule of simulate.py, with runs that are killed, answers that are lost and stores
that fail. In every other one brokers copy what is left in the end, and a scrub reads it. The day
book is posted in lots of any size by several posters, proven, and then each row must equal the one
that the bucket's records alone give.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.book_result import keep
from tests.support.sim_clients import Process, Site
from tests.support.sim_run import run_world
from tests.support.sim_schedule import lay_out, schedule
from tests.support.sim_world import World
from tiering_assets.catalogue import listings
from tiering_assets.catalogue import post as posting
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.facts.changes import changed_rows, changes_of
from tiering_assets.catalogue.facts.read_pages import FoundRecord, ReadPage, ReadPages
from tiering_assets.catalogue.named import read_record, to_read
from tiering_assets.catalogue.pages import read_pages
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.upkeep import rebuild as rebuilding
from tiering_assets.catalogue.upkeep.rebuild import rebuild
from tiering_assets.catalogue.upkeep.settle import cut, settle
from tiering_assets.catalogue.view import Catalogue, Tables, answer
from tiering_assets.ground.named_records import is_named
from tiering_assets.ground.record_book import utc_now, writer_of
from tiering_assets.ground.stack import Stack
from tiering_assets.records.bucket_models import DayBookPage, NamedRecord
from tiering_assets.records.key_kinds import FOLDERS
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.settings import CatalogueSettings
from tiering_assets.resources.table_place import TablePlace
from tiering_assets.resources.tables import Table
from tiering_assets.scrub.scrub import scrub

REBUILT = {
    "ledgers": "select * exclude (turn, page) from ledgers order by ledger_id",
    "blocks": "select * from blocks where page <= {page} order by ledger_id, uid, part, page",
    # One that a later page says went may have been missing already when it was posted.
    "events": "select e.* exclude (what, why), g.went > e.page as left, "
    "case when g.went > e.page then null else what end as what, "
    "case when g.went > e.page then null else why end as why from events e left join "
    "(select key, max(page) as went from events where what = 'gone' group by key) g "
    "on e.key = g.key where page <= {page} order by page, key",
}


def rows_of_bucket(stack: Stack) -> dict[int, dict[str, Any]]:
    """What every record of the bucket says, read by listing and in the order of the listing."""
    named = [
        NamedRecord(key=key)
        for folder in FOLDERS
        if is_named(f"{folder}/")
        for key in stack.book.keys(f"{folder}/")
    ]
    page = DayBookPage(
        number=1,
        previous="",
        phase="proof",
        command="listed",
        written_at=utc_now(),
        writer=writer_of("listed"),
        records=tuple(named),
    )
    found: dict[str, FoundRecord] = {}
    for key in to_read(one.key for one in named):
        found[key] = read_record(stack.book, NamedRecord(key=key))
    stored = Stored(key="", record=page, sha256="", stored_at=page.written_at, etag="")
    batch = ReadPages([ReadPage(number=1, stored=stored)], found)
    return {row["ledger_id"]: row for row in changed_rows(changes_of(batch), [])}


def problems_of(seed: int, folder: Path) -> list[str]:
    """What differs after the schedule of a seed."""
    worlds: list[World] = []

    def play(world: World) -> None:
        worlds.append(world)
        for site in lay_out(world):
            schedule(world, site)

    outcome = run_world(seed, play)
    found = [f"{one.invariant}: {one.detail}" for one in outcome.found]
    for n, site in enumerate(worlds[0].sites):
        found += _of_site(seed, worlds[0], site, folder / f"{seed}-{n}")
    return found


class _KilledError(Exception):
    """A poster dies."""


class _Stale(Catalogue):
    """As a poster has it that was asleep: now and then the tables are those of before."""

    def __init__(self, place: TablePlace, chance: random.Random) -> None:
        super().__init__(place)
        self._chance, self._before = chance, super().opened(make=True)

    def opened(self, names: Collection[str] = tuple(TABLES), *, make: bool = False) -> Tables:
        now = super().opened(names, make=make)
        if self._chance.random() < 0.3:
            return self._before
        self._before = now
        return now


def _of_site(seed: int, world: World, site: Site, folder: Path) -> Iterator[str]:
    chance = random.Random(seed)
    place = TablePlace(root=str(folder), options={})
    catalogue = Catalogue(place)
    world.scheduler.now += 3 * 86400  # every claim is over
    if seed % 2:
        _let_brokers_copy(world, site)
    most = chance.choice((1, 3, 20, 20_000))

    def some(stack: Stack, after: int) -> list[ReadPage]:
        return read_pages(stack, after, records_max=most)

    really = Table.append

    def append(table: Table, rows: Any, *, mark: int, told: Mapping[str, str]) -> bool:
        """Dies before it, behind it, or not at all."""
        if chance.random() < 0.1:
            raise _KilledError
        done = really(table, rows, mark=mark, told=told)
        if chance.random() < 0.1:
            raise _KilledError
        return done

    lot = random.Random(-seed).choice((8, 25_000, 25_000))
    with (
        patch.object(posting, "read_pages", some),
        patch.object(Table, "append", append),
        patch.object(listings, "LOT", lot),
    ):
        whole = 0
        for _ in range(10):
            if whole == 2:  # and one that saw what the first one settled and cut
                break
            with suppress(_KilledError, CatalogueError):
                poster = Process(world, "poster", site).stack()
                stale = _Stale(place, chance)
                prove(poster, stale)
                at = poster.objects.server_time()
                settle(stale, "ledgers", at=at, tail_max=chance.choice((0, 3)))
                if chance.random() < 0.3:
                    cut(stale, "ledgers", now=at + timedelta(days=2))
                whole += 1
    stack = Process(world, "last poster", site).stack()
    stack = replace(
        stack, settings=replace(stack.settings, catalogue=CatalogueSettings(root=str(folder)))
    )
    proof = prove(stack, catalogue)
    if proof.missing:
        yield f"missing: {proof.first}"
    yield from _differences(stack, catalogue)
    yield from _rebuilt(stack, catalogue)
    again = prove(stack, catalogue)
    if again.late or again.died:
        yield f"a second proof found {again.late} late records and {again.died}"


def _let_brokers_copy(world: World, site: Site) -> None:
    """All that is sealed still, and a deep scrub reads it."""
    for ml_name in site.broker.names():
        site.broker.offload(ml_name)
    stack = Process(world, "late scrub", site).stack()
    scrub(stack, deep=True)
    stack.book.close_page()


def _differences(stack: Stack, catalogue: Catalogue) -> Iterator[str]:
    tables = catalogue.opened()
    rows = answer(tables, "select * from ledgers").to_pylist()
    posted = {row["ledger_id"]: _plain(row) for row in rows}
    listed = {ledger_id: _plain(row) for ledger_id, row in rows_of_bucket(stack).items()}
    for ledger_id in sorted({*posted, *listed}):
        ours, theirs = posted.get(ledger_id, {}), listed.get(ledger_id, {})
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                yield (
                    f"ledger {ledger_id}, {name}: posted {ours.get(name)!r}, "
                    f"listed {theirs.get(name)!r}"
                )
    for table, columns in (
        ("blocks", "ledger_id, uid, part, page"),
        ("events", "page, key, what"),
        ("ledger_changes", "ledger_id, turn"),
    ):
        twice = answer(
            tables,
            f"select {columns} from {table} group by {columns} having count(*) > 1",
        ).to_pylist()
        if twice:
            yield f"{table}: twice {twice}"


def _rebuilt(stack: Stack, catalogue: Catalogue) -> Iterator[str]:
    """What differs in tables that are made anew from the records."""
    with patch.object(rebuilding, "SHARD", 3):
        done = rebuild(stack)
    new = Catalogue.of(stack)
    if not done.moved or new.place.root == catalogue.place.root:
        yield "the new tables are not asked"
    for table, question in REBUILT.items():
        ours, theirs = (
            answer(one.opened(), question.format(page=done.pages)).to_pylist()
            for one in (catalogue, new)
        )
        for row in (*ours, *theirs):
            if (row in ours) != (row in theirs):
                yield f"{table}: {'posted' if row in ours else 'made anew'} alone is {row}"
        if len(ours) != len(theirs):
            yield f"{table}: {len(ours)} rows posted, {len(theirs)} made anew"


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("page", "turn")}


def _one(given: tuple[int, str]) -> tuple[int, list[str]]:
    seed, folder = given
    return seed, problems_of(seed, Path(folder))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    began, bad = time.monotonic(), 0
    workers = get_context("spawn").Pool(asked.processes)
    with tempfile.TemporaryDirectory() as folder, workers as pool:
        seeds = range(asked.first, asked.first + asked.seeds)
        for seed, found in pool.imap_unordered(_one, [(seed, folder) for seed in seeds]):
            bad += bool(found)
            for line in found[:3]:
                sys.stdout.write(f"seed {seed}: {line[:600]}\n")
    sys.stdout.write(
        f"{asked.seeds} histories, {bad} with differences, {time.monotonic() - began:.0f} s\n"
    )
    keep("histories", seeds=asked.seeds, differences=bad)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
