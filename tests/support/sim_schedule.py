"""What happens in a seed, drawn before anybody acts: the world, who starts when, what strikes.

Owns: a seed's schedule is decided by the seed alone. Some seeds play a story that is written by
hand (sim_stories.py); the others get offloads, releases, sweeps, scrubs, a broker's own doings, a
person's, and up to six disasters that lie in wait (sim_disasters.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.support import sim_operator as people
from tests.support import sim_stories as stories
from tests.support.sim_acts import (
    plan_release,
    run_copy,
    run_offload,
    run_planned_release,
    run_release,
    run_release_along,
    run_scrub,
    run_sweep,
)
from tests.support.sim_disasters import draw
from tests.support.sim_unasked import payloads_of, spawn_blindness, spawn_broker
from tiering_assets.offload_format.keys import data_key
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tests.support.sim_clients import Process, Site
    from tests.support.sim_world import World

FAULTS_S = 5400.0  # how long runs are started; zombies may wake later
APPROVED = run_planned_release
STORIES: tuple[tuple[float, Callable[[World, Site], None]], ...] = (
    (0.03, stories.copied_twice),
    (0.03, stories.withdrawn_twice),
    (0.03, stories.released_twice),
    (0.08, stories.trimmed_and_restored),
    (0.13, stories.forgotten),
)


def lay_out(world: World) -> list[Site]:
    rng = world.rng
    lag_s = rng.choice((None, None, None, 900.0, 7200.0))
    world.add_site("alpha", lag_s=lag_s, bookkeeper_first=rng.random() < 0.25)
    if rng.random() < 0.2:
        world.faults.strike("two instances in one bucket")
        world.add_site("beta", lag_s=None, bookkeeper_first=False)
    for site in world.sites:
        for number in range(rng.choice((1, 1, 2)) if site is world.sites[0] else 1):
            ml_name = f"t/ns{number % 2}/persistent/orders-{number}"
            site.broker.create_topic(ml_name)
            for _ in range(rng.randint(1, 3)):
                site.broker.produce(ml_name, payloads_of(rng))
                site.broker.roll_over(ml_name)
            if rng.random() < 0.3:
                site.broker.topics.clear()
                site.broker.owned_until = -1.0
    return world.sites


def schedule(world: World, site: Site) -> None:
    scripted = world.rng.random()
    for share, story in STORIES:
        if scripted < share:
            story(world, site)
            return
        scripted -= share
    draw(world, site)
    rng, first = world.rng, site is world.sites[0]
    offloads = [rng.uniform(0, 600)]
    if rng.random() < 0.5:
        world.faults.strike("duplicate run")
        offloads.append(offloads[0] + rng.uniform(0, 0.5))
    if first:
        offloads.append(rng.uniform(600, FAULTS_S))
    planned, copied = rng.random() < 0.6, rng.random() < 0.6
    later = (planned or copied) and rng.random() < (0.9 if planned else 0.6)
    soonest = 700 if later else 60  # something is due then, or nothing yet
    releases = [offloads[0] + rng.uniform(soonest, 1300), rng.uniform(1500, FAULTS_S)]
    if rng.random() < 0.4:
        world.faults.strike("duplicate run")
        releases.append(releases[0] + rng.uniform(0, 0.5))
    sweeps = [rng.uniform(1800, FAULTS_S + 2000)]
    if rng.random() < 0.3:
        sweeps.append(offloads[-1] + rng.uniform(0, 1.0))
    if rng.random() < 0.3:
        sweeps.append(sweeps[0] + rng.uniform(1800.0, 3000.0))
    copies = [at - rng.uniform(20, 50) for at in releases] if copied else []
    for at in copies:
        spawn_broker(world, site, f"{site.cluster.instance}-traffic", at - 30.0, "traffic")
    kinds: tuple[tuple[str, list[float], Callable[[Process], None]], ...] = (
        ("offload", offloads, run_offload),
        ("release", releases, _release_act(rng, planned=planned, along=bool(copies))),
        ("sweep", sweeps, run_sweep),
        ("copy", copies, run_copy),
        ("scrub", [rng.uniform(700, FAULTS_S)] if rng.random() < 0.35 else [], run_scrub),
        ("approved", [at + rng.uniform(5, 1500) for at in releases] if planned else [], APPROVED),
    )
    name = site.cluster.instance
    for kind, times, act in kinds:
        for number, at in enumerate(times):
            steps_s = 0.0
            if rng.random() < 0.08:
                world.faults.strike("worker clock steps")
                steps_s = rng.choice((-86400.0, -700.0, 700.0, 86400.0))
            world.start(f"{name}-{kind}-{number}", at, site, act, steps_s=steps_s)
    for number in range(rng.randint(2, 5) if first else 1):
        at = rng.choice((*offloads, *releases, *sweeps)) + rng.uniform(-0.2, 2.0)
        spawn_broker(world, site, f"{name}-broker-{number}", at)
    for number in range(2):
        world.scheduler.spawn(
            f"{name}-collection-{number}", rng.uniform(0, FAULTS_S), site.cluster.collect
        )
    if rng.random() < 0.15:
        at = rng.choice((*offloads, *releases)) + rng.uniform(-1.0, 0.5)
        lasts_s = rng.choice((5.0, 8.0, 300.0))
        spawn_blindness(world, site, at, lasts_s)
        if rng.random() < 0.5:
            at += rng.uniform(4.0, lasts_s + 4.0)
            spawn_broker(world, site, f"{site.cluster.instance}-broker-then", at, "offload")
    if rng.random() < 0.4:
        soon = rng.choice(releases) - rng.uniform(0, 300)
        _spawn_operator(world, site, rng.choice((soon, rng.uniform(0, FAULTS_S))))
    if rng.random() < 0.09:
        _spawn_pause(world, site, rng.choice((*offloads, *releases)))


def _release_act(rng: random.Random, *, planned: bool, along: bool) -> Callable[[Process], None]:
    if planned:
        return plan_release
    if along:
        return run_release_along
    return run_release if rng.random() < 0.6 else run_release_along


def _spawn_pause(world: World, site: Site, at: float) -> None:
    begins = max(0.0, at + world.rng.uniform(-60.0, 5.0))
    lasts_s = world.rng.choice((30.0, 1200.0))
    world.scheduler.spawn("pause", begins, lambda: people.pause_all(world, site))
    world.scheduler.spawn("resume", begins + lasts_s, lambda: people.resume_all(world, site))


def _spawn_operator(world: World, site: Site, at: float) -> None:
    rng, broker = world.rng, site.broker
    what = rng.choice(("restore", "remake", "hold", "hold", "clock", "clock", "foreign", "damage"))
    back_s, steps_s = rng.uniform(0.1, 900.0), rng.choice((-86400.0, -700.0, 700.0, 86400.0))

    def act() -> None:
        names = broker.names()
        if what == "restore":
            nodes = people.snapshot(site)
            world.scheduler.pause(back_s)
            world.faults.strike("metadata restored")
            people.restore(world, site, nodes)
        elif what == "remake" and names:
            world.faults.strike("topic made again")
            broker.delete_topic(names[0])
            world.scheduler.pause(0.05 if back_s < 450 else 5.0)
            try:
                broker.create_topic(names[0])
                broker.produce(names[0], [b"anew"])
                broker.roll_over(names[0])
            except TierkeeperError as error:
                world.note("operator", str(error))
        elif what == "hold":
            people.hold(world, site)
        elif what == "clock":
            world.faults.strike("store clock steps")
            world.store_offset_s += steps_s
        elif what == "foreign":
            world.faults.strike("foreign object")
            world.objects.put(data_key(world.new_uid(), 1), b"not ours", metadata={})
        elif what == "damage":
            people.damage(world, site)

    world.scheduler.spawn("operator", at, act)
