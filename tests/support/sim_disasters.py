"""Disasters that strike right after one of our own calls, drawn from the seed: which, when, how long.

Owns: the moments at which a disaster matters (a certificate was put, a node was marked, ...) and
what it does then. It counts under its name only where it had something to strike. Settings that
people changed are put right again a while later, and at the latest when the faults stop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from tests.support import sim_operator as people
from tests.support.sim_acts import run_deep_scrub
from tests.support.sim_faults import Ambush
from tests.support.sim_offloader import DRIVER, Place
from tiering_assets.offload_format.keys import data_key, index_key

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
_ANY = (CERTIFIED, OUTCOME, WRITTEN, PUBLISHED, INTENDED, RELOADED, READ, ASKED, LOOKED)


def draw(world: World, site: Site) -> None:
    """Up to six disasters of a seed lie in wait; one seed in six has none."""
    rng = world.rng
    for _ in range(rng.choice((0, 2, 3, 4, 5, 6))):
        name = rng.choice(_DRAWN)
        strike, moments = DISASTERS[name]
        lay(world, site, name, strike, rng.choice(moments), rng.choice((1, 1, 1, 2)))


def lay(world: World, site: Site, name: str, strike: Strike, moment: Moment, nth: int = 1) -> None:
    lasts_s = world.rng.choice((20.0, 300.0, 900.0, 3000.0))

    def act(struck: Site, about: str) -> bool:
        if struck is not site or not strike(world, site, about, lasts_s):
            return False
        world.note("people", name)
        world.faults.strike(name)
        return True

    world.lie_in_wait(Ambush(moment.room, moment.method, moment.naming, act, nth))


def put_right(world: World, site: Site) -> None:
    """End every disaster of settings; what objects were moved to or will expire as well."""
    broker, now = site.broker, world.clock(0).timestamp()
    broker.offloader.driver, broker.offloader.skips = DRIVER, False
    broker.offloader.policies.clear()
    broker.drop_shadows()
    broker.unregistered_until = now
    broker.bookkeeper_first = site.bookkeeper_first
    site.cluster.be_short(False)
    world.objects.refuses_version_deletes = False
    for key in world.objects.peek_keys():
        if "-ledger-" in key:
            world.objects.expire(key, None)
            _thaw(world, key)
    people.resume_all(world, site)


def _thaw(world: World, key: str) -> None:
    head = world.objects.peek_head(key)
    if head is not None and head.storage_class == "GLACIER":
        world.objects.move(key, None)


# ----- objects


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


def _lost(world: World, site: Site, about: str, lasts_s: float) -> bool:
    pair = _unpublished(world, site, about)
    return pair is not None and people.lose(world, *pair, both=lasts_s > 100)


def _replaced(world: World, site: Site, about: str, _lasts_s: float) -> bool:
    pair = _unpublished(world, site, about)
    return pair is not None and people.replace_object(world, *pair)


def _lost_later(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    for uid, ledger_id in people.published(world, site)[:1]:
        if site.cluster.has_node(ledger_id) and people.lose(world, uid, ledger_id):
            world.monitor.damaged.add(uid)
            _scrub_after(world, site, lasts_s)
            return True
    return False


def _scrub_after(world: World, site: Site, seconds: float) -> None:
    at = world.scheduler.now + seconds
    world.start(f"{site.cluster.instance}-scrub-{world.calls}", at, site, run_deep_scrub)


def _damaged(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    if people.damage(world, site):
        _scrub_after(world, site, lasts_s)
        world.faults.counts["object damaged after publication"] -= 1  # counted by who lies in wait
        return True
    return False


def _class_moved(to: str) -> Strike:
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
    if not site.cluster.has_node(ledger_id):
        world.monitor.excused.add((site.cluster.instance, ledger_id))


def _expiring(world: World, site: Site, _about: str, _lasts_s: float) -> bool:
    for uid, ledger_id in people.published(world, site)[:1]:
        key = data_key(uid, ledger_id)
        if world.objects.peek_head(key) is not None:
            world.objects.expire(key, 'expiry-date="Fri, 01 Jan 2027 00:00:00 GMT"')
            return True
    return False


# ----- metadata


def _restored_older(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    """A backup from before a publication comes back after it."""
    nodes, before = people.snapshot(site), set(people.published(world, site))

    def strike(_world: World, _site: Site, _about: str, _lasts_s: float) -> bool:
        if not set(people.published(world, site)) - before:
            return False

        def restore() -> None:
            people.restore(world, site, nodes)

        _later(world, lasts_s, restore)
        return True

    lay(world, site, "metadata restored to before a publication", strike, PUBLISHED)
    world.faults.counts["metadata restored to before a publication"] -= 1
    return True


def _restored_newer(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    """A backup that names our contexts comes back: later marks, deletes and trims are undone."""
    if not people.published(world, site):
        return False
    nodes = people.snapshot(site)
    _later(world, lasts_s, lambda: people.restore(world, site, nodes))
    return True


def _later(world: World, seconds: float, act: Callable[[], None]) -> None:
    world.scheduler.spawn("people", world.scheduler.now + seconds, act)


# ----- brokers and bookies


def _changed(world: World, site: Site, *names: str) -> None:
    for name in names:
        site.changed_at[name] = world.scheduler.now


def _policy(place: Place) -> Strike:
    def strike(world: World, site: Site, _about: str, lasts_s: float) -> bool:
        names = site.broker.names()
        if not names or site.broker.offloader.policies:
            return False
        namespace = names[0].rsplit("/", 2)[0]
        bucket = place.bucket or world.objects.bucket
        site.broker.offloader.policies[namespace] = Place(place.driver, bucket, place.endpoint)
        _changed(world, site, "policy")
        _later(world, lasts_s, lambda: _policy_back(world, site))
        return True

    return strike


def _policy_back(world: World, site: Site) -> None:
    site.broker.offloader.policies.clear()
    _changed(world, site, "policy")


def _driver_removed(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    if site.broker.offloader.driver is None:
        return False
    site.broker.offloader.driver = None
    _changed(world, site, "driver")
    _later(world, lasts_s, lambda: _settings_back(world, site))
    return True


def _skips(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    if site.broker.offloader.skips:
        return False
    site.broker.offloader.skips = True
    _changed(world, site, "skips")
    _later(world, lasts_s, lambda: _settings_back(world, site))
    return True


def _settings_back(world: World, site: Site) -> None:
    site.broker.offloader.driver, site.broker.offloader.skips = DRIVER, False
    site.broker.bookkeeper_first = site.bookkeeper_first
    _changed(world, site, "driver", "skips")


def _restarted(world: World, site: Site, _about: str, lasts_s: float) -> bool:
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
    _later(world, lasts_s, lambda: _settings_back(world, site))
    return True


def _shadowed(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    names = site.broker.names()
    if not names or site.broker.shadows:
        return False
    site.broker.make_shadow(names[0])
    _changed(world, site, "shadow")
    _later(world, lasts_s, site.broker.drop_shadows)
    return True


def _short(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    if site.cluster.is_short:
        return False
    site.cluster.be_short(True)
    _changed(world, site, "bookies")
    _later(world, lasts_s, lambda: site.cluster.be_short(False))
    return True


def _unregistered(world: World, site: Site, _about: str, lasts_s: float) -> bool:
    """Its session is gone; it answers, and reads and serves by its memory."""
    if not site.broker.topics:
        return False
    site.broker.unregistered_until = world.clock(lasts_s).timestamp()
    return True


DISASTERS: dict[str, tuple[Strike, tuple[Moment, ...]]] = {
    "objects lost before publication": (_lost, (CERTIFIED, CERTIFIED, OUTCOME)),
    "objects replaced before publication": (_replaced, (CERTIFIED, CERTIFIED, OUTCOME)),
    "object lost after publication": (_lost_later, (PUBLISHED, READ, ASKED, INTENDED)),
    "object damaged after publication": (_damaged, (PUBLISHED,)),
    "metadata restored to before a publication": (_restored_older, (CERTIFIED, OUTCOME)),
    "metadata restored to after a publication": (_restored_newer, (PUBLISHED, INTENDED, READ)),
    "offload policy names another driver": (_policy(Place("azureblob")), _ANY),
    "offload policy names another bucket": (_policy(Place(DRIVER, "elsewhere")), _ANY),
    "offload policy names another endpoint": (_policy(Place(endpoint="http://other")), _ANY),
    "offload policy names no driver": (_policy(Place(None)), _ANY),
    "broker driver removed": (_driver_removed, _ANY),
    "autoSkip switched on": (_skips, _ANY),
    "shadow made": (_shadowed, _ANY),
    "bookies short": (_short, _ANY),
    "broker restarts with other settings": (_restarted, _ANY),
    "broker serves on after its session": (_unregistered, (CERTIFIED, OUTCOME, PUBLISHED, ASKED)),
    "objects moved to a readable class": (_class_moved("GLACIER_IR"), (PUBLISHED, READ, ASKED)),
    "objects moved to an archive": (_class_moved("GLACIER"), (PUBLISHED, READ, ASKED)),
    "objects expire": (_expiring, (PUBLISHED, READ, ASKED)),
}
_RARE = (  # which often find nothing to strike
    "metadata restored to before a publication",
    "metadata restored to before a publication",
    "object lost after publication",
    "object lost after publication",
    "objects moved to a readable class",
    "objects moved to an archive",
    "objects moved to an archive",
    "objects expire",
    "objects expire",
    "offload policy names no driver",
    "offload policy names another endpoint",
    "offload policy names another bucket",
    "objects replaced before publication",
    "autoSkip switched on",
    "bookies short",
    "broker driver removed",
    "shadow made",
)
_DRAWN = (*DISASTERS, *_RARE)
