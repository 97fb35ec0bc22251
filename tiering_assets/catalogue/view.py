"""The catalogue as it is asked: the newest row of each ledger, and how far everything goes.

Owns: every answer says up to which page of the day book it goes, when that page was written, and
which ledgers runs have taken up since.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

import pyarrow as pa

from tiering_assets.catalogue.columns import POSTED, TABLES
from tiering_assets.catalogue.generation import FIRST, current_folder
from tiering_assets.catalogue.pages import InWork
from tiering_assets.catalogue.settled import ABSORBED, CUT, SETTLED, beside, current, ever
from tiering_assets.ground.moments import moment
from tiering_assets.ground.stack import Stack
from tiering_assets.records import key_kinds
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.kept_answers import ANSWERS
from tiering_assets.resources.kept_tables import KEPT
from tiering_assets.resources.table_place import TablePlace, place_at
from tiering_assets.resources.table_upkeep import with_columns
from tiering_assets.resources.tables import Table, ask, open_table, rows_in, table_at

WORK_DONE: Final = "work_done"
"""What commits of `ledger_changes` say was done up to their page."""
OF_PAGES: Final = ("page", "written_at", "proven_at", "in_work", WORK_DONE)
"""What each commit of a posted table repeats of the last page."""
OF_LEDGERS: Final = tuple(one.changes for one in SETTLED.values())
"""Tables behind `ledgers` and `topics`: who asks of nothing else need not open the others."""
_MARKS: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(SETTLED, (ABSORBED,)),
    **{
        name: [
            *((Table.MARK,) if name in POSTED else ()),
            *((Table.TURN,) if name in OF_LEDGERS else ()),
        ]
        for name in TABLES
    },
}
_TRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """How far an answer goes. `written_at` is of that page, None before the first one.

    `proven_at` is when a full listing last agreed with what was posted.
    """

    page: int
    written_at: datetime | None
    in_work: InWork
    proven_at: datetime | None

    def __str__(self) -> str:
        at = "" if self.written_at is None else f" of {moment(self.written_at)}"
        busy = len(self.in_work.ledgers)
        return f"as of page {self.page}{at}; {busy} ledgers in work"


class Tables(dict[str, Table]):
    """The tables that are written, by name: all, or the ones that an answer needs. `settled` have
    the newest rows, as far as they go.
    """

    def __init__(self, written: Mapping[str, Table], settled: Mapping[str, Table]) -> None:
        super().__init__(written)
        self.settled = settled

    @property
    def posted(self) -> dict[str, Table]:
        """Those of pages alone, in the order in which that is done."""
        return {name: self[name] for name in POSTED if name in self}

    @property
    def whole(self) -> bool:
        """Whether settled tables, as they were opened, have all that was cut from their tails."""
        return all(
            self._absorbed(name)
            or self[SETTLED[name].changes].marked(CUT) <= table.marked(ABSORBED)
            for name, table in self.settled.items()
        )

    def view(self, name: str, *, among: Collection[int] | None = None) -> str:
        """SQL for the rows as they are now; of all keys, or of these."""
        changes, settled = self[SETTLED[name].changes], self.settled[name]
        absorbed = settled.marked(ABSORBED)
        is_whole = self._absorbed(name)
        has = {beside(name): settled.columns}
        return current(
            name,
            None if is_whole else absorbed,
            TABLES[changes.name].names,
            has if is_whole else has | {changes.name: changes.columns},
            among=among,
        )

    def _absorbed(self, name: str) -> bool:
        """Whether there is no tail: no more was cut either, and no log is read for it."""
        return self[SETTLED[name].changes].turn <= self.settled[name].marked(ABSORBED)

    def ever(self, name: str, column: str, values: Collection[str]) -> str:
        """SQL for keys of rows that have one of these values now, and of some that did."""
        return ever(name, self.settled[name].marked(ABSORBED), column, values)

    def rows_at_most(self, name: str, since: Any) -> int:
        """Rows of keys from this one on, and some of those before: by what commits say of files."""
        key, tables = SETTLED[name].key, [self.settled[name]]
        if not self._absorbed(name):
            tables.append(self[SETTLED[name].changes])
        files = (file for table in tables for file in table.files(key))
        return sum(file.rows for file in files if file.last >= since)

    @property
    def versions(self) -> dict[str, int | None]:
        """Of each table by its name in SQL; None where there is none yet."""
        tables = self.registered.items()
        return {name: table.version if table.is_written else None for name, table in tables}

    @property
    def registered(self) -> dict[str, Table]:
        """All of them, by the names that SQL has for them."""
        return {**self, **{beside(name): table for name, table in self.settled.items()}}


class Catalogue:
    """The tables of one instance in its bucket."""

    def __init__(self, place: TablePlace) -> None:
        self.place = place

    @classmethod
    def of(cls, stack: Stack) -> Catalogue:
        """The tables that are asked now: one request tells which."""
        return cls.at(stack, current_folder(stack))

    @classmethod
    def at(cls, stack: Stack, folder: str) -> Catalogue:
        """Those of one generation."""
        store, root = stack.settings.store, stack.settings.catalogue.root
        place = f"s3://{store.bucket}/{stack.book.prefix}{key_kinds.TABLES}{folder}"
        if root:
            place = root if folder == FIRST else f"{root.rstrip('/')}/{folder}"
        return cls(place_at(place, store))

    def opened(self, names: Collection[str] = tuple(TABLES), *, make: bool = False) -> Tables:
        """Tables at their newest version; settled ones first, as their tails are cut later.

        Those that are not there are empty. To `make` them is to write: without it they are shared
        with others of this process, and are opened at once. CatalogueError where rows are nowhere.
        """
        open_all = self._made if make else self._read
        wanted = {name: TABLES[name] for name in names}
        for _ in range(_TRIES):
            settled = open_all({name: TABLES[one.changes] for name, one in SETTLED.items()})
            tables = Tables(open_all(wanted), settled)
            if tables.whole:
                return tables
        raise CatalogueError(
            f"{self.place.root}: rows were settled that are not there; nothing else waits for it: "
            "`tierkeeper catalogue rebuild`"
        )

    def at_versions(self, versions: Mapping[str, int | None]) -> Tables:
        """The tables as they were when `Tables.versions` told these."""

        def table(name: str, schema: pa.Schema, key: str) -> Table:
            return table_at(self.place, name, schema, versions[key])

        settled = {
            name: table(name, TABLES[one.changes], beside(name)) for name, one in SETTLED.items()
        }
        names = [name for name in TABLES if name in versions]
        return Tables({name: table(name, TABLES[name], name) for name in names}, settled)

    def to_write(self, name: str, schema: pa.Schema | None = None) -> Table:
        """One of its own for who may write, with the columns that this version writes."""
        wanted = schema or TABLES[name]
        return with_columns(open_table(self.place, name, wanted, make=True), wanted)

    def _made(self, schemas: Mapping[str, pa.Schema]) -> dict[str, Table]:
        return {name: self.to_write(name, schema) for name, schema in schemas.items()}

    def _read(self, schemas: Mapping[str, pa.Schema]) -> dict[str, Table]:
        """Each takes some requests, one after the other: those of all of them overlap."""
        with ThreadPoolExecutor(len(schemas)) as pool:
            return dict(zip(schemas, pool.map(self._kept, schemas, schemas.values()), strict=True))

    def _kept(self, name: str, schema: pa.Schema) -> Table:
        """With the marks that are asked of it: each is a reading of its log, which is cleaned."""
        table = KEPT.open(self.place, name, schema)
        for mark in _MARKS[name]:
            table.marked(mark)
        return table

    def as_of(self, table: Table) -> AsOf:
        return as_of_told(table.mark, table.told())

    def busy(self, tries: int) -> CatalogueError:
        return CatalogueError(
            f"{self.place.root}: other posters were faster {tries} times; nothing waits for it, "
            "repeat"
        )


def as_of_told(page: int, told: Mapping[str, Any]) -> AsOf:
    """From what a commit tells of its page."""
    return AsOf(
        page=page,
        written_at=_time(told.get("written_at")),
        in_work=InWork.from_text(told.get("in_work", "{}")),
        proven_at=_time(told.get("proven_at")),
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def carried(table: Table) -> dict[str, str]:
    """What a commit says of the newest page that posts none itself."""
    told = table.told()
    return {key: told[key] for key in OF_PAGES if key in told}


def least(catalogue: Catalogue, tables: Tables) -> AsOf:
    """How far an answer from these tables goes: as far as the one that is behind."""
    return catalogue.as_of(min(tables.posted.values(), key=lambda table: table.mark))


def answer(tables: Tables, sql: str) -> pa.Table:
    """Rows of a question over the tables, and `ledgers` and `topics` as they are now."""
    views = {name: partial(tables.view, name) for name in tables.settled}
    return ask(sql.strip().rstrip(";"), tables.registered, views=views)


def answer_kept(tables: Tables, sql: str) -> pa.Table:
    """The same of tables that are only read, for who asks it again and again."""
    return ANSWERS.answer(sql, tables.registered, lambda: answer(tables, sql))


def rows_of(tables: Tables, ledger_ids: Sequence[int]) -> list[dict[str, Any]]:
    """The newest rows of these ledgers."""
    return rows_in(newest(tables, ledger_ids)) if ledger_ids else []


def newest(tables: Tables, ledger_ids: Collection[int], columns: str = "*") -> pa.Table:
    """Columns of the newest rows of these ledgers."""
    first, last = min(ledger_ids, default=0), max(ledger_ids, default=0)
    return answer(
        tables,
        f"select {columns} from ({tables.view('ledgers', among=ledger_ids)}) "  # noqa: S608
        f"where ledger_id between {first} and {last}",  # prunes files
    )
