"""Lists of ledgers with their states, by the catalogue's rows, else by a survey. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice

from tiering_assets.catalogue.nominate import ProvenTables
from tiering_assets.catalogue.view import answer
from tiering_assets.fleet import questions
from tiering_assets.fleet.beside import asked_about, look_beside, open_attempts
from tiering_assets.fleet.rows import settled_state, surveyed, view_of
from tiering_assets.fleet.source import FRESH, tables_to_ask, told_if_many
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import HOLD, read_brakes
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import LedgerView, survey
from tiering_assets.resources.sql import sql_text
from tiering_assets.resources.tables import each_row, without_views


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerList:
    """Ledgers by topic and id. `cut` is whether there are more; `source` None: topics were read."""

    views: Sequence[LedgerView]
    cut: bool
    source: ProvenTables | None


def list_ledgers(
    stack: Stack,
    topics: Sequence[str] | None = None,
    *,
    states: Set[LedgerState] = frozenset(),
    only: Set[int] = frozenset(),
    most: int | None = None,
    fresh: timedelta = FRESH,
) -> LedgerList:
    """Those of these topics, states and ids (of any without), at most so many."""
    source = tables_to_ask(stack, topics, fresh=fresh)

    def wanted(view: LedgerView) -> bool:
        return (not states or view.state in states) and (not only or view.ledger_id in only)

    if source is None:
        found: Iterable[LedgerView] = told_if_many(stack, survey(stack, topics), fresh=fresh)
    else:
        found = _by_rows(stack, source, topics, states, only, most)
    views = [*islice(filter(wanted, found), None if most is None else most + 1)]
    cut = most is not None and len(views) > most
    return LedgerList(views=views[:most], cut=cut, source=source)


def _by_rows(
    stack: Stack,
    source: ProvenTables,
    topics: Sequence[str] | None,
    states: Set[LedgerState],
    only: Set[int],
    most: int | None,
) -> Iterator[LedgerView]:
    asked = asked_about(stack, source.tables, topics)
    if only:
        asked = replace(asked, some=f"{asked.some} and {questions.of_ledgers(only)}")
    names, holds = {one.value for one in states}, read_brakes(stack, HOLD)
    if LedgerState.HELD in states:  # by a hold of its topic, of which no row tells
        names.add(LedgerState.PUBLISHED.value)
    told_by_holds = bool(holds.keys) and states & {LedgerState.HELD, LedgerState.PUBLISHED}
    if most is not None and not told_by_holds:
        question = questions.last_topic_of(asked, names, most=most + 1)
        [last] = answer(source.tables, question)["topic"].to_pylist()
        if last is not None:
            asked = replace(asked, some=f"{asked.some} and topic <= {sql_text(last)}")
    rows = without_views(answer(source.tables, questions.listed_ledgers(asked, names)))
    opened = open_attempts(rows)
    beside = look_beside(stack, rows, opened, holds=holds, due_before=asked.published_before)
    for row in each_row(rows):
        if row["unsettled"]:
            yield surveyed(row, beside).view
        else:
            yield view_of(row, settled_state(row["state"], holds.why_topic(row["topic"])))
