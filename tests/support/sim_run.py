"""One seed: lay out a world, let everybody act while faults strike, stop the faults, and judge the end.

Owns the schedule, which is drawn from the seed before anybody acts, and what must hold once faults
have stopped: every due ledger gets published and released, nothing is left that nobody owns, and
running every step again changes nothing.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from resources.errors import MetadataError, ObjectStoreError, RefusedError, TierkeeperError
from resources.metastore.ledger_info import LedgerInfo
from resources.object_store import records
from resources.object_store.records import StoredRecord
from tests.support.sim_clients import Process, Site
from tests.support.sim_faults import Fate
from tests.support.sim_monitor import Found
from tests.support.sim_scheduler import NoProgress
from tests.support.sim_world import World
from tiering_assets.offload_format.keys import ObjectKey, data_key, parse_key
from tiering_assets.records import keys
from tiering_assets.records.models import Hold
from tiering_assets.steps import clean_up
from tiering_assets.steps.pipeline import offload_batch
from tiering_assets.steps.record_book import RecordBook, Stored
from tiering_assets.steps.release_batch import due_ledgers, release_batch

_PASSING = re.compile(r"^tierkeeper/[^/]+/(claims|disturbances|failures)/")
FAULTS_S = 5400.0  # how long runs are started; zombies may wake later
ROUNDS_MAX = 6  # a copy that rotted is withdrawn, then quarantined, then made again and released


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one seed."""

    seed: int
    found: tuple[Found, ...]
    coverage: Counter[str]
    calls: int
    released: int
    trace: tuple[str, ...] = field(default=(), repr=False)


def run_seed(seed: int, *, traced: bool = False) -> Outcome:
    """Simulate one seed to its end; the same seed gives the same outcome."""
    random.seed(seed)  # the back-off's jitter
    with (
        patch.object(records, "decode_record", _remembered(records.decode_record)),
        patch.object(RecordBook, "_typed", staticmethod(_remembered_types(RecordBook._typed))),
    ):
        return _run(seed, traced=traced)


