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

from resources.pulsar.retention import Inactivity


class LoadState(StrEnum):
    """What became of one topic with overdue ledgers."""

    WOULD_LOAD = "would load"
    TRIMMED = "trimmed"
    NOT_TRIMMED = "not trimmed"
    LEFT_ALONE = "left alone"
    OVER_BUDGET = "over budget"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadEvidence:
    """Facts of one topic. `idle` is False where a broker has it loaded, None where nobody can tell.

    `held` and `claimed` say for each overdue ledger by whom; `subscriptions` are its durable ones.
    """

    overdue: Sequence[int]
    certain: bool
    idle: bool | None
    held: Mapping[int, str]
    claimed: Mapping[int, str]
    subscriptions: int
    inactivity: Inactivity | None


def why_left_unloaded(evidence: LoadEvidence) -> str | None:
    """Why the topic is not to be loaded; None when it may be."""
    if not evidence.overdue:
        return "nothing of it is overdue"
    if evidence.idle is False:
        return "its broker has it loaded and trims it by itself"
    if evidence.idle is None:
        return "whether a broker has it loaded is not known; run again in a minute"
    if not evidence.certain:
        return "a level of its policies could not be asked, so its retention is not certain"
    for ledgers, what in ((evidence.held, "held"), (evidence.claimed, "being copied")):
        if ledgers:
            ledger_id, why = min(ledgers.items())
            return f"ledger {ledger_id} is {what}: {why}"
    return _deletes_more(evidence)


def _deletes_more(evidence: LoadEvidence) -> str | None:
    idle = evidence.inactivity
    if idle is None:
        return "what its broker deletes of idle topics could not be asked"
    if idle.subscription_minutes > 0 and evidence.subscriptions:
        return (
            f"once loaded, its broker may delete subscriptions idle for "
            f"{idle.subscription_minutes} minutes (subscriptionExpirationTimeMinutes)"
        )
    if idle.deletes_topic and not (idle.without_subscriptions and evidence.subscriptions):
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
