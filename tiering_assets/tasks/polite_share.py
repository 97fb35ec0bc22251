"""At which share of its speed a process may read from a bookie, by that bookie's own figures. Pure.

Owns: the share is halved at each new sight of slow adds, and rises by the clock when they are fast.
Where next to nobody adds it is the whole at once, whatever a window says of adds that are over. So
two looks within FRESH_S are needed to judge: one alone may tell of a minute that is over. It never
falls below SHARE_MIN, so that a backfill goes on and makes room on a bookie that is short of it.

The whole is the most reads a second that the process did while its tasks ran, so a share needs no
rate to be set, and works below every budget; a process that has nothing to do for a while is not
taken for a slow one. Reads are spread evenly: to read for a part of the time, and then as fast as
ever, helps the bookies' adds in the rest of the time only, and where uploads take longer than reads
it slows nothing at all. What was read is sent as evenly, by the same rule over bytes.

An unknown figure is no figure. A bookie that never told any is paced by budgets alone: no byte
depends on this, and bookies fill up if nothing is copied. One that told and is silent now may be
under load, so its share stays, until UNREAD_MAX looks have failed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tiering_assets.resources.bookkeeper.add_latency import AddLatency

SHARE_MIN: Final = 0.3
RECOVERY_S: Final = 600.0  # from no share to the whole, ten windows of the bookies' quantiles
UNREAD_MAX: Final = 3
UNREAD_AGAIN_S: Final = 60.0  # until a page that was silent is asked again; it may cost a second
MEAN_OF_P99: Final = 0.25  # waits in a queue have a 99th percentile of 4.6 times their mean
SENDS_OVER_READS: Final = 4 / 3  # shares: a block that leaves no later than the next is read
ADDS_PER_S: Final = 1.0  # of which fewer, as of cursors alone, are nobody's traffic
FRESH_S: Final = 12.0  # at most between two looks, of which the second judges
LOOK_S_MIN: Final = 2.0
LOOKS_PER_S_MAX: Final = 10  # of all spenders together
SPAN_S: Final = 3.0  # over which reads a second are counted: some blocks, each read in one go
FORGETS: Final = 0.999  # of the most reads a second, what is left after a span with fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class BookiePace:
    """What is known of one bookie: `seen` is its newest figure, of the time `seen_at`.

    It was looked at last `at`. `waits` for a second look to judge by.
    """

    share: float = 1.0
    seen: AddLatency | None = None
    seen_at: float = 0.0
    at: float = 0.0
    unread: int = 0
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast a process reads, or sends: `most` units a second of work, 0 until a span is over.

    The span began after `since` seconds of work, with `used` units until now. The newest use begins
    at `begins`, and the next one at `free` at the earliest.
    """

    since: float = 0.0
    used: int = 0
    most: float = 0.0
    begins: float = float("-inf")
    free: float = float("-inf")


def next_pace(
    pace: BookiePace,
    seen: AddLatency | None,
    now: float,
    *,
    bound_s: float,
    fresh_s: float = FRESH_S,
) -> BookiePace:
    """The pace after a look that found `seen`, or nothing. `fresh_s` is as fresh_for() has it."""
    if seen is None:
        unread = pace.unread + 1
        if unread >= UNREAD_MAX:
            return BookiePace(at=now, unread=unread)
        return replace(pace, at=now, unread=unread)
    before, passed = pace.seen, now - pace.seen_at
    if before is None or not 0 <= passed <= fresh_s:
        return BookiePace(share=pace.share, seen=seen, seen_at=now, at=now, waits=True)
    if 0 <= seen.count - before.count < ADDS_PER_S * passed:
        return BookiePace(seen=seen, seen_at=now, at=now)  # nobody to be polite to
    over = seen.p99_s is not None and seen.p99_s > bound_s
    is_new = pace.waits or before.p99_s != seen.p99_s
    share = pace.share
    if (over and is_new) or _mean_s(before, seen) > bound_s * MEAN_OF_P99:
        share = max(SHARE_MIN, share / 2)
    elif not over:
        share = min(1.0, share + passed / RECOVERY_S)
    return BookiePace(share=share, seen=seen, seen_at=now, at=now)


def next_use(speed: Speed, now: float, *, worked_s: float, count: int, share: float) -> Speed:
    """The speed after so many reads or bytes more, which begin at its `begins`.

    `worked_s` is how long tasks that read have run in this process until `now`.
    """
    since, used, most = speed.since, speed.used, speed.most
    if worked_s - since >= SPAN_S:
        found = used / (worked_s - since)
        most = max(found, most if share < 1 else most * FORGETS)
        since, used = worked_s, 0
    spread = count / (share * most) if share < 1 and most > 0 else 0.0
    begins = max(now, speed.free)
    return Speed(since=since, used=used + count, most=most, begins=begins, free=begins + spread)


def may_look(pace: BookiePace, now: float) -> bool:
    """Whether the bookie's page is asked again by now."""
    return pace.unread == 0 or now - pace.at >= UNREAD_AGAIN_S


def look_every_s(spenders: int) -> float:
    """Time between two looks of one spender, each at one bookie's page."""
    return max(LOOK_S_MIN, spenders / LOOKS_PER_S_MAX)


def fresh_for(every_s: float) -> float:
    """Between how far apart two looks what was added still tells of now: a topic that was filled
    in between, and is quiet again, slowed a whole copy where it was 30 s.
    """
    return max(FRESH_S, 6 * every_s)


def _mean_s(before: AddLatency, seen: AddLatency) -> float:
    """Of the adds between two looks; 0 where there were none, or the bookie was started anew."""
    if seen.count <= before.count:
        return 0.0
    return (seen.total_s - before.total_s) / (seen.count - before.count)
