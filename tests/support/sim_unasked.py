"""What a broker does unasked at a time drawn from the seed: traffic, trims, offloads, releases."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tests.support.sim_clients import Site
    from tests.support.sim_world import World


def payloads_of(rng: random.Random) -> list[bytes]:
    sizes = [rng.choice((0, 10, 40, 90, 300, 500)) for _ in range(rng.randint(1, 6))]
    return [rng.randbytes(size) for size in sizes]


def spawn_broker(world: World, site: Site, name: str, at: float, what: str | None = None) -> None:
    rng, broker = world.rng, site.broker
    what = what or rng.choice(
        ("traffic", "traffic", "traffic", "trim", "offload", "release", "restart")
    )
    payloads, ahead = payloads_of(rng), rng.uniform(0.0, 1.0)
    stops_after, takes_s = rng.choice((0, 1, 9, 9)), rng.choice((0.2, 0.2, 0.2, 2400.0))

    def act() -> None:
        names = broker.names()
        if not names:
            return
        ml_name = names[int(ahead * len(names)) % len(names)]
        try:
            if what == "traffic":
                broker.produce(ml_name, payloads)
                world.scheduler.pause(ahead)
                broker.roll_over(ml_name)
            elif what == "trim" and broker.trim(ml_name) is not None:
                world.faults.strike("ledger trimmed")
            elif what == "offload" and broker.offload(
                ml_name, stops_after=stops_after, takes_s=takes_s
            ):
                world.faults.strike("broker offloads")
            elif what == "release" and broker.release(ml_name):
                world.faults.strike("broker releases")
            elif what == "restart":
                world.faults.strike("broker restarts")
                broker.restart()
        except TierkeeperError as error:
            world.note(name, f"{what}: {error}")

    world.scheduler.spawn(name, at, act)


def spawn_blindness(world: World, site: Site, at: float, seconds: float) -> None:
    def act() -> None:
        world.faults.strike("broker cannot read objects")
        site.broker.blind_until = world.clock(seconds).timestamp()

    world.scheduler.spawn("blindness", at, act)
