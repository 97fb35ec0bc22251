"""One seed: lay out a world, let everybody act while faults strike, stop the faults, judge the
end.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.support.sim_memo import remembering
from tests.support.sim_monitor import Found
from tests.support.sim_schedule import lay_out, schedule
from tests.support.sim_scheduler import NoProgress
from tests.support.sim_settle import settle
from tests.support.sim_world import World


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one seed."""

    seed: int
    found: tuple[Found, ...]
    coverage: Counter[str]
    calls: int
    released: int
    trace: tuple[str, ...] = field(default=(), repr=False)


def run_seed(seed: int, *, traced: bool = False, aside: Iterable[str] = ()) -> Outcome:
    """Simulate one seed to its end; the same seed gives the same outcome.

    `aside` are invariants whose violations are not looked at.
    """
    return run_world(seed, _by_the_seed, traced=traced, aside=aside)


def run_world(
    seed: int,
    play: Callable[[World], None],
    *,
    traced: bool = False,
    faults: bool = True,
    aside: Iterable[str] = (),
) -> Outcome:
    """Simulate what `play` schedules; without `faults` nothing strikes but what it lays."""
    random.seed(seed)  # the back-off's jitter
    with remembering():
        world = World(seed, traced=traced)
        world.monitor.aside = frozenset(aside)
        play(world)
        world.faults.on, world.faults.at_calls = True, faults
        world.scheduler.run()
        world.faults.on = False
        return _end(world, seed)


def _by_the_seed(world: World) -> None:
    for site in lay_out(world):
        schedule(world, site)


def _end(world: World, seed: int) -> Outcome:
    monitor = world.monitor
    for actor, error in world.scheduler.failures:
        what = "progress" if isinstance(error, NoProgress) else "unexpected error"
        monitor.report(what, f"{actor}: {type(error).__name__}: {error}")
    if not monitor.found:
        settle(world)
    released = sum(len(s.cluster.written) - len(s.cluster.bookies) for s in world.sites)
    return Outcome(
        seed=seed,
        found=tuple(monitor.found),
        coverage=+world.faults.counts,
        calls=world.calls,
        released=released,
        trace=tuple(world.trace or ()),
    )
