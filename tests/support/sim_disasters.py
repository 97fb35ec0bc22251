"""Disasters that strike right after one of our own calls, drawn from the seed: which, when, how
long.

Owns: the moments at which a disaster matters (a certificate was put, a node was marked, ...) and
what it does then. It counts under its name only where it had something to strike. Settings that
people changed are put right again a while later, and at the latest when the faults stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import sim_cluster_disasters as cluster
from tests.support import sim_object_disasters as objects
from tests.support import sim_operator as people
from tests.support.sim_moments import (
    ANY,
    ASKED,
    CERTIFIED,
    INTENDED,
    OUTCOME,
    PUBLISHED,
    READ,
    Moment,
    Strike,
    lay,
)
from tests.support.sim_offloader import DRIVER, Place
from tiering_assets.offload_format.keys import parse_key

if TYPE_CHECKING:
    from tests.support.sim_clients import Site
    from tests.support.sim_world import World


def draw(world: World, site: Site) -> None:
    """Up to six disasters of a seed lie in wait; one seed in six has none."""
    rng = world.rng
    for _ in range(rng.choice((0, 2, 3, 4, 5, 6))):
        name = rng.choice(_DRAWN)
        strike, moments = DISASTERS[name]
        lay(world, site, name, strike, rng.choice(moments), rng.choice((1, 1, 1, 2)))


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
            _trust_again(world, site, key)
    people.resume_all(world, site)


def _trust_again(world: World, site: Site, key: str) -> None:
    """What was only out of reach is as good as it was."""
    parsed, monitor = parse_key(key), world.monitor
    if parsed is None or parsed.uid not in monitor.damaged:
        return
    ours = monitor.attempt_of(site.cluster.instance, parsed.ledger_id, parsed.uid) is not None
    if ours and monitor.is_good(site, parsed.uid, parsed.ledger_id):
        monitor.damaged.discard(parsed.uid)


def _thaw(world: World, key: str) -> None:
    head = world.objects.peek_head(key)
    if head is not None and head.storage_class == "GLACIER":
        world.objects.move(key, None)


DISASTERS: dict[str, tuple[Strike, tuple[Moment, ...]]] = {
    "objects lost before publication": (objects.lost, (CERTIFIED, CERTIFIED, OUTCOME)),
    "objects replaced before publication": (objects.replaced, (CERTIFIED, CERTIFIED, OUTCOME)),
    "object lost after publication": (objects.lost_later, (PUBLISHED, READ, ASKED, INTENDED)),
    "object damaged after publication": (objects.damaged, (PUBLISHED,)),
    "metadata restored to before a publication": (cluster.restored_older, (CERTIFIED, OUTCOME)),
    "metadata restored to after a publication": (
        cluster.restored_newer,
        (PUBLISHED, INTENDED, READ),
    ),
    "offload policy names another driver": (cluster.policy(Place("azureblob")), ANY),
    "offload policy names another bucket": (cluster.policy(Place(DRIVER, "elsewhere")), ANY),
    "offload policy names another endpoint": (cluster.policy(Place(endpoint="http://other")), ANY),
    "offload policy names no driver": (cluster.policy(Place(None)), ANY),
    "broker driver removed": (cluster.driver_removed, ANY),
    "autoSkip switched on": (cluster.skips, ANY),
    "shadow made": (cluster.shadowed, ANY),
    "bookies short": (cluster.short, ANY),
    "broker restarts with other settings": (cluster.restarted, ANY),
    "broker serves on after its session": (
        cluster.unregistered,
        (CERTIFIED, OUTCOME, PUBLISHED, ASKED),
    ),
    "objects moved to a readable class": (
        objects.class_moved("GLACIER_IR"),
        (PUBLISHED, READ, ASKED),
    ),
    "objects moved to an archive": (objects.class_moved("GLACIER"), (PUBLISHED, READ, ASKED)),
    "objects expire": (objects.expiring, (PUBLISHED, READ, ASKED)),
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
    "offload policy names another driver",
    "broker restarts with other settings",
    "broker serves on after its session",
)
_DRAWN = (*DISASTERS, *_RARE)
