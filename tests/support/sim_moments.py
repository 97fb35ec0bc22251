"""A disaster: what strikes right after one of our own calls, at which moments, and for how long.

Owns: it counts under its name only where it had something to strike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.sim_faults import Ambush

if TYPE_CHECKING:
    from tests.support.sim_clients import Site
    from tests.support.sim_world import World

Strike = Callable[["World", "Site", str, float], bool]


@dataclass(frozen=True, slots=True)
class Moment:
    """Right after a call of ours whose first argument contains `naming`."""

    room: str
    method: str
    naming: str = ""


CERTIFIED = Moment("objects", "put", "/certificates/")
OUTCOME = Moment("objects", "put", "/outcomes/")
WRITTEN = Moment("metadata", "set", "/managed-ledgers/")
PUBLISHED = Moment("objects", "put", "/publications/")
INTENDED = Moment("objects", "put", ".intent.json")
RELOADED = Moment("broker", "unload_topic")
READ = Moment("broker", "read_entry")
ASKED = Moment("broker", "runtime_configs")
LOOKED = Moment("objects", "head", "-ledger-")
ANY = (CERTIFIED, OUTCOME, WRITTEN, PUBLISHED, INTENDED, RELOADED, READ, ASKED, LOOKED)


def lay(world: World, site: Site, name: str, strike: Strike, moment: Moment, nth: int = 1) -> None:
    lasts_s = world.rng.choice((20.0, 300.0, 900.0, 3000.0))

    def act(struck: Site, about: str) -> bool:
        if struck is not site or not strike(world, site, about, lasts_s):
            return False
        world.note("people", name)
        world.faults.strike(name)
        return True

    world.wire.lie_in_wait(Ambush(moment.room, moment.method, moment.naming, act, nth))


def later(world: World, seconds: float, act: Callable[[], None]) -> None:
    world.scheduler.spawn("people", world.scheduler.now + seconds, act)
