"""What people and lifecycle rules do to objects: lose, replace, damage, move, let expire."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from tests.support import sim_operator as people
from tests.support.sim_acts import run_deep_scrub
from tests.support.sim_moments import Strike
from tiering_assets.offload_format.keys import data_key, index_key

if TYPE_CHECKING:
    from tests.support.sim_clients import Site
    from tests.support.sim_world import World


def _pair(about: str) -> tuple[UUID, int] | None:
    """Attempt and ledger of a record's key `.../<ledger>/<uid>.json`."""
    parts = about.removesuffix(".json").split("/")
    try:
        return UUID(parts[-1].removesuffix(".intent")), int(parts[-2])
    except (ValueError, IndexError):
        return None


def _unpublished(world: World, site: Site, about: str) -> tuple[UUID, int] | None:
    pair = _pair(about)
    return None if pair is None or pair in people.published(world, site) else pair


def lost(world: World, site: Site, about: str, lasts_s: float) -> bool:
    pair = _unpublished(world, site, about)
    return pair is not None and people.lose(world, *pair, both=lasts_s > 100)


def replaced(world: World, site: Site, about: str, _lasts_s: float) -> bool:
    pair = _unpublished(world, site, about)
    return pair is not None and people.replace_object(world, *pair)


def lost_later(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    for uid, ledger_id in people.published(world, site)[:1]:
        if site.cluster.has_copy(ledger_id) and people.lose(world, uid, ledger_id):
            world.monitor.damaged.add(uid)
            _scrub_after(world, site, lasts_s)
            return True
    return False


def _scrub_after(world: World, site: Site, seconds: float) -> None:
    at = world.scheduler.now + seconds
    world.start(f"{site.cluster.instance}-scrub-{world.calls}", at, site, run_deep_scrub)


def damaged(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    if people.damage(world, site):
        _scrub_after(world, site, lasts_s)
        world.faults.counts["object damaged after publication"] -= 1  # counted by who lies in wait
        return True
    return False


def class_moved(to: str) -> Strike:
    def strike(world: World, site: Site, _about: str, lasts_s: float) -> bool:
        for uid, ledger_id in people.published(world, site)[:1]:
            keys = [data_key(uid, ledger_id), index_key(uid, ledger_id)]
            if any(world.objects.peek_head(key) is None for key in keys):
                continue
            for key in keys:
                world.objects.move(key, to)
            if to == "GLACIER":
                _frozen(world, site, uid, ledger_id)
            _scrub_after(world, site, lasts_s)
            return True
        return False

    return strike


def _frozen(world: World, site: Site, uid: UUID, ledger_id: int) -> None:
    people.breaks(world, uid)
    world.monitor.damaged.add(uid)
    if not site.cluster.has_copy(ledger_id):
        world.monitor.excused.add((site.cluster.instance, ledger_id))


def expiring(world: World, site: Site, _about: str, _lasts_s: float) -> bool:
    for uid, ledger_id in people.published(world, site)[:1]:
        key = data_key(uid, ledger_id)
        if world.objects.peek_head(key) is not None:
            world.objects.expire(key, 'expiry-date="Fri, 01 Jan 2027 00:00:00 GMT"')
            return True
    return False
