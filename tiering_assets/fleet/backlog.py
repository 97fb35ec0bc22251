"""Why no ledger of the fleet is further than it is: by the catalogue's rows, else by a survey.

Reads only. Owns: rows count what is settled, and what waits for a threshold alone, in columns. What
else is not yet where policy wants it is explained ledger by ledger, by the rules that a survey
uses. Of a topic with such ledgers its node is read only where one is proven, or where it is
terminated.

Grows with the topics, in columns, and with the ledgers that a run has touched and not settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import groupby, islice
from typing import Final

import pyarrow as pa

from tiering_assets.catalogue.nominate import ProvenTables
from tiering_assets.catalogue.view import answer
from tiering_assets.explain.backlog import ExplainedLedger, counted, explain_backlog
from tiering_assets.explain.backlog_evidence import Failures, backlog_look
from tiering_assets.explain.backlog_topic import reloads_of_last_hour
from tiering_assets.explain.figures.count_figures import count_tables, in_columns
from tiering_assets.explain.figures.lag_figures import Counted, FiguresByTopic, FleetFigures
from tiering_assets.explain.reasons.backlog_reason import Because
from tiering_assets.explain.reasons.next_steps import next_step
from tiering_assets.explain.waiting import tell_waiting
from tiering_assets.fleet import questions
from tiering_assets.fleet.alike import count_settled
from tiering_assets.fleet.beside import (
    asked_about,
    look_beside,
    open_attempts,
    stored_at,
    tried,
    unsettled,
)
from tiering_assets.fleet.rows import Beside, as_listed, surveyed
from tiering_assets.fleet.source import FRESH, tables_to_ask, told_if_many
from tiering_assets.fleet.topic_figures import TopicsOfRows
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import HOLD, read_brakes
from tiering_assets.look.ledger.resume import list_failures
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import SurveyedLedger, SurveyedTopic
from tiering_assets.look.topic.user_topics import readable_topics
from tiering_assets.resources.tables import each_row, without_views

_MANY: Final = 20_000  # reasons with their details
_TOPICS: Final = 2000  # at once
Told = Callable[[ExplainedLedger], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetBacklog:
    """`steps` is by reason what people do next. `source` is None where topics were read."""

    figures: FleetFigures
    steps: Mapping[str, list[str]]
    source: ProvenTables | None


def take_backlog(
    stack: Stack,
    topics: Sequence[str] | None = None,
    *,
    fresh: timedelta = FRESH,
    ask_topics: bool = False,
    loads_nothing: bool = False,
    each: Told | None = None,
) -> FleetBacklog:
    """Count the ledgers of these managed ledgers (of all user topics without).

    `ask_topics` and `loads_nothing` are those of explain_backlog. `each` is told of every ledger
    that is not settled, as it is met; where somebody wants that, each of them is explained.
    """
    source = tables_to_ask(stack, topics, fresh=fresh)
    asking = {"ask_topics": ask_topics, "loads_nothing": loads_nothing}
    if source is not None:
        return _by_rows(stack, source, topics, each=each, **asking)
    steps = Steps()
    read = told_if_many(stack, explain_backlog(stack, topics, **asking), fresh=fresh)
    counts = in_columns(_explained(read, steps, each))
    return FleetBacklog(figures=_figures(stack, counts), steps=steps.said, source=None)


def count_rows(stack: Stack, source: ProvenTables) -> FleetBacklog:
    """The same of all topics, by tables that were opened just now."""
    return _by_rows(stack, source, None, ask_topics=False, loads_nothing=False, each=None)


def _figures(
    stack: Stack, counts: Iterable[pa.Table], topics: FiguresByTopic | None = None
) -> FleetFigures:
    reloads = sum(reloads_of_last_hour(stack).values())
    return count_tables(counts, disturbances_last_hour=reloads, now=stack.now(), topics=topics)


def _explained(
    explained: Iterable[ExplainedLedger], steps: Steps, each: Told | None
) -> Iterator[Counted]:
    for one in explained:
        steps.add(one.because)
        if each is not None:
            each(one)
        yield counted(one)


class Steps:
    """By reason, what is done about its ledgers: a reason of many cases may have several."""

    def __init__(self) -> None:
        self._seen: dict[Because, None] = {}

    def add(self, because: Because) -> None:
        if len(self._seen) < _MANY:
            self._seen[because] = None

    @property
    def said(self) -> dict[str, list[str]]:
        found: dict[str, dict[str, None]] = {}
        for because in self._seen:
            found.setdefault(because.reason.value, {})[next_step(because)] = None
        return {reason: sorted(steps) for reason, steps in sorted(found.items())}


def _by_rows(
    stack: Stack,
    source: ProvenTables,
    topics: Sequence[str] | None,
    *,
    ask_topics: bool,
    loads_nothing: bool,
    each: Told | None,
) -> FleetBacklog:
    steps, asked = Steps(), asked_about(stack, source.tables, topics)
    holds, failed_at = read_brakes(stack, HOLD), list_failures(stack)
    by_namespace = not holds.of_topics
    counts = partial(count_settled, holds=holds, lag=stack.deletion_lag)
    found = answer(source.tables, questions.settled_counts(asked, by_namespace=by_namespace))
    settled, rest = counts(without_views(found), tell=steps.add), list[pa.Table]()
    del found
    rows = unsettled(source.tables, asked)
    opened = open_attempts(rows)
    beside = replace(
        look_beside(stack, rows, opened, holds=holds, due_before=asked.published_before),
        attempted_at=stored_at(stack, tried(rows, failed_at)),
    )
    failed = Failures.of_attempts(stack, opened, failed_at)
    with backlog_look(
        stack, ask_topics=ask_topics, loads_nothing=loads_nothing, failed=failed
    ) as look:
        if each is None and not ask_topics:
            tried_now = {*failed_at, *beside.claimed}
            waiting = tell_waiting(
                stack,
                look.policies,
                rows,
                there=beside.in_bookkeeper,
                tried=tried_now,
                terminated=asked.terminated,
            )
            for because in waiting.reasons:
                steps.add(because)
            rest.append(waiting.counted)
            rows = waiting.rest
        explained = (
            ExplainedLedger(view=ledger.view, because=because, due_at=ledger.due_at)
            for topic in _topics(stack, rows, beside, asked.terminated)
            for ledger, because in look.explain(topic)
        )
        rest += in_columns(_explained(explained, steps, each))
    of_topics = None
    if by_namespace:
        of_topics = TopicsOfRows(
            source.tables,
            asked,
            settled=settled,
            rest=rest,
            count=partial(counts, tell=lambda _because: None),
            now=stack.now(),
        )
    figures = _figures(stack, [settled, *rest], of_topics)
    return FleetBacklog(figures=figures, steps=steps.said, source=source)


def _topics(
    stack: Stack, rows: pa.Table, beside: Beside, terminated: Set[str]
) -> Iterator[SurveyedTopic]:
    """Topics with their unsettled ledgers alone, read anew where rows do not say enough."""
    grouped = groupby(each_row(rows), key=lambda row: row["topic"])
    by_topic = ((name, [*found]) for name, found in grouped)
    while lot := [*islice(by_topic, _TOPICS)]:
        seen = {
            name: tuple(surveyed(row, beside) for row in found if row["unsettled"])
            for name, found in lot
        }
        read = {
            topic.ml_name: topic
            for topic in readable_topics(
                stack, [name for name in seen if name in terminated or _has_proven(seen[name])]
            )
        }
        for name, found in lot:
            topic = read.get(name)
            yield SurveyedTopic(
                ml_name=name,
                info=as_listed(found) if topic is None else topic.info,
                written_ms=0 if topic is None else topic.node.stat.mtime_ms,
                ledgers=seen[name],
            )


def _has_proven(ledgers: Iterable[SurveyedLedger]) -> bool:
    """Then the size of its node counts, and when it was last reloaded."""
    return any(one.view.state is LedgerState.VERIFIED for one in ledgers)
