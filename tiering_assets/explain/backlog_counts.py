"""Ledgers, bytes and the oldest age for each backlog reason. Counts add up: each ledger is in
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tiering_assets.explain.backlog_reason import BacklogReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What is counted of a ledger. `closed_at` None is a ledger that is not closed."""

    reason: BacklogReason
    bytes: int
    closed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCount:
    """`oldest_s` is the time since the first of them was closed; None where none is."""

    reason: BacklogReason
    ledgers: int
    bytes: int
    oldest_s: float | None


def count_reasons(explained: Iterable[Explained], *, now: datetime) -> tuple[ReasonCount, ...]:
    """One row for each reason that some ledger has, in the order of BacklogReason."""
    ledgers: Counter[BacklogReason] = Counter()
    size: Counter[BacklogReason] = Counter()
    oldest: dict[BacklogReason, datetime] = {}
    for one in explained:
        ledgers[one.reason] += 1
        size[one.reason] += one.bytes
        if one.closed_at is not None:
            oldest[one.reason] = min(oldest.get(one.reason, one.closed_at), one.closed_at)
    return tuple(
        ReasonCount(
            reason=reason,
            ledgers=ledgers[reason],
            bytes=size[reason],
            oldest_s=(now - oldest[reason]).total_seconds() if reason in oldest else None,
        )
        for reason in BacklogReason
        if ledgers[reason]
    )
