"""Where an answer about many topics comes from: the catalogue's tables, or topics and records read.

Owns: people are never refused for a catalogue that is switched off, not proven yet or behind, nor
for a package that is missing. Then everything is read, which takes longer and is said. One that is
damaged fails by name.

Few topics that somebody names are read. Rows are as old as their posting, and a topic of a minute
ago has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from tiering_assets.catalogue.nominate import STALE, ProvenTables, proven
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.ground.moments import moment
from tiering_assets.ground.stack import Stack
from tiering_assets.resources.tables import missing_package

FRESH: Final = STALE
"""How long ago the last whole scan of topics may have begun, unless somebody says otherwise."""
SURVEYED_MAX: Final = 50_000
"""Ledgers above which reading all of them is slow: `make bench-fleet` measured 4 s for a survey of
10,000, 30 s for one of 50,000, and 50 s for all figures of these.
"""
NAMED_MAX: Final = 100
"""Topics that are read because somebody named them: with 100 ledgers each that takes 4 s."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """Why nobody asks the catalogue, and what changes that."""

    why: str
    next_step: str


def tables_or_why_not(stack: Stack) -> ProvenTables | Unasked:
    """The tables, however long ago topics were looked at."""
    if not stack.settings.catalogue.enabled:
        return Unasked(
            why="catalogue.enabled is false",
            next_step="set catalogue.enabled = true, then `tierkeeper catalogue prove` once",
        )
    if (package := missing_package()) is not None:
        return Unasked(
            why=f"package {package} is not installed", next_step=f"pip install {package}"
        )
    found = proven(Catalogue.of(stack))
    if found is None:
        return Unasked(
            why="the catalogue is not proven",
            next_step="`tierkeeper catalogue post`, which the sensor `catalogue` does by itself, and "
            "`tierkeeper catalogue prove` once",
        )
    return found


def tables_to_ask(
    stack: Stack, topics: Sequence[str] | None = None, *, fresh: timedelta = FRESH
) -> ProvenTables | None:
    """The tables about these topics (all without), None where topics and records are to be read."""
    if not stack.settings.catalogue.enabled or not fresh:
        return None
    if topics is not None and len(topics) <= NAMED_MAX:
        return None
    found = tables_or_why_not(stack)
    if isinstance(found, Unasked):
        if missing_package() is not None:
            stack.narrate(f"{found.why}: topics and records are read instead")
        return None
    if stack.now() - found.scanned_at > fresh:
        stack.narrate(
            f"the catalogue last looked at topics {moment(found.scanned_at)}: they are read instead"
        )
        return None
    return found


def _one(_read: object) -> int:
    return 1


def told_if_many(
    stack: Stack,
    read: Iterable[T],
    *,
    fresh: timedelta = FRESH,
    ledgers: Callable[[T], int] = _one,
) -> Iterator[T]:
    """What is read in the catalogue's place. Why it was not asked is told once ledgers are many."""
    count, told = 0, not fresh  # somebody wanted everything to be read
    for one in read:
        count += ledgers(one)
        if not told and count > SURVEYED_MAX:
            told = True
            unasked = tables_or_why_not(stack)
            if isinstance(unasked, Unasked):
                stack.narrate(
                    f"{unasked.why}, so that more than {SURVEYED_MAX:,} ledgers are read, which is "
                    f"slow: {unasked.next_step}"
                )
        yield one


def document_of(found: ProvenTables | None) -> dict[str, Any] | None:
    """How far an answer goes, for programs; None where everything was read."""
    if found is None:
        return None
    return {
        "page": found.as_of.page,
        "written_at": found.as_of.written_at,
        "scanned_at": found.scanned_at,
        "ledgers_in_work": len(found.as_of.in_work.ledgers),
    }


def said_of(found: ProvenTables | None) -> str | None:
    """The same as a last line, for people."""
    if found is None:
        return None
    return f"{found.as_of}; topics as of {moment(found.scanned_at)}"
