"""Schedules written by hand: meetings that chance would hardly arrange."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.support import sim_operator as people
from tests.support.sim_acts import (
    plan_expiry,
    plan_forgetting,
    run_expiry,
    run_forgetting,
    run_offload,
    run_release,
    run_sweep,
)
from tests.support.sim_faults import Fate
from tests.support.sim_unasked import spawn_blindness, spawn_broker
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tests.support.sim_clients import Site
    from tests.support.sim_world import World


def copied_twice(world: World, site: Site) -> None:
    """A copier sleeps, another copies anew and dies; the first wakes, publishes and dies as
    well.
    """
    rng, name = world.rng, site.cluster.instance
    world.faults.strike("copied twice, both publishers dead")
    sending = ("put", "create_upload", "upload_part")
    asleep = Fate("objects", sending, "delay", rng.uniform(300.0, 600.0), naming="-ledger-")
    last = rng.choice((("metadata", "set"), ("broker", "unload_topic"), ("broker", "read_entry")))
    dies = Fate(last[0], (last[1],), "killed after")
    certified = Fate("objects", ("put",), "killed after", naming="/certificates/")
    world.start(f"{name}-slow", 1.0, site, run_offload, fates=(asleep, dies), restarts=0)
    at = rng.uniform(130.0, 200.0)
    world.start(f"{name}-other", at, site, run_offload, fates=(certified,), restarts=0)


def withdrawn_twice(world: World, site: Site) -> None:
    """Two runs find what one published unreadable; the broker offloads between their undoing it."""
    rng, name = world.rng, site.cluster.instance
    world.faults.strike("withdrawn by two runs")
    site.broker.bookkeeper_first = False
    telling = ("unload_topic", "read_entry")
    asleep = Fate("broker", telling, "delay", rng.uniform(126.0, 136.0))
    world.start(f"{name}-slow", 1.0, site, run_offload, fates=(asleep,))
    world.start(f"{name}-other", 124.0 + rng.random(), site, run_offload)
    spawn_blindness(world, site, 0.0, 600.0)
    for number in range(30):
        at = 124.0 + number * 0.5 + rng.random() * 0.5
        spawn_broker(world, site, f"{name}-broker-{number}", at, "offload")


def released_twice(world: World, site: Site) -> None:
    """A releaser sleeps before its rehearsal, another releases; then nothing can be read."""
    rng, name = world.rng, site.cluster.instance
    world.faults.strike("released by two runs")
    site.broker.bookkeeper_first = True  # without a mark it reads there
    for number in range(3):
        world.start(f"{name}-offload-{number}", 1.0 + number * 30, site, run_offload)
    at = rng.uniform(1500.0, 1700.0)
    asleep = Fate("broker", ("read_entry",), "delay", rng.uniform(60.0, 90.0))
    world.start(f"{name}-slow", at, site, run_release, fates=(asleep,))
    world.start(f"{name}-other", at + rng.uniform(5.0, 30.0), site, run_release)
    spawn_blindness(world, site, at + 55.0, 300.0)


def trimmed_and_restored(world: World, site: Site) -> None:
    """Released, trimmed, its copy given up by an approved plan that the bucket refuses in part.

    Then metadata comes back from a backup that names the copy, and a person takes the delete
    markers away: readers have it again. Nothing may delete it now, whatever was approved before.
    """
    rng, name, objects = world.rng, site.cluster.instance, world.objects
    objects.keep_versions()
    _released_early(world, site)
    backup: dict[str, Any] = {}
    world.scheduler.spawn("backup", 1900.0, lambda: backup.update(people.snapshot(site)))
    world.scheduler.spawn("refusal", 1950.0, lambda: _refuse(world))
    for number in range(3):
        _spawn_trim(world, site, 2000.0 + number * 20, leaves=True)
    world.start(f"{name}-plan", 2600.0, site, plan_expiry)
    planned = 2600.0 + rng.uniform(3700.0, 5000.0)
    world.start(f"{name}-expire", planned, site, run_expiry)
    if rng.random() < 0.3:
        world.start(f"{name}-sweep-before", planned + 300.0, site, run_sweep)
    back = planned + 400.0 + rng.random() * 200.0
    world.scheduler.spawn("restore", back, lambda: _restore_newer(world, site, backup))
    world.start(f"{name}-sweep-0", back + rng.uniform(5.0, 200.0), site, run_sweep)
    world.start(f"{name}-sweep-1", back + rng.uniform(5.0, 9000.0), site, run_sweep)


def forgotten(world: World, site: Site) -> None:
    """Released and trimmed long ago: copies go by one approved plan, records by another."""
    rng, name = world.rng, site.cluster.instance
    kept_s = rng.choice((3600.0, 7200.0))
    world.settings = replace(
        world.settings, release=replace(world.settings.release, records_kept_s=kept_s)
    )
    _released_early(world, site)
    for number in range(3):
        _spawn_trim(world, site, 2000.0 + number * 20, leaves=rng.random() < 0.7)
    expiry, records = 2600.0, 0.0
    for number in range(2):
        world.start(f"{name}-plan-{number}", expiry, site, plan_expiry)
        expiry += rng.uniform(3700.0, 4500.0)
        world.start(f"{name}-expire-{number}", expiry, site, run_expiry)
    records = expiry + kept_s + 600.0
    for number in range(2):
        world.start(f"{name}-records-{number}", records, site, plan_forgetting)
        records += rng.uniform(3700.0, 5000.0)
        world.start(f"{name}-forget-{number}", records, site, run_forgetting)
    if rng.random() < 0.3:
        nodes: dict[str, Any] = {}
        world.scheduler.spawn("backup", 1900.0, lambda: nodes.update(people.snapshot(site)))
        at = records - rng.uniform(0.0, 9000.0)
        world.scheduler.spawn("restore", at, lambda: _restore_newer(world, site, nodes))


def _released_early(world: World, site: Site) -> None:
    name = site.cluster.instance
    for number in range(2):
        world.start(f"{name}-offload-{number}", 1.0 + number * 200, site, run_offload)
        world.start(f"{name}-release-{number}", 1200.0 + number * 300, site, run_release)


def _spawn_trim(world: World, site: Site, at: float, *, leaves: bool) -> None:
    def act() -> None:
        with suppress(TierkeeperError):
            for ml_name in site.broker.names():
                site.broker.produce(ml_name, [b"younger"])
                site.broker.roll_over(ml_name)
                if site.broker.trim(ml_name, leaves=leaves) is not None:
                    world.faults.strike("ledger trimmed")

    world.scheduler.spawn("trim", at, act)


def _refuse(world: World) -> None:
    world.objects.refuses_version_deletes = True


def _restore_newer(world: World, site: Site, nodes: dict[str, Any]) -> None:
    """The topics come back as they were, and their copies with them, as far as a person can."""
    objects = world.objects
    hidden = [key for key in objects.peek_hidden() if "-ledger-" in key]
    if hidden:
        world.faults.strike("version deletes refused")
    shown = [key for key in hidden if objects.take_markers(key)]
    if shown:
        world.faults.strike("delete markers removed")
    if nodes:
        people.restore(world, site, nodes)
        if people.published(world, site):
            world.faults.strike("metadata restored to after a publication")
    objects.refuses_version_deletes = False
