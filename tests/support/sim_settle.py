"""The end of a seed: faults and disasters have stopped, and all that is due must come to an end.

Owns: every due ledger gets published and released, nothing is left that nobody owns, and running
every step again changes nothing. What only a person can decide is excused by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tests.support.sim_acts import run_offload, run_release_along, run_sweep
from tests.support.sim_clients import Process
from tests.support.sim_disasters import put_right
from tests.support.sim_operator import set_back
from tiering_assets.offload_format.keys import ObjectKey, data_key, parse_key
from tiering_assets.records import keys
from tiering_assets.resources.errors import MetadataError, TierkeeperError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo

if TYPE_CHECKING:
    from tests.support.sim_clients import Site
    from tests.support.sim_world import World

_PASSING = re.compile(
    r"^tierkeeper/[^/]+/(begun-releases|claims|day-book|disturbances|failures|pause-lifts)/"
)
_BACK_IN_TIME = "the metadata store went back in time"
ROUNDS_MAX = 6  # a copy that rotted is withdrawn, then quarantined, then made again and released


def settle(world: World) -> None:
    """Faults have stopped: what is due gets done, and then nothing changes any more."""
    world.store_offset_s = 0.0
    world.scheduler.now += 2 * 86400.0 + 3600.0
    for site in world.sites:
        put_right(world, site)
        site.set_back |= set_back(world, site)
        site.cluster.collect()
        _finish_broker_offloads(site)
    offload, release, clean = (
        ("offload", run_offload),
        ("release", run_release_along),
        ("sweep", run_sweep),
    )
    # Nothing that is due may need a clean-up to get done.
    until_nothing_changes(world, (offload, release))
    if world.monitor.found:
        return
    for site in world.sites:
        _judge_progress(world, site)
    before = _state(world)
    _round(world, "clean", (clean,))
    if _state(world) != before and not world.monitor.found:
        until_nothing_changes(world, (offload, release, clean))
    for site in world.sites:
        _judge_end(world, site)


Kind = tuple[str, Callable[[Process], None]]


def until_nothing_changes(world: World, kinds: Sequence[Kind]) -> None:
    before = after = _state(world)
    for number in range(ROUNDS_MAX):
        before = after
        _round(world, f"settle-{number}", kinds)
        after = _state(world)
        if after == before or world.monitor.found:
            return
    gone, new = before - after, after - before
    world.monitor.report("I12", f"running again changed {sorted(gone)} to {sorted(new)}")


def _round(world: World, name: str, kinds: Sequence[Kind]) -> None:
    for site in world.sites:
        for kind, act in kinds:
            process = Process(world, f"{site.cluster.instance}-{name}-{kind}", site)
            try:
                act(process)
            except TierkeeperError as error:
                if site.set_back and _BACK_IN_TIME in str(error):
                    continue  # a person must look
                world.monitor.report("progress", f"{process.name}: {type(error).__name__}: {error}")
            finally:
                process.close_books()
            world.scheduler.now += 1300.0


def _finish_broker_offloads(site: Site) -> None:
    """A broker tries again what it left; until then its context keeps others out."""
    for ml_name in site.broker.names():
        for _ in range(5):
            try:
                loaded = site.broker.load(ml_name)
                if any(
                    i.offloadContext.HasField("uidMsb") and not i.offloadContext.complete
                    for i in loaded.message.ledgerInfo
                ):
                    site.broker.offload(ml_name)
            except (TierkeeperError, MetadataError):
                continue


def _judge_progress(world: World, site: Site) -> None:
    monitor = world.monitor
    for ml_name, topic in monitor.topics_of(site):
        if ml_name in site.set_back:
            continue  # its node was older than a publication: a person must look
        for info in topic.ledgers:
            reason = _unfinished(world, site, info)
            if reason is not None:
                monitor.report("progress", f"ledger {info.ledger_id} of {ml_name}: {reason}")


def _judge_end(world: World, site: Site) -> None:
    monitor, cluster = world.monitor, site.cluster
    for ml_name, _topic in monitor.topics_of(site):
        monitor.check_topic(site, ml_name)
    prefix = f"tierkeeper/{cluster.instance}/"
    for key, upload_id in () if site.restored else world.objects.peek_uploads():
        parsed = parse_key(key)
        if parsed is not None and world.objects.peek(
            f"{prefix}{keys.attempt(parsed.ledger_id, parsed.uid)}"
        ):
            if _may_hold_all_that_is_left(world, site, parsed.ledger_id):
                continue
            monitor.report("I13", f"upload {upload_id} of {key} is left")


def _may_hold_all_that_is_left(world: World, site: Site, ledger_id: int) -> bool:
    """BookKeeper no longer has a ledger whose copy is quarantined: a person must look first."""
    monitor, cluster = world.monitor, site.cluster
    contexts = [
        info.offload
        for _ml_name, topic in monitor.topics_of(site)
        for info in topic.ledgers
        if info.ledger_id == ledger_id and info.offload is not None
    ]
    return not cluster.has_node(ledger_id) and any(
        monitor.has_record(cluster.instance, keys.quarantine(ledger_id, context.uid))
        for context in contexts
    )


def _unfinished(world: World, site: Site, info: LedgerInfo) -> str | None:
    monitor, cluster = world.monitor, site.cluster
    ledger_id, context = info.ledger_id, info.offload
    excused = (cluster.instance, ledger_id) in monitor.excused
    if info.is_open or excused or not cluster.written[ledger_id]:
        return None
    if context is None:
        if any(parse_key(data_key(uid, ledger_id)) in _attempted(world) for uid in monitor.damaged):
            return None  # its copy rotted and was withdrawn
        if cluster.has_copy(ledger_id):
            return "not published"
        return None
    ours = monitor.has_record(cluster.instance, keys.attempt(ledger_id, context.uid))
    if not ours or context.uid in monitor.damaged or ledger_id in monitor.held(cluster.instance):
        return None
    if monitor.has_record(cluster.instance, keys.quarantine(ledger_id, context.uid)):
        return None  # a scrub replaces it
    if monitor.is_dated_backwards(cluster.instance, ledger_id, context.uid):
        return None  # a person must look
    if context.uid in monitor.broken_at:
        return None  # taken away, and put again by a run that was asleep: not what is certified
    if not context.complete:
        return "its context is not complete"
    if site.restored and ledger_id not in cluster.bookies:
        return None  # its node came back with a backup, its entries did not: nothing to read again
    return "not released" if cluster.has_node(ledger_id) else None


def _attempted(world: World) -> set[ObjectKey | None]:
    return {parse_key(key) for key in world.objects.peek_keys()}


def _state(world: World) -> frozenset[str]:
    """What the steps work towards: contexts, ledger nodes, objects, uploads and lasting records."""
    found = {f"object {k}" for k in world.objects.peek_keys() if not _PASSING.search(k)}
    found |= {f"upload {upload}" for upload in world.objects.peek_uploads()}
    for site in world.sites:
        name = site.cluster.instance
        for ml_name, topic in world.monitor.topics_of(site):
            for info in topic.ledgers:
                context = info.offload
                mark = context and (context.uid, context.complete, context.bookkeeper_deleted)
                if not info.is_open:
                    node = site.cluster.has_node(info.ledger_id)
                    found.add(f"{name} {ml_name} {info.ledger_id} {mark} node={node}")
    return frozenset(found)
