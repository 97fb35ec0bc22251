"""A topic's retention as its broker applies it, and what the broker deletes of idle topics beside
it.

Source: org.apache.pulsar.common.policies.data.RetentionPolicies, 4.0: -1 is unlimited, both 0 is
off; InactiveTopicPolicies, PersistentTopic.checkGC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tiering_assets.resources.errors import BrokerError


@dataclass(frozen=True, slots=True)
class Retention:
    """How much acknowledged data is kept; None is unlimited."""

    minutes: int | None
    megabytes: int | None


def parse_retention(
    policy: Mapping[str, Any] | None, broker: Mapping[str, str], *, topic: str
) -> Retention:
    """The policy of the topic or its namespace, else the broker's defaults."""
    if policy is None:
        minutes: object = broker.get("defaultRetentionTimeInMinutes", "0")
        megabytes: object = broker.get("defaultRetentionSizeInMB", "0")
    else:
        minutes, megabytes = policy.get("retentionTimeInMinutes"), policy.get("retentionSizeInMB")
    return Retention(_limit(minutes, topic), _limit(megabytes, topic))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inactivity:
    """What happens to a topic, once loaded, that nobody uses. Its retention time only delays it.

    `deletes_topic` with `without_subscriptions`: only a topic that has none is deleted, else also
    one whose subscriptions are caught up. `subscription_minutes` idle, a subscription goes; 0
    never.
    """

    deletes_topic: bool
    without_subscriptions: bool
    subscription_minutes: int


def parse_inactivity(
    policy: Mapping[str, Any] | None,
    subscription_minutes: int | None,
    broker: Mapping[str, str],
    *,
    topic: str,
) -> Inactivity:
    """The InactiveTopicPolicies and subscription expiry in force, else the broker's defaults."""
    if policy is None:
        policy = {
            "deleteWhileInactive": _flag(broker, "brokerDeleteInactiveTopicsEnabled", topic),
            "inactiveTopicDeleteMode": broker.get("brokerDeleteInactiveTopicsMode"),
        }
    deletes = policy.get("deleteWhileInactive")
    if not isinstance(deletes, bool):
        raise BrokerError(
            f"{topic}: deleteWhileInactive is {deletes!r:.100}, expected true or false"
        )
    if subscription_minutes is None:
        found = broker.get("subscriptionExpirationTimeMinutes", "")
        subscription_minutes = _limit(found, topic) or 0
    return Inactivity(
        deletes_topic=deletes,
        without_subscriptions=policy.get("inactiveTopicDeleteMode")
        == "delete_when_no_subscriptions",
        subscription_minutes=subscription_minutes,
    )


def _flag(broker: Mapping[str, str], name: str, topic: str) -> bool:
    found = broker.get(name, "").lower()
    if found not in ("true", "false"):
        raise BrokerError(f"{topic}: the broker's {name} is {found!r:.100}, expected true or false")
    return found == "true"


def _limit(found: object, topic: str) -> int | None:
    try:
        limit = int(str(found))
    except ValueError:
        raise BrokerError(f"{topic}: its retention is {found!r:.100}, expected a number") from None
    return None if limit < 0 else limit
