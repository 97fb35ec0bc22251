"""Why each ledger is not yet where policy wants it, for one ledger or a fleet.

Reads only. Owns: `ledger why`, `topic backlog` and the asset tiering_backlog all come from here. Who
names a topic gets its own policy level asked, too, which may have a broker load topics unless
`loads_nothing` is given; a count of the fleet does not ask and loads nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from resources.errors import LedgerNotFoundError
from resources.metastore.topic_names import never_touched
from tiering_assets.steps.backlog_evidence import Look
from tiering_assets.steps.plan import decide_sight, look_at
from tiering_assets.steps.policies import open_policies
from tiering_assets.steps.resume import attempts_of
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.survey import LedgerView, ml_names_of, survey_topics
from tiering_assets.steps.topic_evidence import topic_of
from tiering_assets.tiering.backlog_counts import Explained, ReasonCount, count_reasons
from tiering_assets.tiering.backlog_reason import BacklogReason, Because, of_wait
from tiering_assets.tiering.reasons import Wait


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
    ask_gate_of: Collection[int] = (),
    loads_nothing: bool = False,
) -> Iterator[ExplainedLedger]:
    """Every ledger of the given managed ledgers (all user topics without), with its one reason.

    The release gate is asked of these ledgers, where they are due; elsewhere it is for the run.
    With `loads_nothing` neither is asked of a topic whose bundle no broker owns.
    """
    with open_policies(stack, loads_nothing=loads_nothing) as policies:
        look = Look(
            stack,
            policies,
            ask_topics=ask_topics,
            ask_gate_of=ask_gate_of,
            loads_nothing=loads_nothing,
        )
        for topic in survey_topics(stack, ml_names):
            for ledger, because in look.explain(topic):
                yield ExplainedLedger(view=ledger.view, because=because, due_at=ledger.due_at)


def explain_ledger(stack: Stack, ledger_id: int, *, loads_nothing: bool = False) -> LedgerReason:
    """One ledger's reason, its topic's own policy level and the release gate included.

    `loads_nothing` is that of explain_backlog.

    Raises:
        LedgerNotFoundError: neither tree nor any record knows it.
    """
    ml_name = ml_names_of(stack, [ledger_id]).get(ledger_id)
    names = None if ml_name is None else [ml_name]
    for found in explain_backlog(
        stack,
        names,
        ask_topics=names is not None,
        ask_gate_of=(ledger_id,),
        loads_nothing=loads_nothing,
    ):
        if found.view.ledger_id == ledger_id:
            return LedgerReason(
                ledger_id=ledger_id,
                ml_name=found.view.ml_name,
                view=found.view,
                because=found.because,
            )
    return LedgerReason(
        ledger_id=ledger_id,
        ml_name=ml_name,
        view=None,
        because=_explain_unlisted(stack, ledger_id, ml_name),
    )


def _explain_unlisted(stack: Stack, ledger_id: int, ml_name: str | None) -> Because:
    sight = look_at(stack, ledger_id, ml_name=ml_name)
    if sight.node is None and not attempts_of(stack, ledger_id):
        raise LedgerNotFoundError(
            f"ledger {ledger_id}: not in BookKeeper, in no topic's list and without records; "
            f"`tierkeeper ledger list` prints those that exist"
        )
    if ml_name is not None and never_touched(ml_name, {}) is None and sight.listed is None:
        return Because(BacklogReason.EXPIRED, f"{topic_of(ml_name)} does not list it any more")
    decision = decide_sight(sight)
    if isinstance(decision, Wait):
        return of_wait(decision)
    return Because(BacklogReason.NOT_ADMITTED, "its topic lists it since just now; look again")


def count_backlog(
    explained: Iterable[ExplainedLedger], *, now: datetime
) -> tuple[ReasonCount, ...]:
    """Counts, bytes and the oldest age for each reason that occurs."""
    return count_reasons(
        (
            Explained(
                reason=one.because.reason,
                bytes=one.view.bytes or 0,
                closed_at=one.view.closed_at,
            )
            for one in explained
        ),
        now=now,
    )
