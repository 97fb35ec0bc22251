"""A topic's retention as its broker applies it.

Source: org.apache.pulsar.common.policies.data.RetentionPolicies, 4.0: -1 is unlimited, both 0 is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resources.errors import BrokerError


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


def _limit(found: object, topic: str) -> int | None:
    try:
        limit = int(str(found))
    except ValueError:
        raise BrokerError(f"{topic}: its retention is {found!r:.100}, expected a number") from None
    return None if limit < 0 else limit
