"""May an idle topic be loaded, so that its broker applies the retention that is overdue? Pure.

Owns: a load is asked for only where the broker would do what retention says and no more. Loading a
topic wakes everything else that brokers do to idle topics: what would delete the topic or its
subscriptions leaves it alone. So does a hold, and a ledger that is being copied: trimming is the
broker's, but the load would be ours. What is not known is a no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tiering_assets.resources.pulsar.retention import Inactivity


class LoadState(StrEnum):
    """What became of one topic with overdue ledgers."""

    WOULD_LOAD = "would load"
    TRIMMED = "trimmed"
    NOT_TRIMMED = "not trimmed"
    LEFT_ALONE = "left alone"
    OVER_BUDGET = "over budget"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadGuards:
    """What else a load would touch. `held` and `claimed` say for each overdue ledger by whom.

    `subscriptions` are the durable ones; `inactivity` is None where the broker did not tell.
    """

    held: Mapping[int, str]
    claimed: Mapping[int, str]
    subscriptions: int
    inactivity: Inactivity | None


def why_not_idle(overdue: Sequence[int], *, idle: bool | None, certain: bool) -> str | None:
    """Why there is nothing to load the topic for; None when there is. `idle` None is not known."""
    if not overdue:
        return "nothing of it is overdue"
    if idle is False:
        return "its broker has it loaded and trims it by itself"
    if idle is None:
        return "whether a broker has it loaded is not known; run again in a minute"
    if not certain:
        return "a level of its policies could not be asked, so its retention is not certain"
    return None


def why_guarded(guards: LoadGuards) -> str | None:
    """Why an idle, overdue topic is left unloaded all the same; None when it may be loaded."""
    for ledgers, what in ((guards.held, "held"), (guards.claimed, "being copied")):
        if ledgers:
            ledger_id, why = min(ledgers.items())
            return f"ledger {ledger_id} is {what}: {why}"
    return _deletes_more(guards)


def _deletes_more(guards: LoadGuards) -> str | None:
    idle = guards.inactivity
    if idle is None:
        return "what its broker deletes of idle topics could not be asked"
    if idle.subscription_minutes > 0 and guards.subscriptions:
        return (
            f"once loaded, its broker may delete subscriptions idle for "
            f"{idle.subscription_minutes} minutes (subscriptionExpirationTimeMinutes)"
        )
    if idle.deletes_topic and not (idle.without_subscriptions and guards.subscriptions):
        return (
            "once loaded, its broker would soon delete the whole topic as inactive "
            "(brokerDeleteInactiveTopicsEnabled or inactive-topic policies)"
        )
    return None


def over_load_budget(done: int, hour_max: int) -> str | None:
    """The budget of loads that is used up, None while there is room."""
    if done < hour_max:
        return None
    return f"{done} loads in the last hour reach disturb.loads_hour_max = {hour_max}"
