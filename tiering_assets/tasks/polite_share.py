"""Which share of its time a task may read from a bookie, by that bookie's own figures. Pure.

Owns: the share is halved at each new sight of slow adds, and rises by the clock when they are fast.
Where nobody adds it is the whole at once, whatever a window says of adds that are over. It never
falls below SHARE_MIN, so that a backfill goes on and makes room on a bookie that is
short of it. A share of time needs no rate to begin with: it halves what there would be, whatever
that is, and works below every budget.

An unknown figure is no figure. A bookie that never told any is paced by budgets alone: no byte
depends on this, and bookies fill up if nothing is copied. One that told and is silent now may be
under load, so its share stays, until UNREAD_MAX looks have failed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tiering_assets.resources.bookkeeper.add_latency import AddLatency

SHARE_MIN: Final = 0.25
RECOVERY_S: Final = 120.0  # from no share to the whole, two windows of the bookies' quantiles
STEP_S_MAX: Final = 30.0  # of the time between two looks, what counts for the recovery
UNREAD_MAX: Final = 3
UNREAD_AGAIN_S: Final = 60.0  # until a page that was silent is asked again; it may cost a second
MEAN_OF_P99: Final = 0.25  # waits in a queue have a 99th percentile of 4.6 times their mean
LOOK_S_MIN: Final = 5.0
LOOKS_PER_S_MAX: Final = 10  # of all spenders together
BUSY_S_MAX: Final = 1.0  # of the time since the last read, what a pause answers


@dataclass(frozen=True, slots=True, kw_only=True)
class BookiePace:
    """What is known of one bookie. `seen` is its newest figure, of the time `at`."""

    share: float = 1.0
    seen: AddLatency | None = None
    at: float = 0.0
    unread: int = 0


def next_pace(
    pace: BookiePace, seen: AddLatency | None, now: float, *, bound_s: float
) -> BookiePace:
    """The pace after a look that found `seen`, or nothing."""
    if seen is None:
        unread = pace.unread + 1
        if unread >= UNREAD_MAX:
            return BookiePace(at=now, unread=unread)
        return replace(pace, at=now, unread=unread)
    if pace.seen is not None and pace.seen.count == seen.count:  # nobody to be polite to
        return BookiePace(seen=seen, at=now)
    over = seen.p99_s is not None and seen.p99_s > bound_s
    is_new = pace.seen is None or pace.seen.p99_s != seen.p99_s
    share = pace.share
    if (over and is_new) or _mean_s(pace.seen, seen) > bound_s * MEAN_OF_P99:
        share = max(SHARE_MIN, share / 2)
    elif not over:
        passed = min(max(0.0, now - pace.at), STEP_S_MAX)
        share = min(1.0, share + passed / RECOVERY_S)
    return BookiePace(share=share, seen=seen, at=now)


def pause_s(share: float, busy_s: float) -> float:
    """How long to wait after so long a time of reading, and of what was done with it."""
    return min(busy_s, BUSY_S_MAX) * (1 / share - 1)


def may_look(pace: BookiePace, now: float) -> bool:
    """Whether the bookie's page is asked again by now."""
    return pace.unread == 0 or now - pace.at >= UNREAD_AGAIN_S


def look_every_s(spenders: int) -> float:
    """Time between two looks of one spender, each at one bookie's page."""
    return max(LOOK_S_MIN, spenders / LOOKS_PER_S_MAX)


def _mean_s(before: AddLatency | None, seen: AddLatency) -> float:
    """Of the adds between two looks; 0 where there were none, or the bookie was started anew."""
    if before is None or seen.count <= before.count:
        return 0.0
    return (seen.total_s - before.total_s) / (seen.count - before.count)
