"""Why no ledger of the fleet is further than it is: by the catalogue's rows, else by a survey.

Reads only. Owns: rows count what is settled, by topic and all of one kind at once. What is not yet
where policy wants it is explained ledger by ledger, by the rules that a survey uses. Of a topic
with such ledgers its node is read only where one is proven, or where it is terminated.

Grows with the topics, and with the ledgers that are not settled; ten million others are one
question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Final

import pyarrow as pa

from tiering_assets.catalogue.nominate import ProvenTables
from tiering_assets.catalogue.view import answer
from tiering_assets.explain.backlog import ExplainedLedger, counted, explain_backlog
from tiering_assets.explain.backlog_evidence import Failures, backlog_look
from tiering_assets.explain.backlog_reason import BacklogEvidence, Because, TopicBlockers
from tiering_assets.explain.backlog_rules import decide_backlog_reason
from tiering_assets.explain.backlog_topic import reloads_of_last_hour
from tiering_assets.explain.lag_figures import Counted, FleetFigures, count_figures
from tiering_assets.explain.next_steps import next_step
from tiering_assets.fleet import questions
from tiering_assets.fleet.beside import (
    asked_about,
    look_beside,
    open_attempts,
    stored_at,
    tried,
)
from tiering_assets.fleet.rows import Beside, Row, as_listed, full_name, settled_state, surveyed
from tiering_assets.fleet.source import FRESH, tables_to_ask, told_if_many
from tiering_assets.ground import damage_advice
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import HOLD, Brakes, read_brakes
from tiering_assets.look.ledger.resume import list_failures
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import SurveyedLedger, SurveyedTopic
from tiering_assets.look.topic.user_topics import readable_topics
from tiering_assets.records.keys import namespace_of
from tiering_assets.resources.tables import each_row

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
    each: Told = lambda _one: None,
) -> FleetBacklog:
    """Count the ledgers of these managed ledgers (of all user topics without).

    `ask_topics` and `loads_nothing` are those of explain_backlog. `each` is told of every ledger
    that is not settled, as it is met.
    """
    source = tables_to_ask(stack, fresh=fresh)
    asking = {"ask_topics": ask_topics, "loads_nothing": loads_nothing}
    if source is not None:
        return _counted(stack, _by_rows(stack, source, topics, **asking), source, each)
    read = told_if_many(stack, explain_backlog(stack, topics, **asking), fresh=fresh)
    return _counted(stack, read, None, each)


def count_rows(stack: Stack, source: ProvenTables) -> FleetBacklog:
    """The same of all topics, by tables that were opened just now."""
    rows = _by_rows(stack, source, None, ask_topics=False, loads_nothing=False)
    return _counted(stack, rows, source, lambda _one: None)


def _counted(
    stack: Stack,
    explained: Iterable[ExplainedLedger | Alike],
    source: ProvenTables | None,
    each: Told,
) -> FleetBacklog:
    steps = Steps()

    def counts() -> Iterator[Counted]:
        for one in explained:
            steps.add(one.because)
            if isinstance(one, ExplainedLedger):
                each(one)
                yield counted(one)
            else:
                yield one.counted

    reloads = sum(reloads_of_last_hour(stack).values())
    figures = count_figures(counts(), disturbances_last_hour=reloads, now=stack.now())
    return FleetBacklog(figures=figures, steps=steps.said, source=source)


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


@dataclass(frozen=True, slots=True)
class Alike:
    """Settled ledgers of a topic."""

    counted: Counted
    because: Because


def _by_rows(
    stack: Stack,
    source: ProvenTables,
    topics: Sequence[str] | None,
    *,
    ask_topics: bool,
    loads_nothing: bool,
) -> Iterator[ExplainedLedger | Alike]:
    asked = asked_about(stack, source.tables, topics)
    holds = read_brakes(stack, HOLD)
    for row in each_row(answer(source.tables, questions.settled_counts(asked))):
        yield _alike(row, holds, stack.deletion_lag)
    rows = answer(source.tables, questions.unsettled_ledgers(asked))
    opened, failed_at = open_attempts(rows), list_failures(stack)
    beside = replace(
        look_beside(stack, rows, opened, holds=holds, due_before=asked.published_before),
        attempted_at=stored_at(stack, tried(rows, failed_at)),
    )
    with backlog_look(
        stack,
        ask_topics=ask_topics,
        loads_nothing=loads_nothing,
        failed=Failures.of_attempts(stack, opened, failed_at),
    ) as look:
        for topic in _topics(stack, rows, beside, asked.terminated):
            for ledger, because in look.explain(topic):
                yield ExplainedLedger(view=ledger.view, because=because, due_at=ledger.due_at)


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


def _alike(row: Row, holds: Brakes, lag: timedelta) -> Alike:
    ml_name = row["topic"]
    hold = holds.why_topic(ml_name)
    state = settled_state(row["state"], hold)
    at: datetime | None = row["published_at"] if row["recorded"] else None
    due_at = None if at is None else at + lag
    damaged = row["offloaded"] and (row["damaged"] or row["quarantined"])
    because = decide_backlog_reason(
        BacklogEvidence(
            state=state,
            topic=TopicBlockers(),
            quarantined=row["quarantined"],
            damaged=damage_advice.next_step(ml_name) if damaged else None,
            certified=row["certified"],
            recorded=row["recorded"],
            by_broker=row["offloaded"] and not row["ours"],
            hold=hold,
            due_at=due_at,
        )
    )
    return Alike(
        Counted(
            topic=full_name(ml_name),
            namespace=namespace_of(ml_name),
            reason=because.reason,
            state=state,
            bytes=row["bytes"],
            closed_at=row["closed_at"],
            due_at=due_at,
            certified=row["certified"],
            damaged=damaged,
            ledgers=row["ledgers"],
        ),
        because,
    )
