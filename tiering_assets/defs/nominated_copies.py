"""Which copies a scrub run looks at: those that the catalogue nominates, or all without it.

Owns: rows choose no more than the run's budgets reach, by the plan that judges them afterwards. All
topics and the bucket are listed instead where nobody can say what is in the tables, and where that
takes less time than to ask for each nominated copy by itself. Rows that were wrong are made anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

if TYPE_CHECKING:
    from tiering_assets.catalogue.nominate_copies import CopyFigures, CopyRow
    from tiering_assets.ground.stack import Stack
    from tiering_assets.scrub.plan import Candidate

LISTED_IN_THE_TIME: Final = 30
"""Copies that are listed in the time in which one is judged by itself: `make bench-fleet`."""
_POSTED_MAX: Final = 1000  # of one run; a request or two for each
_NONE: Final = UUID(int=0)
"""Nothing is chosen by it."""
_TELL: Final = ("certificates", "scrubs", "quarantines", "damage")


@dataclass(frozen=True, slots=True, kw_only=True)
class NominatedCopies:
    """Ledgers by managed ledger, and what rows count of all copies. `as_of` is for people."""

    ledgers: Mapping[str, Collection[int]]
    figures: CopyFigures
    now: datetime
    as_of: str


def nominate_copies(stack: Stack, *, deep: bool) -> NominatedCopies | None:
    """None where all copies are to be listed: also where tables cannot be read, which is told."""
    from tiering_assets.resources.errors import CatalogueError

    try:
        return _nominated(stack, deep=deep)
    except CatalogueError as error:
        stack.narrate(f"all copies are listed: {error}")
        return None


def _nominated(stack: Stack, *, deep: bool) -> NominatedCopies | None:
    from tiering_assets.catalogue.nominate_copies import copies_broken, copies_due, copy_figures
    from tiering_assets.fleet.source import said_of, tables_to_ask
    from tiering_assets.scrub.plan import LOOK_REQUESTS, Depth, plan_scrub
    from tiering_assets.scrub.scrub import budget_of, intervals_of

    source = tables_to_ask(stack)
    if source is None:
        return None
    now = stack.objects.server_time()
    intervals, budget = intervals_of(stack, deep=deep), budget_of(stack)
    figures = copy_figures(
        source.tables, now=now, shallow_s=intervals.shallow_s, deep_s=intervals.deep_s
    )
    most = max(1, budget.requests // LOOK_REQUESTS)
    broken = copies_broken(source.tables)
    rows = {one.ledger_id: one for one in broken}
    for depth in Depth:
        every_s = intervals.of(depth)
        for one in copies_due(source.tables, depth.value, now=now, every_s=every_s, most=most):
            rows[one.ledger_id] = one
    to_look_at = [_as_told(one) for one in rows.values() if not (one.failing and one.on_bookies)]
    plan = plan_scrub(to_look_at, now=now, intervals=intervals, budget=budget)
    chosen = {one.ledger_id for one in broken} | {look.candidate.ledger_id for look in plan.looks}
    if len(chosen) * LISTED_IN_THE_TIME > figures.copies:
        return None
    return NominatedCopies(
        ledgers=_by_topic(rows[ledger_id] for ledger_id in sorted(chosen)),
        figures=figures,
        now=now,
        as_of=str(said_of(source)),
    )


def _as_told(row: CopyRow) -> Candidate:
    """A copy as rows tell of it: good enough to choose by."""
    from tiering_assets.scrub.plan import Candidate

    at = row.published_at
    return Candidate(
        ledger_id=row.ledger_id,
        uid=_NONE,
        ml_name=row.topic,
        object_bytes=row.object_bytes,
        certified=row.certified,
        in_bookkeeper=row.on_bookies,
        published_at_ms=0 if at is None else int(at.timestamp() * 1000),
        shallow_at=row.shallow_at,
        deep_at=row.deep_at,
        failed_at=row.failed_at,
    )


def _by_topic(rows: Iterable[CopyRow]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for row in rows:
        found.setdefault(row.topic, set()).add(row.ledger_id)
    return found


def some_of(nominated: NominatedCopies, ledger_ids: Collection[int]) -> dict[str, set[int]]:
    """Of what was nominated these ledgers, by managed ledger."""
    found = {name: {*some} & {*ledger_ids} for name, some in nominated.ledgers.items()}
    return {name: some for name, some in found.items() if some}


def post_again(stack: Stack, nominated: NominatedCopies, needless: Collection[int]) -> None:
    """Rows said that copies were due which are not: they are made anew, and counted.

    Records that tell when each was looked at are named in the day book again; topics are read.
    """
    from tiering_assets.resources.errors import TierkeeperError

    if not needless:
        return
    said = f"{len(needless)} copies were not due, as the catalogue said"
    try:
        _post_again(stack, nominated, needless)
    except TierkeeperError as error:  # what was looked at stays looked at
        said = f"{said}; their rows are as they were: {error}"
    stack.narrate(said)


def _post_again(stack: Stack, nominated: NominatedCopies, needless: Collection[int]) -> None:
    from tiering_assets.catalogue.died import digested
    from tiering_assets.catalogue.scan.scan import scan_again
    from tiering_assets.catalogue.view import Catalogue
    from tiering_assets.look.topic.user_topics import readable_topics

    some = sorted(needless)[:_POSTED_MAX]
    below = [f"{folder}/{ledger_id}/" for ledger_id in some for folder in _TELL]
    found = [key for keys in stack.in_parallel(stack.book.keys, below) for key in keys]
    if found:
        stack.book.name_found(digested(stack, found))
    topics = [*readable_topics(stack, sorted(some_of(nominated, some)))]
    if topics:
        scan_again(stack, Catalogue.of(stack), topics, wrong=len(needless))
