"""Offload all of a topic before a position, once or until it is done: the manual trigger.

Owns: it is told that it cannot be done before anything is done, and what is done is offload_batch,
the same steps as for any ledger. Each pass reads the topic's list anew, so what others offloaded or
retention took in between is not asked for again. One topic or partition: a position is of one list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tiering_assets.batch.backfill import offload_in_lots
from tiering_assets.batch.offload_prefix_rules import (
    KeepBytes,
    Prefix,
    Until,
    choose_prefix,
    first_unoffloaded,
    is_offloaded,
    keep_newest,
    position_text,
    reached,
    require_position,
)
from tiering_assets.batch.pipeline import LedgerOutcome
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.pauses import why_off
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.errors import BrokerError, RefusedError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, ManagedLedger, Position
from tiering_assets.resources.metastore.topic_names import never_touched
from tiering_assets.resources.pulsar.admin import TopicLoad

PAUSE_S = 10.0
# Waits that end by themselves or by what another run does; `--wait` waits for nothing else.
_CURABLE = frozenset(
    {
        Reason.OPEN,
        Reason.UNSEALED,
        Reason.BROKER_COPYING,
        Reason.CLAIMED,
        Reason.WAITING_TO_DISTURB,
        Reason.OVER_BUDGET,
        Reason.LEFT_ALONE,
        Reason.BOOKIES_SHORT,
        Reason.UNDO_UNCONFIRMED,
        Reason.PAUSED,
    }
)
# Nothing is left to do for the ledger, or there is no such ledger any more.
_SETTLED = frozenset({Reason.PUBLISHED, Reason.EXPIRED, Reason.NOT_IN_TOPIC})


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixPlan:
    """What is to be offloaded of a topic. `notes` say what could not be known."""

    topic: str
    ml_name: str
    before: Position
    prefix: Prefix
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixProgress:
    """Where the topic stands after a pass. `reached`: everything before the goal is offloaded.

    `stuck` names what no waiting cures, by ledger.
    """

    outcomes: tuple[LedgerOutcome, ...]
    first_unoffloaded: Position | None
    reached: bool
    stuck: tuple[str, ...] = ()


def plan_prefix(stack: Stack, ml_name: str, until: Until, *, ask_broker: bool = True) -> PrefixPlan:
    """Choose the ledgers. Writes nothing and loads no topic.

    Whether a topic is loaded is known up to a minute late, so without `ask_broker` the open
    ledger's size is not asked: asking one that was unloaded meanwhile would load it.

    Raises:
        RefusedError: no such topic or position, or a topic that is never touched or switched off.
    """
    topic, found = topic_of(ml_name), _require_enabled(stack, ml_name)
    if not found.ledgers:
        raise RefusedError(f"{topic}: the topic lists no ledger yet; nothing can be offloaded")
    notes: tuple[str, ...] = ()
    if isinstance(until, KeepBytes):
        open_bytes = _open_bytes(stack, topic, found.ledgers, ask_broker=ask_broker)
        if open_bytes is None:
            notes = (
                "only a broker that has it loaded knows the open ledger's size; here it counts as "
                "0, so up to its size more is kept",
            )
        before = keep_newest(found.ledgers, until, open_bytes=open_bytes or 0)
    else:
        before = until
        require_position(topic, found.ledgers, before)
    return PrefixPlan(
        topic=topic,
        ml_name=ml_name,
        before=before,
        prefix=choose_prefix(found.ledgers, before),
        notes=notes,
    )


def require_topic(stack: Stack, ml_name: str) -> ManagedLedger:
    """The topic's list; RefusedError where there is none or the topic is never touched."""
    topic, found = topic_of(ml_name), stack.topics.read(ml_name)
    if found is None:
        if stack.topics.read(f"{ml_name}-partition-0") is not None:
            raise RefusedError(
                f"{topic} is partitioned and each partition has positions of its own; name one, "
                f"such as {topic}-partition-0"
            )
        raise RefusedError(
            f"{topic}: the metadata store has no such topic; `tierkeeper ledger list` prints the "
            f"topics that have ledgers"
        )
    why = never_touched(ml_name, found[0].properties)
    if why is not None:
        raise RefusedError(f"{topic}: never touched: {why}")
    return found[0]


def _require_enabled(stack: Stack, ml_name: str) -> ManagedLedger:
    topic, found = topic_of(ml_name), require_topic(stack, ml_name)
    off = why_off(stack, ml_name)
    if off is not None:
        raise RefusedError(
            f"{topic}: tiering is {off}; change it there (a pause by `tierkeeper tiering resume`), "
            f"for nothing is copied meanwhile"
        )
    return found


