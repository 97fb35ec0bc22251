"""Pages of the day book as they were read, with the records that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tiering_assets.records.bucket_models import DayBookPage, NamedRecord
from tiering_assets.records.stored import Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """A page, or why there is none to read."""

    number: int
    stored: Stored[DayBookPage] | None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecord:
    """What lies at a key that a page names: a record, or why there is none to go by."""

    stored: Stored[Any] | None = None
    missing: bool = False
    why: str | None = None


@dataclass(frozen=True, slots=True)
class ReadPages:
    """`found` has the records by key, but for those of which the name is enough."""

    pages: Sequence[ReadPage]
    found: Mapping[str, FoundRecord]

    def behind(self, mark: int) -> ReadPages:
        return replace(self, pages=[page for page in self.pages if page.number > mark])

    @property
    def readable(self) -> Iterator[DayBookPage]:
        return (page.stored.record for page in self.pages if page.stored is not None)


def written_on(page: DayBookPage) -> tuple[NamedRecord, ...]:
    """The records that a page says are there."""
    return page.records if page.phase in ("close", "proof") else ()
