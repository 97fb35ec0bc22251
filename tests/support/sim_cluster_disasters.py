"""What people do to a cluster: backups come back, settings of brokers change, bookies run short."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import sim_operator as people
from tests.support.sim_broker_memory import NAME
from tests.support.sim_moments import PUBLISHED, Strike, later, lay
from tests.support.sim_offloader import DRIVER, Place
from tiering_assets.records import keys

if TYPE_CHECKING:
    from tests.support.sim_clients import Site
    from tests.support.sim_world import World


def restored_older(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    """A backup from before a publication comes back after it."""
    nodes, before = people.snapshot(site), set(people.published(world, site))

    def strike(_world: World, _site: Site, _about: str, _lasts_s: float) -> bool:
        if not set(people.published(world, site)) - before:
            return False

        def restore() -> None:
            people.restore(world, site, nodes)

        later(world, lasts_s, restore)
        return True

    lay(world, site, "metadata restored to before a publication", strike, PUBLISHED)
    world.faults.counts["metadata restored to before a publication"] -= 1
    return True


def restored_newer(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    """A backup that names our contexts comes back: later marks, deletes and trims are undone."""
    if not people.published(world, site):
        return False
    nodes = people.snapshot(site)
    later(world, lasts_s, lambda: people.restore(world, site, nodes))
    return True


def _changed(world: World, site: Site, *names: str) -> None:
    for name in names:
        site.changed_at[name] = world.scheduler.now


def policy(place: Place) -> Strike:
    def strike(world: World, site: Site, _about: str, lasts_s: float) -> bool:
        names = site.broker.names()
        if not names or site.broker.offloader.policies:
            return False
        namespace = names[0].rsplit("/", 2)[0]
        bucket = place.bucket or world.objects.bucket
        site.broker.offloader.policies[namespace] = Place(place.driver, bucket, place.endpoint)
        _changed(world, site, "policy")
        later(world, lasts_s, lambda: _policy_back(world, site))
        return True

    return strike


def _policy_back(world: World, site: Site) -> None:
    site.broker.offloader.policies.clear()
    _changed(world, site, "policy")


def driver_removed(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    if site.broker.offloader.driver is None:
        return False
    site.broker.offloader.driver = None
    _changed(world, site, "driver")
    later(world, lasts_s, lambda: _settings_back(world, site))
    return True


def skips(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    if site.broker.offloader.skips:
        return False
    site.broker.offloader.skips = True
    _changed(world, site, "skips")
    later(world, lasts_s, lambda: _settings_back(world, site))
    return True


def _settings_back(world: World, site: Site) -> None:
    site.broker.offloader.driver, site.broker.offloader.skips = DRIVER, False
    site.broker.bookkeeper_first = site.bookkeeper_first
    _changed(world, site, "driver", "skips")


def restarted(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    """Its new settings are other ones: none of the driver, skipping, or another read priority."""
    broker = site.broker
    broker.restart()
    if lasts_s < 100:
        broker.offloader.driver = None
    elif lasts_s < 500:
        broker.offloader.skips = True
    elif all(site.cluster.has_node(ledger) for _uid, ledger in people.published(world, site)):
        broker.bookkeeper_first = not broker.bookkeeper_first
    _changed(world, site, "driver", "skips")
    later(world, lasts_s, lambda: _settings_back(world, site))
    return True


def shadowed(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    names = site.broker.names()
    if not names or site.broker.shadows:
        return False
    site.broker.make_shadow(names[0])
    _changed(world, site, "shadow")
    later(world, lasts_s, site.broker.drop_shadows)
    return True


def short(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    if site.cluster.is_short:
        return False
    site.cluster.be_short(True)
    _changed(world, site, "bookies")
    later(world, lasts_s, lambda: site.cluster.be_short(False))
    return True


def unregistered(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    """Its session is gone; it answers, and reads and serves by its memory."""
    seen = world.monitor.record(site.cluster.instance, keys.BROKERS_SEEN)
    was_seen = any(one["name"] == NAME for one in (seen or {"brokers": []})["brokers"])
    if not site.broker.topics or not was_seen:
        return False  # nobody can ask a broker that nobody has heard of
    site.broker.unregistered_until = world.clock(lasts_s).timestamp()
    return True
