"""The catalogue as it is asked: the newest row of each ledger, and how far everything goes.

Owns: every answer says up to which page of the day book it goes, when that page was written, and
which ledgers runs have taken up since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from tiering_assets.catalogue.columns import POSTED, TABLES
from tiering_assets.catalogue.pages import InWork
from tiering_assets.ground.moments import moment
from tiering_assets.ground.stack import Stack
from tiering_assets.records import key_kinds
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.tables import Table, TablePlace, ask, open_table, place_at

TOLD: Final = ("page", "written_at", "proven_at", "in_work", "scanned_at", "wrong")
"""What each commit of a table repeats: of the last page that was posted, of the last whole scan."""
FOLDER: Final = f"{key_kinds.TABLES}1/"
CURRENT: Final = (
    "select * exclude (nth) from (select *, row_number() over (partition by ledger_id "
    "order by turn desc) as nth from ledger_changes) where nth = 1"
)
"""SQL for the newest row of each ledger."""
TOPICS: Final = (
    "select * exclude (nth) from (select *, row_number() over (partition by topic "
    "order by turn desc) as nth from topic_changes) where nth = 1"
)
"""SQL for the newest row of each topic."""


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


class Catalogue:
    """The tables of one instance in its bucket."""

    def __init__(self, place: TablePlace) -> None:
        self.place = place

    @classmethod
    def of(cls, stack: Stack) -> Catalogue:
        store = stack.settings.store
        below = f"s3://{store.bucket}/{stack.book.prefix}{FOLDER}"
        return cls(place_at(stack.settings.catalogue.root or below, store))

    def opened(self, *, make: bool = False) -> dict[str, Table]:
        """Every table at its newest version, in the order in which they are posted.

        Those that are not there are empty, or are made.
        """
        return {
            name: open_table(self.place, name, schema, make=make) for name, schema in TABLES.items()
        }

    def as_of(self, table: Table) -> AsOf:
        told = table.told()
        return AsOf(
            page=table.mark,
            written_at=_time(told.get("written_at")),
            in_work=InWork.from_text(told.get("in_work", "{}")),
            proven_at=_time(told.get("proven_at")),
        )

    def busy(self, tries: int) -> CatalogueError:
        return CatalogueError(
            f"{self.place.root}: other posters were faster {tries} times; nothing waits for it, "
            "repeat"
        )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def scanned_at(topic_changes: Table) -> datetime | None:
    """When the last whole scan began, to some minutes; None before the first."""
    return _time(topic_changes.told().get("scanned_at"))


def wrong_nominations(topic_changes: Table) -> int:
    """Ledgers that rows said were due and were not, ever since the tables were made."""
    return int(topic_changes.told().get("wrong", 0))


def least(catalogue: Catalogue, tables: Mapping[str, Table]) -> AsOf:
    """How far an answer from these tables goes: as far as the one that is behind."""
    return catalogue.as_of(min((tables[name] for name in POSTED), key=lambda table: table.mark))


def answer(tables: Mapping[str, Table], sql: str) -> pa.Table:
    """Rows of a question over the tables, and `ledgers` and `topics` as they are now."""
    question = sql.strip().rstrip(";")
    views = f"ledgers as ({CURRENT}), topics as ({TOPICS})"
    return ask(f"with {views} select * from ({question})", tables)  # noqa: S608 - a question


def text(value: str) -> str:
    """As a text of a question."""
    return "'" + value.replace("'", "''") + "'"


def rows_of(tables: Mapping[str, Table], ledger_ids: Sequence[int]) -> list[dict[str, Any]]:
    """The newest rows of these ledgers."""
    if not ledger_ids:
        return []
    wanted = ", ".join(map(str, ledger_ids))
    found = ask(
        f"select * from ({CURRENT}) where ledger_id in ({wanted})",  # noqa: S608 - numbers
        {"ledger_changes": tables["ledger_changes"]},
    )
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows
