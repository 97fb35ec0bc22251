"""Is everything in the catalogue? A full listing of the records tells, and posts what is not.

It needs no page to have worked. What no page named, because its run was killed or is of an older
version, is named by a `proof` page and posted by it like everything else. Runs that died are
closed. What pages named and the bucket has not is told, and changes nothing: an audit judges it.

A request for a thousand records, and one for each whose content counts and that was not named. Four
listings are under way at a time, of a lot of keys each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tiering_assets.catalogue.bulk import in_bulk
from tiering_assets.catalogue.died import close_dead, digested
from tiering_assets.catalogue.facts.record_facts import ledger_and_attempt
from tiering_assets.catalogue.listings import listed_lots
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.view import AsOf, Catalogue, Tables, answer, least
from tiering_assets.ground.named_records import is_lasting
from tiering_assets.ground.stack import Stack

_NAMED: Final = "max(page) filter (where what <> 'gone')"
_GONE: Final = "max(page) filter (where what = 'gone')"
TOLD_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """`late` records were named by no page before, `missing` ones are named and not there.

    `died` are runs that were closed. `first` are keys of missing ones, at most TOLD_MAX.
    """

    listed: int
    late: int
    missing: int
    first: tuple[str, ...]
    died: tuple[str, ...]
    as_of: AsOf


def prove(stack: Stack, catalogue: Catalogue) -> Proof:
    """Compare the catalogue with a listing of every record, and post what it had not."""
    read, tables = in_bulk(stack), _post_all(stack, catalogue)
    died = close_dead(stack, catalogue, least(catalogue, tables))
    if died.runs:
        tables = _post_all(stack, catalogue)
    busy = least(catalogue, tables).in_work.ledgers
    listed, late, lost = 0, died.late, list[str]()
    for after, upto, found in listed_lots(read, tables):
        listed += len(found)
        known, _gone = _events(tables, after, upto)
        there = {*found}
        unnamed = [key for key in found if key not in known and _ledger(key) not in busy]
        late += len(unnamed)
        if unnamed:
            stack.book.name_found(digested(read, unnamed))
        lost += [key for key in known - there if is_lasting(key)]
    tables = _post_all(stack, catalogue)
    missing = _still(stack, tables, sorted(lost))
    if not missing:
        stack.book.name_found(())
        tables = _post_all(stack, catalogue)
    return Proof(
        listed=listed,
        late=late,
        missing=len(missing),
        first=tuple(missing[:TOLD_MAX]),
        died=died.runs,
        as_of=least(catalogue, tables),
    )


def _post_all(stack: Stack, catalogue: Catalogue) -> Tables:
    """The tables when no page was behind them."""
    while post(stack, catalogue).pages:
        pass
    return catalogue.opened()


def _events(tables: Tables, after: str, upto: str) -> tuple[set[str], set[str]]:
    """Keys that pages named between two keys, and those of them that a later page says are gone."""
    rows = answer(
        tables,
        f"select key, {_NAMED} as named, {_GONE} as gone from events "  # noqa: S608 - our keys
        f"where kind <> 'day-book' and key > '{after}' and key <= '{upto}' group by key",
    ).to_pylist()
    known = {row["key"] for row in rows if row["named"] is not None}
    gone = {row["key"] for row in rows if (row["gone"] or 0) > (row["named"] or 0)}
    return known - gone, gone


def _still(stack: Stack, tables: Tables, lost: Sequence[str]) -> list[str]:
    """Those that are not there now either, and that no page has said to go meanwhile."""
    found = []
    for key in lost:
        _known, gone = _events(tables, key[:-1], key)
        if key not in gone and not stack.book.exists(key):
            found.append(key)
    return found


def _ledger(key: str) -> int | None:
    return ledger_and_attempt(key)[0]
