"""Why each ledger is not yet where policy wants it, for one ledger or a fleet, and the fleet's
figures.

Reads only. Owns: `ledger why`, `topic backlog` and the asset tiering_backlog all come from here.
Who names a topic gets its own policy level asked, too, which may have a broker load topics unless
`loads_nothing` is given; a count of the fleet does not ask and loads nothing. Figures are always of
all topics: a count over some of them would read as a drop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from tiering_assets.explain.asked_once import asking_once
from tiering_assets.explain.backlog_evidence import BacklogLook, Failures, backlog_look
from tiering_assets.explain.figures.lag_figures import Counted
from tiering_assets.explain.ledger_reasons import SeenLedger, why_not_released
from tiering_assets.explain.reasons.backlog_reason import BacklogReason, Because, of_wait
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.one_ledger import OneLedger, look_at_one, may_list, nobody_knows
from tiering_assets.look.ledger.plan import decide_sight
from tiering_assets.look.ledger.survey import LedgerView, SurveyedTopic, survey_topics
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.policy.policies import open_policies
from tiering_assets.records.keys import namespace_of
from tiering_assets.resources.metastore.topic_names import never_touched


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedLedger:
    """`due_at` is when its deletion lag has passed; None where it does not run."""

    view: LedgerView
    because: Because
    due_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReason:
    """`view` is None for a ledger that no topic of users lists."""

    ledger_id: int
    ml_name: str | None
    view: LedgerView | None
    because: Because


def explain_backlog(
    stack: Stack,
    ml_names: Iterable[str] | None = None,
    *,
    ask_topics: bool = False,
    loads_nothing: bool = False,
) -> Iterator[ExplainedLedger]:
    """Every ledger of the given managed ledgers (all user topics without), with its one reason.

    What the release gate says of due ones is for the run. With `loads_nothing` no topic is asked
    whose bundle no broker owns.
    """
    with backlog_look(stack, ask_topics=ask_topics, loads_nothing=loads_nothing) as look:
        for topic in survey_topics(stack, ml_names):
            for ledger, because in look.explain(topic):
                yield ExplainedLedger(view=ledger.view, because=because, due_at=ledger.due_at)


def explain_ledger(stack: Stack, ledger_id: int, *, loads_nothing: bool = False) -> LedgerReason:
    """One ledger's reason, its topic's own policy level and the release gate included.

    `loads_nothing` is that of explain_backlog. Reads the ledger's and its topic's keys alone, so
    that other ledgers of the topic, which may use up a run's caps or the node's room first, say
    nothing.

    Raises:
        LedgerNotFoundError: neither tree nor any record knows it.
    """
    stack = asking_once(stack)
    one = look_at_one(stack, ledger_id)
    topic, node, surveyed = one.sight.topic, one.sight.topic_node, one.surveyed
    view, because = None, None
    if surveyed is not None and topic is not None and node is not None:
        view = surveyed.view
        if never_touched(view.ml_name, topic.properties) is None:
            alone = SurveyedTopic(
                ml_name=view.ml_name,
                info=topic,
                written_ms=node.stat.mtime_ms,
                ledgers=(surveyed,),
            )
            because = _explain_one(stack, one, alone, loads_nothing=loads_nothing)
    return LedgerReason(
        ledger_id=ledger_id,
        ml_name=one.sight.ml_name,
        view=None if because is None else view,
        because=because or _explain_unlisted(one),
    )


def _explain_one(
    stack: Stack, one: OneLedger, alone: SurveyedTopic, *, loads_nothing: bool
) -> Because:
    [surveyed] = alone.ledgers
    seen = SeenLedger(stack, one.sight, surveyed.view, one.publications)
    uids = [attempt.record.uid for attempt in one.attempts]
    with open_policies(stack, loads_nothing=loads_nothing) as policies:
        look = BacklogLook(
            stack,
            policies,
            ask_topics=True,
            loads_nothing=loads_nothing,
            failed=Failures.of_ledger(stack, surveyed.view, uids),
            ask_gate=lambda: why_not_released(seen),
        )
        [(_ledger, because)] = look.explain(alone)
    return because


def _explain_unlisted(one: OneLedger) -> Because:
    sight, ml_name = one.sight, one.sight.ml_name
    if sight.node is None and not one.attempts:
        raise nobody_knows(one)
    if ml_name is not None and never_touched(ml_name, {}) is None and sight.listed is None:
        return Because(BacklogReason.EXPIRED, f"{topic_of(ml_name)} does not list it any more")
    decision = decide_sight(sight)
    if isinstance(decision, Wait):
        because = of_wait(decision)
        return replace(because, detail="; ".join([because.detail, *may_list(one)]))
    return Because(BacklogReason.NOT_ADMITTED, "its topic lists it since just now; look again")


def counted(one: ExplainedLedger) -> Counted:
    """What is counted of a ledger."""
    return Counted(
        topic=one.view.topic,
        namespace=namespace_of(one.view.ml_name),
        reason=one.because.reason,
        state=one.view.state,
        bytes=one.view.bytes or 0,
        closed_at=one.view.closed_at,
        due_at=one.due_at,
        certified=one.view.offloaded_by == "tierkeeper",
        damaged=one.because.reason is BacklogReason.DAMAGED,
    )
