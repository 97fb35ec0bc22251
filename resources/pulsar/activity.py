"""What a loaded topic is busy with, from a broker's `stats`: what makes reloading it costly.

A reload disconnects every consumer, forgets the delayed-delivery tracker, which is rebuilt by
reading the backlog again, and recovers the transaction buffer before anything is served.

Source: org.apache.pulsar.common.policies.data.TopicStats, 4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tiering_assets.resources.errors import BrokerError

_TRANSACTION_FIELDS = ("ongoingTxnCount", "abortedTxnCount", "committedTxnCount")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicActivity:
    """Counts over all subscriptions. `transactions` are those the broker knows since it loaded."""

    consumers: int
    delayed_messages: int
    transactions: int


def parse_topic_stats(stats: Mapping[str, Any], *, topic: str) -> TopicActivity:
    """Read what limits judge. BrokerError when a field is missing: unknown is not zero."""
    subscriptions = stats.get("subscriptions")
    if not isinstance(subscriptions, dict):
        raise BrokerError(f"{topic}: its stats have no subscriptions")
    consumers = delayed = 0
    for name, subscription in subscriptions.items():
        connected = subscription.get("consumers") if isinstance(subscription, dict) else None
        if not isinstance(connected, list):
            raise BrokerError(f"{topic}: the stats of subscription {name!r:.100} have no consumers")
        consumers += len(connected)
        delayed += _count(subscription, "msgDelayed", topic)
    return TopicActivity(
        consumers=consumers,
        delayed_messages=delayed,
        transactions=sum(_count(stats, name, topic) for name in _TRANSACTION_FIELDS),
    )


def _count(stats: Mapping[str, Any], name: str, topic: str) -> int:
    found = stats.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise BrokerError(f"{topic}: {name} is {found!r:.100} in its stats, expected a number")
    return found
