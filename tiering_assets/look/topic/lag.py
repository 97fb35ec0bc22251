"""Has the deletion lag passed? Invariant I5: no clock that steps may release early.

The lag counts from the publication record twice: from the time the store gave it (Last-Modified,
against the store's Date now) and from the time written in it (against our clock now). Both must have
passed it, so that a step forward of either clock alone releases nothing. What was taken out and
published again is a publication of its own.
"""

from __future__ import annotations

from datetime import datetime, timedelta


def lag_elapsed(
    *,
    lag: timedelta,
    recorded_at: datetime,
    now: datetime,
    stored_at: datetime,
    store_now: datetime,
) -> bool:
    """True only when both ages are greater than `lag`."""
    return min(now - recorded_at, store_now - stored_at) > lag


def counts_for(context_ms: int, recorded_ms: int | None, *, confirmed_at: datetime) -> bool:
    """Whether a confirmation is one of the context that stands, whose timestamp is `context_ms`.

    `recorded_ms` is the timestamp that the record gives. A record without it is of a time when none
    was kept: it counts for a context that was there before the confirmation.
    """
    if recorded_ms is not None:
        return recorded_ms == context_ms
    return context_ms <= confirmed_at.timestamp() * 1000
