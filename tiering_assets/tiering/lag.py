"""Has the deletion lag passed? Invariant I5: no clock that steps may release early.

The lag counts from the publication record twice: from the time the store gave it (Last-Modified,
against the store's Date now) and from the time written in it (against our clock now). Both must have
passed it, so that a step forward of either clock alone releases nothing.
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
