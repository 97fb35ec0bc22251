"""One simulated world: a bucket, one or two clusters, clocks, faults, and the calls between
them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_broker import SimBroker
from tests.support.sim_clients import Process, Site, settings_of_simulation
from tests.support.sim_cluster import SimCluster
from tests.support.sim_faults import Fate, Faults
from tests.support.sim_monitor import Monitor
from tests.support.sim_scheduler import Killed, Scheduler
from tests.support.sim_wire import Wire
from tiering_assets.copy.bucket_promises import PROMISES
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import BucketProof
from tiering_assets.records.writer import Writer
from tiering_assets.resources.errors import (
    TierkeeperError,
)

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


class _Objects(SimulatedObjectStore):
    """The bucket, with the simulation's clock."""

    def __init__(self, world: World, *, versioning: bool) -> None:
        self._world = world
        super().__init__("sim-bucket", part_bytes_min=1, versioning=versioning)

    @property
    def now(self) -> datetime:
        return self._world.clock(self._world.store_offset_s)

    @now.setter
    def now(self, moment: datetime) -> None:
        """The world's clock is the only one."""


class World:
    """`rng` decides everything that is not decided by the code under test."""

    def __init__(self, seed: int, *, traced: bool = False) -> None:
        self.rng = random.Random(seed)
        self.scheduler = Scheduler()
        self.faults = Faults(self.rng)
        self.store_offset_s = 0.0
        self.settings = settings_of_simulation()
        versioning = self.rng.random() < 0.2
        if versioning:
            self.faults.strike("bucket keeps versions")
        self.objects = _Objects(self, versioning=versioning)
        self.sites: list[Site] = []
        self.processes: list[Process] = []
        self.monitor = Monitor(self)
        self.calls = 0
        self.trace: list[str] | None = [] if traced else None
        self.wire = Wire(self)
        self.call = self.wire.call

    # ----- clocks, ids, notes

    def clock(self, offset_s: float) -> datetime:
        return T0 + timedelta(seconds=self.scheduler.now + offset_s)

    def since(self, clock_ms: int) -> float:
        """The simulated second of a server's timestamp."""
        return clock_ms / 1000 - T0.timestamp()

    def new_uid(self) -> UUID:
        return UUID(int=self.rng.getrandbits(128), version=4)

    def note(self, who: str, line: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.scheduler.now:10.3f} #{self.calls:<5} {who}: {line}")

    def pause(self, process: Process, seconds: float) -> None:
        if process.killed:
            raise Killed
        self.scheduler.pause(seconds)
        if process.killed:
            raise Killed

    # ----- layout

    def add_site(self, instance: str, *, lag_s: float | None, bookkeeper_first: bool) -> Site:
        cluster = SimCluster(instance, lambda: int(self.clock(0).timestamp() * 1000))
        broker = SimBroker(
            cluster,
            self.objects,
            now=lambda: self.clock(0).timestamp(),
            pause=self.scheduler.pause,
            new_uid=self.new_uid,
            told=lambda what, ml_name: self._told(site, what, ml_name),
            lag_s=lag_s,
            bookkeeper_first=bookkeeper_first,
        )
        site = Site(cluster, broker)
        self.sites.append(site)
        self._prove_bucket(instance)
        return site

    def _prove_bucket(self, instance: str) -> None:
        """The record that a doctor leaves: the simulated store keeps its promises, by its contract
        tests.
        """
        store = self.settings.store
        proof = BucketProof(
            bucket=store.bucket,
            endpoint=store.endpoint,
            promises=PROMISES,
            proven_at=T0,
            writer=Writer(tool_version="0", host="sim", run_id="doctor"),
        )
        key = keys.bucket_proof(store.bucket)
        RecordBook(self.objects, instance).create_or_read(key, proof)

    def _told(self, site: Site, what: str, ml_name: str) -> None:
        self.note(f"broker {site.cluster.instance}", f"{ml_name} {what}")
        self.wire.remember(site)
        if what != "unloaded":
            self.monitor.check_topic(site, ml_name)

    # ----- processes of ours

    def start(
        self,
        name: str,
        at: float,
        site: Site,
        act: Callable[[Process], None],
        *,
        steps_s: float = 0.0,
        restarts: int = 1,
        fates: Sequence[Fate] = (),
    ) -> None:
        """Let a process of ours begin at a time; one that is killed is started again later."""

        def live() -> None:
            process = Process(self, name, site)
            process.skew_s += steps_s
            process.fates = list(fates)
            self.processes.append(process)
            self.note(name, "starts")
            try:
                try:
                    act(process)
                except TierkeeperError as error:
                    self.note(name, f"{type(error).__name__}: {error}")
                process.close_books()
            except Killed:
                self.note(name, "killed")
                if restarts:
                    again = self.scheduler.now + self.rng.choice((5.0, 60.0, 900.0))
                    self.start(f"{name}'", again, site, act, restarts=restarts - 1)
                raise
            finally:
                process.metadata.close()
            self.note(name, "ends")

        self.scheduler.spawn(name, at, live)

    # ----- what lies there, and what tasks bring back

    def rot(self, key: str) -> int:
        """Flip a bit of an object where it lies; its ETag and times stay. The byte's offset."""
        found = self.objects.peek(key)
        if found is None:
            return 0
        body = bytearray(found[0])
        at = self.rng.randrange(len(body))
        body[at] ^= 1 << self.rng.randrange(8)
        self.objects.rot(key, bytes(body))
        return at

    def runner_fault(self, process: Process) -> str | None:
        faults = self.faults
        if not (faults.on and faults.at_calls) or self.rng.random() > 0.06:
            return None
        fault = self.rng.choice(("row lost", "task run twice"))
        self.note(process.name, f"runner <<{fault}>>")
        return self.faults.strike(fault)
