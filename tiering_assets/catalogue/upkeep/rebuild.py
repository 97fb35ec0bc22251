"""New tables from the records alone, in ledger order, beside the old ones, which serve until then.

Contract: pages of the day book up to the newest one at the start are read, then the records that
they name; a full listing finds what no page named; then all ask the new tables. Killed before, it
has changed nothing, and what it left goes with old tables. Two at once do no harm.

Three things cannot be read again: how many entries and bytes a ledger had whose records were
forgotten, blocks of forgotten attempts, and how a record was found before it was put right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from tiering_assets.catalogue.bulk import in_bulk
from tiering_assets.catalogue.columns import POSTED, TABLES
from tiering_assets.catalogue.facts.read_pages import ReadPages
from tiering_assets.catalogue.facts.rows import event_rows
from tiering_assets.catalogue.generation import Generation, move_to, read_generation
from tiering_assets.catalogue.pages import read_pages
from tiering_assets.catalogue.post import told_behind
from tiering_assets.catalogue.prove import Proof, prove
from tiering_assets.catalogue.settled import ABSORBED, SETTLED
from tiering_assets.catalogue.status import work_done, work_done_before
from tiering_assets.catalogue.upkeep.new_table import NewTable
from tiering_assets.catalogue.upkeep.settlements import Settlements
from tiering_assets.catalogue.upkeep.shard import doubts_of, ledgers_told_of, read_live
from tiering_assets.catalogue.upkeep.shard_runs import OpenCarrier, Task, reading, run_shards
from tiering_assets.catalogue.upkeep.spans import Shard
from tiering_assets.catalogue.upkeep.spool import Spool
from tiering_assets.catalogue.view import (
    OF_LEDGERS,
    WORK_DONE,
    AsOf,
    Catalogue,
    as_of_told,
    carried,
)
from tiering_assets.ground.record_book import utc_now
from tiering_assets.ground.stack import Stack
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.lots import lots_of
from tiering_assets.resources.tables import Table

SHARD: Final = 5_000
"""Ledgers of a shard: some tens of megabytes in memory."""
CARRIED_FROM: Final = 4
"""So many shards take this process as long as it takes to start another one, a JVM included."""
_WIDE_AT_ONCE: Final = 1_000
_EVENTS_AT_ONCE: Final = 500_000
_TRIES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltTables:
    """`folder` has the new tables. They are asked, if `moved`: else another rebuild was faster."""

    folder: str
    moved: bool
    pages: int
    ledgers: int
    blocks: int
    events: int
    proof: Proof


def rebuild(
    stack: Stack,
    *,
    carried: OpenCarrier | None = None,
    tell: Callable[[str], None] = lambda _line: None,
) -> RebuiltTables:
    """Make all tables anew, and have them asked.

    Many shards are `carried` to other processes, where that can be done; few are read here.
    """
    read = in_bulk(stack)
    before = read_generation(stack)
    folder = f"{before.number + 1}-{stack.run_id}"
    catalogue = Catalogue.at(stack, folder)
    tables = catalogue.opened(make=True)
    with Spool() as spool:
        mark, told = _spool_pages(read, spool, tell)
        _spool_wide(read, spool)
        new = {name: NewTable(tables[name], TABLES[name], told) for name in POSTED}
        at = stack.objects.server_time()
        ledgers = NewTable(
            tables.settled["ledgers"],
            TABLES[SETTLED["ledgers"].changes],
            Settlements().having(1, at=at).told(),
        )
        shards = spool.shards(SHARD)
        carried = carried if len(shards) > CARRIED_FROM else None
        done = run_shards(read, _tasks(spool, shards), carried=carried, tell=tell)
        for n, rows in enumerate(done, 1):
            ledgers.add(rows.ledgers)
            new["blocks"].add(rows.blocks)
            spool.add_doubts(rows.doubts)
            tell(f"{n} of {len(shards)} lots of ledgers read")
        for lot in spool.events(_EVENTS_AT_ONCE):
            new["events"].add(lot)
    for table in new.values():
        table.end({Table.MARK: mark})
    ledgers.end({ABSORBED: 1})
    tell(f"tables made up to page {mark}; listing every record")
    proof = prove(stack, catalogue)
    if before.folder is None or not _keep_work_done(Catalogue.at(stack, before.folder), catalogue):
        tell("what was done is counted from records that are there: the old sums cannot be read")
    return RebuiltTables(
        folder=folder,
        moved=_move(stack, folder, before, proof.as_of),
        pages=mark,
        ledgers=ledgers.rows,
        blocks=new["blocks"].rows,
        events=new["events"].rows,
        proof=proof,
    )


def _move(stack: Stack, folder: str, before: Generation, as_of: AsOf) -> bool:
    made = {"made_at": utc_now().isoformat(), "run_id": stack.run_id, "page": as_of.page}
    return move_to(stack, folder, before=before, made=made)


def _keep_work_done(old: Catalogue, new: Catalogue) -> bool:
    """Have the new tables tell no less than the old ones; False where these cannot be read."""
    try:
        before = work_done(old.opened(OF_LEDGERS))
    except CatalogueError:
        return False
    if before is None:
        return True
    for _ in range(_TRIES):
        tables = new.opened(OF_LEDGERS, make=True)
        table, now = tables["ledger_changes"], work_done_before(tables)
        told = {**carried(table), WORK_DONE: now.at_least(before).as_text()}
        if table.append(pa.Table.from_batches([], schema=TABLES[table.name]), told=told):
            return True
    raise new.busy(_TRIES)


def _spool_pages(
    stack: Stack, spool: Spool, tell: Callable[[str], None]
) -> tuple[int, dict[str, str]]:
    """Everything that pages name; the newest page, and what its commit tells of it."""
    mark, told = 0, dict[str, str]()
    before = as_of_told(0, told)
    while pages := read_pages(stack, mark):
        batch = ReadPages(pages, {})
        spool.add_events([*event_rows(batch)])
        mark = pages[-1].number
        told = told_behind(before, batch)
        before = as_of_told(mark, told)
        tell(f"{mark} pages read")
    return mark, told


def _spool_wide(stack: Stack, spool: Spool) -> None:
    """Which ledgers records tell of that name none by their key."""
    read, names = reading(stack), spool.wide().to_pylist()
    for some in lots_of(names, _WIDE_AT_ONCE):
        found = read_live(some, read)
        spool.add_wide([*ledgers_told_of(found)])
        spool.add_doubts(doubts_of(found))


def _tasks(spool: Spool, shards: Sequence[Shard]) -> Iterator[Task]:
    for shard in shards:
        yield shard, spool.of(shard), spool.wide_of(shard)
