"""What people do to a cluster: restore its metadata, hold, pause, damage; and how it is excused.

Owns: whatever people destroy is written down for the monitor, so that it is judged by what our
processes could know, and excused by name where nobody can help any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.support.sim_clients import Process
from tests.support.sim_truth import Rotted
from tests.support.sim_world import World
from tiering_assets.ground.own_policy import TieringMode
from tiering_assets.look.brakes.pauses import pause, resume
from tiering_assets.look.brakes.scopes import EVERYTHING
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.models import Hold
from tiering_assets.resources.errors import ObjectStoreError, TierkeeperError
from tiering_assets.resources.metastore.ledger_info import decode_managed_ledger
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

if TYPE_CHECKING:
    from tests.support.sim_clients import Site


def snapshot(site: Site) -> dict[str, Any]:
    return dict(site.cluster.metadata.nodes)


def restore(world: World, site: Site, nodes: Mapping[str, Any]) -> None:
    """Metadata goes back in time; every session ends and the broker starts anew."""
    world.note("operator", f"metadata of {site.cluster.instance} restored")
    named = _named(world, site)
    site.cluster.metadata.nodes = dict(nodes)
    for process in world.processes:
        if process.site is site:
            process.metadata.drop_session()
            process.seen_zxid = 0
    world.wire.forget_history()
    site.restored = True
    site.changed_at.update(dict.fromkeys(("restored", "shadow", "bookies"), world.scheduler.now))
    site.broker.restart()
    monitor, now = world.monitor, world.scheduler.now
    for uid in _named(world, site) - named:
        monitor.named_since[uid] = now
    site.set_back |= set_back(world, site)
    excuse(world, site)


def _named(world: World, site: Site) -> set[UUID]:
    return {
        info.offload.uid
        for _ml_name, topic in world.monitor.topics_of(site)
        for info in topic.ledgers
        if info.offload is not None
    }


def set_back(world: World, site: Site) -> set[str]:
    """Topics whose node is older than one that a publication was confirmed in, or of another life.

    A person must look.
    """
    prefix = f"tierkeeper/{site.cluster.instance}/publications/"
    found = set()
    for key in world.objects.peek_keys():
        if key.startswith(prefix) and (stored := world.objects.peek(key)) is not None:
            record = json.loads(stored[0])
            node = site.cluster.metadata.nodes.get(managed_ledger_path(record["ml_name"]))
            if node is None:
                continue
            older = node.stat.version < record["node_version"]
            if older or (site.restored and _lacks(node.data, record)):
                found.add(record["ml_name"])
    return found


def _lacks(node: bytes, record: Mapping[str, Any]) -> bool:
    """The backup was of another life of the topic: its list goes on past what was published
    since.
    """
    listed = [info.ledger_id for info in decode_managed_ledger(node).ledgers]
    published = {one["ledger_id"] for one in record["ledgers"]}
    return any(listed[0] < i < listed[-1] for i in published - set(listed))


def excuse(world: World, site: Site) -> None:
    """What nobody can read after a restore, and copies that retention took with their ledgers."""
    monitor = world.monitor
    for _ml_name, topic in monitor.topics_of(site):
        for info in topic.ledgers:
            context = info.offload
            if context is not None and not monitor.is_good(site, context.uid, info.ledger_id):
                monitor.damaged.add(context.uid)  # retention took what is named again
            if not monitor.readable(site, info):
                monitor.excused.add((site.cluster.instance, info.ledger_id))


def hold(world: World, site: Site) -> None:
    process = _operator(world, site)
    for ledger_id in sorted(site.cluster.written)[:1]:
        record = Hold(
            ledger_id=ledger_id,
            author="operator",
            reason="audit",
            held_at=process.clock(),
        )
        with suppress(ObjectStoreError):
            process.stack().book.create(keys.hold(ledger_id), record)
        instance = site.cluster.instance
        if world.monitor.has_record(instance, keys.hold(ledger_id)):
            world.faults.strike("hold set")
            world.monitor.hold(instance, ledger_id)


def pause_all(world: World, site: Site) -> None:
    stack = _operator(world, site).stack()
    with suppress(TierkeeperError):
        if pause(stack, EVERYTHING, TieringMode.PAUSED, reason="move", author="operator"):
            world.faults.strike("paused")


def resume_all(world: World, site: Site) -> None:
    stack = _operator(world, site).stack()
    with suppress(TierkeeperError):
        resume(stack, EVERYTHING, reason="moved", author="operator")


def _operator(world: World, site: Site) -> Process:
    """Nothing strikes a person's own command."""
    process = Process(world, "operator", site)
    process.steady = True
    return process


def damage(world: World, site: Site) -> bool:
    """A bit of a published object rots while the bookies still have the ledger."""
    for uid, ledger_id in published(world, site):
        if site.cluster.has_copy(ledger_id):
            world.faults.strike("object damaged after publication")
            world.monitor.damaged.add(uid)
            at = world.rot(data_key(uid, ledger_id))
            world.monitor.rotted[uid] = Rotted(at, world.scheduler.now)
            return True
    return False


def lose(world: World, uid: UUID, ledger_id: int, *, both: bool = True) -> bool:
    """Somebody deletes an attempt's objects: both, or the index alone."""
    gone = (data_key(uid, ledger_id), index_key(uid, ledger_id))[0 if both else 1 :]
    there = [key for key in gone if world.objects.peek_head(key) is not None]
    for key in there:
        world.objects.delete(key)
    if there:
        breaks(world, uid)
    return bool(there)


def replace_object(world: World, uid: UUID, ledger_id: int) -> bool:
    """Somebody writes other bytes under the same key."""
    key = data_key(uid, ledger_id)
    found = world.objects.peek(key)
    if found is None or not found[0]:
        return False
    world.objects.put(key, b"other " + found[0], metadata=found[1])
    breaks(world, uid)
    return True


def breaks(world: World, uid: UUID) -> None:
    """Processes that look from now on can know that the attempt is broken."""
    world.monitor.broken_at[uid] = world.scheduler.now


def published(world: World, site: Site) -> list[tuple[UUID, int]]:
    """Attempts and ledgers that complete contexts name, those on bookies first."""
    found = [
        (info.offload.uid, info.ledger_id)
        for _ml_name, topic in world.monitor.topics_of(site)
        for info in topic.ledgers
        if info.offload is not None and info.offload.complete
    ]
    return sorted(found, key=lambda one: not site.cluster.has_copy(one[1]))
