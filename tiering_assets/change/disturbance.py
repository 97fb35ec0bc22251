"""When is publishing worth an unload? design section 6.2, "disturb rarely".

Publishing makes a loaded topic reload (about 0.15 s without acknowledgements), so pending ledgers
wait until there is enough of them or the oldest has waited long enough since our last disturbance.
A ledger sealed by our own unload triggers nothing of that kind: publish -> unload -> new sealed
ledger -> publish would go on for ever. But where nothing is written any more it is the topic's
tail, and nothing would ever take it along; so it may ask for one reload after a longer wait. A
broker drops the empty ledger that it then finds, so that this ends; where a trickle goes on, that
wait bounds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.resources.pulsar.activity import TopicActivity
from tiering_assets.resources.settings import DisturbSettings

AT_ONCE = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A certified ledger that waits for its topic's next publication."""

    ledger_id: int
    bytes: int
    closed_at: datetime


def sealed_by_us(
    closed_at: Mapping[int, datetime],
    published_at: Iterable[datetime],
    *,
    within: timedelta,
    clocks_apart: timedelta,
) -> frozenset[int]:
    """Ledgers that our own unloads sealed: those closed `within` so long of a publication.

    An unload closes the open ledger, and its closing time is written when the topic is loaded
    again: by the reads that confirm the publication. Clocks, ours and the broker's, may be apart;
    whoever rolled over at that very time waits like a tail, unless something else of the topic does
    not.
    """
    spans = [(at - clocks_apart, at + within + clocks_apart) for at in published_at]
    return frozenset(
        ledger_id
        for ledger_id, when in closed_at.items()
        if any(first <= when <= last for first, last in spans)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """What a topic's pending ledgers wait for: so many bytes, or so long since our last
    disturbance.

    `idle_tail` is the wait of ledgers that our own unloads sealed.
    """

    bytes_min: int
    age_max: timedelta
    idle_tail: timedelta


def publication_due_at(
    pending: Sequence[Pending],
    *,
    ours: frozenset[int],
    last_disturbed_at: datetime | None,
    patience: Patience,
) -> datetime | None:
    """When what is pending is worth a reload; AT_ONCE where enough bytes wait, None without any.

    `ours` are the ledgers that our own unloads sealed (see `sealed_by_us`): they go out with the
    next publication of the others. `last_disturbed_at` is our last one of this topic.
    """
    reasons = [one for one in pending if one.ledger_id not in ours]
    tails = [one for one in pending if one.ledger_id in ours]
    if reasons and sum(one.bytes for one in reasons) >= patience.bytes_min:
        return AT_ONCE
    waits = ((reasons, patience.age_max), (tails, patience.idle_tail))
    dates = [_since(some, last_disturbed_at) + wait for some, wait in waits if some]
    return min(dates, default=None)


def _since(pending: Sequence[Pending], last_disturbed_at: datetime | None) -> datetime:
    oldest = min(one.closed_at for one in pending)
    return oldest if last_disturbed_at is None else max(oldest, last_disturbed_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """Reloads that we made in the last hour; `broker` is None where the broker is not known."""

    topic: int
    broker: int | None
    cluster: int


def why_left_alone(
    activity: TopicActivity | None, recent: Recent, limits: DisturbSettings
) -> Wait | None:
    """Why a loaded topic may not be reloaded now; None when it may. None activity is unknown."""
    if activity is None:
        return Wait(Reason.LEFT_ALONE, "its broker did not tell what the topic is busy with")
    for count, most, what, name in (
        (activity.consumers, limits.consumers_max, "consumers", "consumers_max"),
        (
            activity.delayed_messages,
            limits.delayed_messages_max,
            "delayed messages",
            "delayed_messages_max",
        ),
        (activity.transactions, limits.transactions_max, "transactions", "transactions_max"),
    ):
        if count > most:
            return Wait(
                Reason.LEFT_ALONE,
                f"the topic has {count} {what}, disturb.{name} is {most}: a reload would cost its "
                f"clients too much. Raise the setting, or unload the topic when it is quiet",
            )
    over = over_budget(recent, limits)
    return None if over is None else Wait(Reason.OVER_BUDGET, over)


def over_budget(recent: Recent, limits: DisturbSettings) -> str | None:
    """The budget of reloads that is used up, None while there is room."""
    for done, budget, whose, name in (
        (recent.topic, limits.per_topic_hour_max, "this topic's", "per_topic_hour_max"),
        (recent.broker, limits.per_broker_hour_max, "its broker's", "per_broker_hour_max"),
        (recent.cluster, limits.per_cluster_hour_max, "the cluster's", "per_cluster_hour_max"),
    ):
        if done is not None and done >= budget:
            return f"{whose} {done} reloads in the last hour reach disturb.{name} = {budget}"
    return None
