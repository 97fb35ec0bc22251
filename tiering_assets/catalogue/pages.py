"""Pages of the day book, read in their order for the catalogue.

Pages have no gap, so the next one is asked for by its number: one request finds that there is none.
A page that is missing below the newest, or that cannot be read, is passed over and told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from tiering_assets.catalogue.facts.read_pages import ReadPage
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage
from tiering_assets.resources.errors import FormatError

RECORDS_MAX = 20_000  # named by the pages of one posting
_AHEAD = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInWork:
    """Ledgers that a run took up and is not done with. `since` is by its own clock."""

    since: datetime
    ledgers: frozenset[int]


@dataclass(frozen=True, slots=True)
class InWork:
    """What runs have taken up, by run."""

    runs: Mapping[str, RunInWork] = field(default_factory=dict)

    @property
    def ledgers(self) -> set[int]:
        return {ledger_id for run in self.runs.values() for ledger_id in run.ledgers}

    def behind(self, pages: Iterable[ReadPage]) -> InWork:
        """After these pages."""
        runs = dict(self.runs)
        for page in (one.stored.record for one in pages if one.stored is not None):
            name = page.for_run or page.writer.run_id
            run = runs.pop(name, RunInWork(since=page.written_at, ledgers=frozenset()))
            if page.phase == "open":
                run = replace(run, ledgers=run.ledgers | {*page.ledgers})
            elif page.phase == "close":
                run = replace(run, ledgers=run.ledgers - {*page.ledgers})
            if run.ledgers:
                runs[name] = run
        return InWork(runs)

    def died(self, pages: Iterable[ReadPage]) -> int:
        """How many of them these pages say to have died with ledgers in work."""
        runs, count = self, 0
        for page in pages:
            left = runs.behind([page])
            name = None if page.stored is None else page.stored.record.for_run
            count += name is not None and name in runs.runs and name not in left.runs
            runs = left
        return count

    def as_text(self) -> str:
        return json.dumps(
            {name: [run.since.isoformat(), *sorted(run.ledgers)] for name, run in self.runs.items()}
        )

    @classmethod
    def from_text(cls, text: str) -> InWork:
        return cls(
            {
                name: RunInWork(since=datetime.fromisoformat(since), ledgers=frozenset(ledgers))
                for name, (since, *ledgers) in json.loads(text).items()
            }
        )


def read_pages(stack: Stack, after: int, *, records_max: int = RECORDS_MAX) -> list[ReadPage]:
    """The pages behind `after`, until they name so many records; one page at least, if any."""
    found: list[ReadPage] = []
    named = 0
    for page in _pages(stack, after):
        found.append(page)
        named += 0 if page.stored is None else len(page.stored.record.records)
        if named >= records_max:
            break
    return found


def newest_page(stack: Stack) -> int:
    """Its number, 0 where there is none: one request."""
    prefix = stack.book.prefix
    for one in stack.objects.list_objects(prefix + keys.DAY_BOOK, at_once=1):
        try:
            return keys.page_number(one.key.removeprefix(prefix))
        except ValueError:
            continue
    return 0


def _pages(stack: Stack, after: int) -> Iterator[ReadPage]:
    number, ahead = after + 1, 1
    while True:
        some = stack.in_parallel(lambda n: read_page(stack, n), range(number, number + ahead))
        for page in some:
            if page is not None:
                yield page
                number += 1
                continue
            newest = newest_page(stack)
            if newest < number:
                return
            again = read_page(stack, number)  # written since, or gone
            yield again or ReadPage(number=number, stored=None, why="it is gone")
            number += 1
            break
        ahead = _AHEAD


def read_page(stack: Stack, number: int) -> ReadPage | None:
    """One request. None where nothing lies there."""
    try:
        stored = stack.book.read(DayBookPage, keys.page(number))
    except FormatError as error:
        return ReadPage(number=number, stored=None, why=str(error))
    if stored is None:
        return None
    if stored.record.number != number:
        why = f"it says that it is page {stored.record.number}"
        return ReadPage(number=number, stored=None, why=why)
    return ReadPage(number=number, stored=stored)