def _open_bytes(
    stack: Stack, topic: str, ledgers: Sequence[LedgerInfo], *, ask_broker: bool
) -> int | None:
    """Size of the open ledger: BookKeeper's when it is closed there, else its broker's memory."""
    if not ledgers[-1].is_open:
        return 0
    node = stack.ledgers.read(ledgers[-1].ledger_id)
    if node is not None and node.metadata.state is BookKeeperState.CLOSED:
        return node.metadata.length
    if not ask_broker:
        return None
    try:
        if stack.broker.locate(topic).load is not TopicLoad.LOADED:
            return None
        size = stack.broker.internal_stats(topic).get("currentLedgerSize")
    except BrokerError:
        return None
    return size if isinstance(size, int) and size >= 0 else None


def offload_prefix(stack: Stack, plan: PrefixPlan, *, publish: bool = True) -> PrefixProgress:
    """One pass over what is left before the goal. RefusedError when the topic is gone meanwhile."""
    found = _require_enabled(stack, plan.ml_name)
    left = choose_prefix(found.ledgers, plan.before).to_offload if found.ledgers else ()
    outcomes = tuple(offload_in_lots(stack, left, publish=publish)) if left else ()
    return look_again(stack, plan, outcomes)


def look_again(
    stack: Stack, plan: PrefixPlan, outcomes: Sequence[LedgerOutcome] = ()
) -> PrefixProgress:
    """Where the topic stands now, after these outcomes."""
    found = stack.topics.read(plan.ml_name)
    ledgers = () if found is None else found[0].ledgers
    return PrefixProgress(
        outcomes=tuple(outcomes),
        first_unoffloaded=first_unoffloaded(ledgers),
        reached=found is not None and reached(ledgers, plan.prefix.goal),
        stuck=tuple(said for one in outcomes if (said := _stuck(one)) is not None),
    )


def offload_prefix_until(
    stack: Stack, plan: PrefixPlan, *, timeout_s: float, pause_s: float = PAUSE_S
) -> PrefixProgress:
    """Pass after pass until the goal is reached, waiting cures nothing, or the time is over.

    A topic that is paused meanwhile is waited for, and nothing more of it is begun.
    """
    deadline = stack.monotonic() + timeout_s
    done: dict[int, LedgerOutcome] = {}
    progress = offload_prefix(stack, plan)
    while True:
        done |= {one.ledger_id: one for one in progress.outcomes}
        left_s = deadline - stack.monotonic()
        if progress.reached or progress.stuck or left_s <= 0:
            return look_again(stack, plan, _as_of_now(stack, plan, done))
        stack.narrate(
            f"first un-offloaded {position_text(progress.first_unoffloaded)}, wanted "
            f"{position_text(plan.prefix.goal)}; {_waiting(progress)}; again in "
            f"{min(pause_s, left_s):.0f} s, for {left_s:.0f} s at most"
        )
        stack.sleep(min(pause_s, left_s))
        if why_off(stack, plan.ml_name) is None:
            progress = offload_prefix(stack, plan)
        else:
            progress = look_again(stack, plan, _as_of_now(stack, plan, done))


def _as_of_now(
    stack: Stack, plan: PrefixPlan, done: Mapping[int, LedgerOutcome]
) -> list[LedgerOutcome]:
    """The last outcome of each ledger, or what became of it since by somebody else's doing."""
    found = stack.topics.read(plan.ml_name)
    now = []
    for ledger_id, outcome in sorted(done.items()):
        listed = None if found is None else found[0].ledger(ledger_id)
        wait = None
        if outcome.published is None and found is not None and listed is None:
            wait = Wait(Reason.EXPIRED, f"{plan.topic} does not list it any more")
        elif outcome.published is None and listed is not None and is_offloaded(listed):
            wait = Wait(Reason.PUBLISHED, "by another run")
        now.append(outcome if wait is None else replace(outcome, wait=wait, error=None))
    return now


def _waiting(progress: PrefixProgress) -> str:
    said = [
        f"ledger {one.ledger_id} {one.wait or one.error}"
        for one in progress.outcomes
        if one.wait is not None or one.error is not None
    ]
    return "; ".join(said[:3]) + (f"; {len(said) - 3} more" if len(said) > 3 else "")


def _stuck(one: LedgerOutcome) -> str | None:
    if one.error is not None and not one.error.retryable:
        return f"ledger {one.ledger_id}: {one.error}"
    if one.wait is not None and one.wait.reason not in _CURABLE | _SETTLED:
        return f"ledger {one.ledger_id}: {one.wait}"
    return None