def _remembered(decode: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The same bytes are read a hundred times in a seed."""
    known: dict[bytes, dict[str, Any]] = {}

    def decode_record(body: bytes, *, key: str) -> dict[str, Any]:
        found = known.get(body)
        if found is None:
            found = known[body] = decode(body, key=key)
        return found

    return decode_record


def _remembered_types(typed: Callable[..., Stored[Any]]) -> Callable[..., Stored[Any]]:
    """What a sound record says is decided by its bytes alone."""
    known: dict[tuple[type[Any], str], Any] = {}

    def remembered(record_type: type[Any], stored: StoredRecord) -> Stored[Any]:
        name = (record_type, stored.sha256)
        if name not in known:
            known[name] = typed(record_type, stored).record
        return Stored(
            key=stored.key,
            record=known[name],
            sha256=stored.sha256,
            stored_at=stored.last_modified,
            etag=stored.etag,
            body=stored.record,
        )

    return remembered


def _run(seed: int, *, traced: bool) -> Outcome:
    world = World(seed, traced=traced)
    for site in _lay_out(world):
        _schedule(world, site)
    world.faults.on = True
    world.scheduler.run()
    world.faults.on = False
    monitor = world.monitor
    for actor, error in world.scheduler.failures:
        what = "progress" if isinstance(error, NoProgress) else "unexpected error"
        monitor.report(what, f"{actor}: {type(error).__name__}: {error}")
    if not monitor.found:
        _settle(world)
    released = sum(len(s.cluster.written) - len(s.cluster.bookies) for s in world.sites)
    return Outcome(
        seed=seed,
        found=tuple(monitor.found),
        coverage=world.faults.counts,
        calls=world.calls,
        released=released,
        trace=tuple(world.trace or ()),
    )


# ----- the schedule


def _lay_out(world: World) -> list[Site]:
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
                site.broker.produce(ml_name, _payloads(rng))
                site.broker.roll_over(ml_name)
            if rng.random() < 0.3:
                site.broker.topics.clear()
                site.broker.owned_until = -1.0
    return world.sites


def _payloads(rng: random.Random) -> list[bytes]:
    sizes = [rng.choice((0, 10, 40, 90, 300, 500)) for _ in range(rng.randint(1, 6))]
    return [rng.randbytes(size) for size in sizes]


def _schedule(world: World, site: Site) -> None:
    scripted = world.rng.random()
    if scripted < 0.03:
        _copied_twice(world, site)
        return
    if scripted < 0.06:
        _withdrawn_twice(world, site)
        return
    if scripted < 0.09:
        _released_twice(world, site)
        return
    rng, first = world.rng, site is world.sites[0]
    offloads = [rng.uniform(0, 600)]
    if rng.random() < 0.5:
        world.faults.strike("duplicate run")
        offloads.append(offloads[0] + rng.uniform(0, 0.5))
    if first:
        offloads.append(rng.uniform(600, FAULTS_S))
    releases = [offloads[0] + rng.uniform(60, 1200), rng.uniform(1500, FAULTS_S)]
    if rng.random() < 0.4:
        world.faults.strike("duplicate run")
        releases.append(releases[0] + rng.uniform(0, 0.5))
    sweeps = [rng.uniform(1800, FAULTS_S + 2000)]
    if rng.random() < 0.3:
        sweeps.append(offloads[-1] + rng.uniform(0, 1.0))
    if rng.random() < 0.3:
        sweeps.append(sweeps[0] + rng.uniform(1800.0, 3000.0))
    kinds: tuple[tuple[str, list[float], Callable[[Process], None]], ...] = (
        ("offload", offloads, run_offload),
        ("release", releases, run_release if rng.random() < 0.6 else run_release_along),
        ("sweep", sweeps, run_sweep),
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
        _spawn_broker(world, site, f"{name}-broker-{number}", at)
    for number in range(2):
        world.scheduler.spawn(
            f"{name}-collection-{number}", rng.uniform(0, FAULTS_S), site.cluster.collect
        )
    if rng.random() < 0.15:
        at = rng.choice((*offloads, *releases)) + rng.uniform(-1.0, 0.5)
        lasts_s = rng.choice((5.0, 8.0, 300.0))
        _spawn_blindness(world, site, at, lasts_s)
        if rng.random() < 0.5:
            at += rng.uniform(4.0, lasts_s + 4.0)
            _spawn_broker(world, site, f"{site.cluster.instance}-broker-then", at, "offload")
    if rng.random() < 0.4:
        soon = rng.choice(releases) - rng.uniform(0, 300)
        _spawn_operator(world, site, rng.choice((soon, rng.uniform(0, FAULTS_S))))


def _copied_twice(world: World, site: Site) -> None:
    """A copier sleeps, another copies anew and dies; the first wakes, publishes and dies as well."""
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


def _withdrawn_twice(world: World, site: Site) -> None:
    """Two runs find what one published unreadable; the broker offloads between their undoing it."""
    rng, name = world.rng, site.cluster.instance
    world.faults.strike("withdrawn by two runs")
    site.broker.bookkeeper_first = False
    telling = ("unload_topic", "read_entry")
    asleep = Fate("broker", telling, "delay", rng.uniform(126.0, 136.0))
    world.start(f"{name}-slow", 1.0, site, run_offload, fates=(asleep,))
    world.start(f"{name}-other", 124.0 + rng.random(), site, run_offload)
    _spawn_blindness(world, site, 0.0, 600.0)
    for number in range(30):
        at = 124.0 + number * 0.5 + rng.random() * 0.5
        _spawn_broker(world, site, f"{name}-broker-{number}", at, "offload")


def _released_twice(world: World, site: Site) -> None:
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
    _spawn_blindness(world, site, at + 55.0, 300.0)


def _spawn_broker(world: World, site: Site, name: str, at: float, what: str | None = None) -> None:
    rng, broker = world.rng, site.broker
    what = what or rng.choice(
        ("traffic", "traffic", "traffic", "trim", "offload", "release", "restart")
    )
    payloads, ahead = _payloads(rng), rng.uniform(0.0, 1.0)
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


def _spawn_blindness(world: World, site: Site, at: float, seconds: float) -> None:
    def act() -> None:
        world.faults.strike("broker cannot read objects")
        site.broker.blind_until = world.clock(seconds).timestamp()

    world.scheduler.spawn("blindness", at, act)


def _spawn_operator(world: World, site: Site, at: float) -> None:
    rng, broker = world.rng, site.broker
    what = rng.choice(("restore", "remake", "hold", "clock", "clock", "foreign", "damage"))
    back_s, steps_s = rng.uniform(0.1, 900.0), rng.choice((-86400.0, -700.0, 700.0, 86400.0))

    def act() -> None:
        names = broker.names()
        if what == "restore":
            nodes = world.snapshot(site)
            world.scheduler.pause(back_s)
            world.faults.strike("metadata restored")
            world.restore(site, nodes)
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
            _hold(world, site)
        elif what == "clock":
            world.faults.strike("store clock steps")
            world.store_offset_s += steps_s
        elif what == "foreign":
            world.faults.strike("foreign object")
            world.objects.put(data_key(world.new_uid(), 1), b"not ours", metadata={})
        elif what == "damage":
            _damage(world, site)

    world.scheduler.spawn("operator", at, act)


def _hold(world: World, site: Site) -> None:
    process = Process(world, "operator", site)
    process.steady = True
    for ledger_id in sorted(site.cluster.written)[:1]:
        hold = Hold(
            ledger_id=ledger_id,
            author="operator",
            reason="audit",
            held_at=process.clock(),
        )
        with suppress(ObjectStoreError):
            process.stack().book.create(keys.hold(ledger_id), hold)
        instance = site.cluster.instance
        if world.monitor.has_record(instance, keys.hold(ledger_id)):
            world.faults.strike("hold set")
            world.monitor.hold(instance, ledger_id)


def _damage(world: World, site: Site) -> None:
    """A bit of a published object rots while the bookies still have the ledger."""
    for _ml_name, topic in world.monitor.topics_of(site):
        for info in topic.ledgers:
            context = info.offload
            if context is None or not context.complete or context.bookkeeper_deleted:
                continue
            if site.cluster.has_node(info.ledger_id):
                world.faults.strike("object damaged after publication")
                world.monitor.damaged.add(context.uid)
                world.rot(data_key(context.uid, info.ledger_id))
                return


# ----- what our processes do


def _sealed(process: Process) -> list[int]:
    """Ledgers that a sensor would have put into the run's config a moment ago."""
    return [
        info.ledger_id
        for _ml_name, topic in process.world.monitor.topics_of(process.site)
        for info in topic.ledgers
        if not info.is_open
    ]


def run_offload(process: Process) -> None:
    for outcome in offload_batch(process.stack(), _sealed(process)):
        process.world.note(process.name, f"{outcome.ledger_id}: {outcome.state} {outcome.error}")


def run_release(process: Process) -> None:
    _release(process, due=_sealed(process), along=False)


def run_release_along(process: Process) -> None:
    _release(process, due=due_ledgers(process.stack()), along=True)


def _release(process: Process, *, due: list[int], along: bool) -> None:
    for outcome in release_batch(process.stack(), due, publish_waiting=along):
        process.world.note(process.name, f"{outcome.ledger_id}: {outcome.result}")


def run_sweep(process: Process) -> None:
    clean_up.clean_up(process.stack(), execute=True)


# ----- the end


def _settle(world: World) -> None:
    """Faults have stopped: what is due gets done, and then nothing changes any more."""
    world.store_offset_s = 0.0
    world.scheduler.now += 2 * 86400.0 + 3600.0
    for site in world.sites:
        site.cluster.collect()
        _finish_broker_offloads(site)
    offload, release, clean = (
        ("offload", run_offload),
        ("release", run_release_along),
        ("sweep", run_sweep),
    )
    # Nothing that is due may need a clean-up to get done.
    _until_nothing_changes(world, (offload, release))
    for site in world.sites:
        _judge_progress(world, site)
    before = _state(world)
    _round(world, "clean", (clean,))
    if _state(world) != before and not world.monitor.found:
        _until_nothing_changes(world, (offload, release, clean))
    for site in world.sites:
        _judge_end(world, site)


Kind = tuple[str, Callable[[Process], None]]


def _until_nothing_changes(world: World, kinds: Sequence[Kind]) -> None:
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
                if site.restored and isinstance(error, RefusedError):
                    continue  # metadata went back in time: a person must look
                world.monitor.report("progress", f"{process.name}: {type(error).__name__}: {error}")
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
    for ml_name, topic in () if site.restored else monitor.topics_of(site):
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
            monitor.report("I13", f"upload {upload_id} of {key} is left")


def _unfinished(world: World, site: Site, info: LedgerInfo) -> str | None:
    monitor, cluster = world.monitor, site.cluster
    ledger_id, context = info.ledger_id, info.offload
    excused = (cluster.instance, ledger_id) in monitor.excused
    if info.is_open or excused or not cluster.written[ledger_id]:
        return None
    if context is None:
        if any(parse_key(data_key(uid, ledger_id)) in _attempted(world) for uid in monitor.damaged):
            return None  # its copy rotted and was withdrawn
        if ledger_id in cluster.bookies and cluster.has_node(ledger_id):
            return "not published"
        return None
    ours = monitor.has_record(cluster.instance, keys.attempt(ledger_id, context.uid))
    if not ours or context.uid in monitor.damaged or ledger_id in monitor.held(cluster.instance):
        return None
    if monitor.has_record(cluster.instance, keys.quarantine(ledger_id, context.uid)):
        return None  # a scrub replaces it
    if monitor.is_dated_backwards(cluster.instance, ledger_id, context.uid):
        return None  # a person must look
    if not context.complete:
        return "its context is not complete"
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
