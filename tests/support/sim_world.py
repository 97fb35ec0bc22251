"""One simulated world: a bucket, one or two clusters, clocks, faults, and the calls between them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from resources.errors import (
    BrokerError,
    BrokerUnknownError,
    EntryUnavailableError,
    MetadataError,
    MetadataUnknownError,
    ObjectStoreError,
    TierkeeperError,
)
from resources.metastore.store import Node
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_broker import SimBroker
from tests.support.sim_clients import Process, Site, settings_of_simulation
from tests.support.sim_cluster import BOOKIE, SimCluster
from tests.support.sim_evidence import question_of
from tests.support.sim_faults import WRITES, Ambush, Fate, Faults
from tests.support.sim_monitor import Monitor
from tests.support.sim_scheduler import Killed, Scheduler
from tiering_assets.offload_format.keys import parse_key

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
SESSION_S = 10.0


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
        self.ambushes: dict[tuple[str, str], list[Ambush]] = {}
        self._history: dict[int, list[tuple[float, str, Any]]] = {}

    # ----- clocks, ids, notes

    def clock(self, offset_s: float) -> datetime:
        return T0 + timedelta(seconds=self.scheduler.now + offset_s)

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
        return site

    def _told(self, site: Site, what: str, ml_name: str) -> None:
        self.note(f"broker {site.cluster.instance}", f"{ml_name} {what}")
        self._remember(site)
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
                act(process)
            except TierkeeperError as error:
                self.note(name, f"{type(error).__name__}: {error}")
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

    # ----- remote calls

    def call(
        self,
        process: Process,
        room: str,
        method: str,
        apply: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """One remote call of ours, with whatever goes wrong with it."""
        faults, rng = self.faults, self.rng
        fault = faults.pick(room, method, args) if faults.on and not process.steady else None
        process.call_began = self.scheduler.now
        wait_s = rng.random() * 0.02
        if fault == "delay":
            wait_s = rng.uniform(0.5, 15.0)
        elif fault == "zombie":
            wait_s = rng.uniform(3600.0, 5000.0)
        fate = next((one for one in process.fates if one(room, method, args)), None)
        if fate is not None:
            process.fates.remove(fate)
            fault, wait_s = fate.fault, fate.wait_s
        if fault in ("delay", "zombie"):
            faults.strike(fault)
        self.pause(process, wait_s)
        self.calls += 1
        if self.trace is not None:
            said = f"{room}.{method} {_said(args, kwargs)}"
            self.note(process.name, said + (f"  <<{fault}>>" if fault else ""))
        if room == "metadata" and (wait_s > SESSION_S or fault == "session lost"):
            if fault == "session lost":
                faults.strike(fault)
            process.metadata.drop_session()
        self._fail_before(process, room, method, fault)
        if fault == "stale metadata read" and (old := self._older(process, args[0])) is not None:
            faults.strike(fault)
            self._heard(process, room, method, args, self.scheduler.now - SESSION_S)
            return old
        self.monitor.before(process, room, method, args, kwargs)
        if room == "metadata" and method in WRITES:
            self._remember(process.site)
        answer = apply(*args, **kwargs)
        if method in WRITES:
            self.monitor.after(process, room, method, args, kwargs)
        if (room, method) in self.ambushes:
            self._spring(process, room, method, args)
        if fault is not None:
            answer = self._after(process, room, method, fault, answer, args)
        if method not in WRITES:
            self._heard(process, room, method, args, self.scheduler.now)
        if method == "locate":
            process.located[args[0]] = answer.load
        elif method == "read_entry":
            process.rehearsed.add((args[1], args[2]))
        if isinstance(answer, Node):
            process.seen_zxid = max(process.seen_zxid, answer.stat.mzxid)
        return answer

    @staticmethod
    def _heard(process: Process, room: str, method: str, args: tuple[Any, ...], at: float) -> None:
        """Remember what the process was told, and how things stood at that time."""
        question = question_of(room, method, args)
        if question is not None:
            process.asked[question] = max(at, process.asked.get(question, at))

    def lie_in_wait(self, ambush: Ambush) -> None:
        """Let something happen right after a call of ours, whoever makes it."""
        self.ambushes.setdefault((ambush.room, ambush.method), []).append(ambush)

    def _spring(self, process: Process, room: str, method: str, args: tuple[Any, ...]) -> None:
        if not self.faults.on:
            return
        waiting = self.ambushes[room, method]
        for ambush in [one for one in waiting if one.naming in str(args[:1])]:
            ambush.nth -= 1
            if ambush.nth <= 0 and ambush.act(process.site, str(args[0]) if args else ""):
                waiting.remove(ambush)

    def _fail_before(self, process: Process, room: str, method: str, fault: str | None) -> None:
        match fault:
            case "killed before":
                self._kill(process, fault)
            case "request lost" | "store answers 503" | "broker fails" | "bookie down":
                self.faults.strike(fault)
                if fault == "request lost" and method in WRITES and self.rng.random() < 0.5:
                    raise _unknown(room, f"simulated: {fault}")  # nobody can tell whether
                raise _error(room, f"simulated: {fault}")
            case _:
                pass

    def _after(
        self,
        process: Process,
        room: str,
        method: str,
        fault: str,
        answer: Any,
        args: tuple[Any, ...],
    ) -> Any:
        strike = self.faults.strike
        match fault:
            case "killed after":
                self._kill(process, fault)
            case "answer lost":
                strike(fault)
                raise _unknown(room, f"simulated: {fault}")
            case "stale listing" | "partial listing":
                items = list(answer or ())
                kept = self._part(items) if fault == "partial listing" else self._stale(items)
                if len(kept) < len(items):
                    strike(fault)
                    process.misled = True
                if isinstance(answer, list) or answer is None:
                    return kept if answer is not None else None
                return iter(kept)
            case "corrupted read-back" if answer:
                strike(fault)
                process.misled = True
                at = self.rng.randrange(len(answer))
                return answer[:at] + bytes([answer[at] ^ 1]) + answer[at + 1 :]
            case "bits rot before verification" if parse_key(args[0]) is not None:
                found = self.objects.peek(args[0])
                if found is not None and found[0]:
                    strike(fault)
                    self.rot(args[0])
            case _:
                pass
        return answer

    def rot(self, key: str) -> None:
        """Flip a bit of an object where it lies; its ETag and times stay."""
        found = self.objects.peek(key)
        if found is None:
            return
        body = bytearray(found[0])
        body[self.rng.randrange(len(body))] ^= 1 << self.rng.randrange(8)
        self.objects.rot(key, bytes(body))

    def _kill(self, process: Process, fault: str) -> None:
        self.faults.strike(fault)
        process.killed = True
        raise Killed

    def runner_fault(self, process: Process) -> str | None:
        faults = self.faults
        if not (faults.on and faults.at_calls) or self.rng.random() > 0.06:
            return None
        fault = self.rng.choice(("row lost", "task run twice"))
        self.note(process.name, f"runner <<{fault}>>")
        return self.faults.strike(fault)

    def _part(self, items: list[Any]) -> list[Any]:
        return items[: self.rng.randrange(len(items))] if items else items

    def _stale(self, items: list[Any]) -> list[Any]:
        """A listing from a little earlier: what is new is not in it."""
        limit = self.objects.now - timedelta(seconds=self.rng.choice((1, 60, 3600)))
        return [i for i in items if getattr(i, "last_modified", T0) <= limit]

    # ----- a metadata server that lags behind

    def _remember(self, site: Site) -> None:
        """Keep the nodes as they are before a write of ours or after a broker's, for stale reads."""
        kept = self._history.setdefault(id(site), [])
        kept.append((self.scheduler.now, "", dict(site.cluster.metadata.nodes)))
        del kept[:-8]

    def _older(self, process: Process, path: str) -> Node | None:
        """The node as it was a few seconds ago, never older than this session has seen."""
        for at, _what, nodes in self._history.get(id(process.site), [])[::-1]:
            stored = nodes.get(path)
            if self.scheduler.now - at > SESSION_S or stored is None:
                return None
            if stored.stat.mzxid < process.seen_zxid:
                return None
            now = process.site.cluster.metadata.nodes.get(path)
            if now is None or now.stat != stored.stat:
                return Node(
                    path=path,
                    data=stored.data,
                    stat=stored.stat,
                    session_id=process.metadata.session_id(),
                    read_at_s=self.scheduler.now,
                )
        return None

    def forget_history(self) -> None:
        """After a restore no server lags behind with what was there before."""
        self._history.clear()


_ERRORS: dict[str, type[TierkeeperError]] = {
    "metadata": MetadataError,
    "objects": ObjectStoreError,
    "broker": BrokerError,
}
_UNKNOWN: dict[str, type[TierkeeperError]] = {
    "metadata": MetadataUnknownError,
    "objects": ObjectStoreError,
    "broker": BrokerUnknownError,
}


def _error(room: str, text: str) -> TierkeeperError:
    if room == "bookies":
        return EntryUnavailableError(0, 0, {BOOKIE: OSError(text)})
    return _ERRORS[room](text)


def _unknown(room: str, text: str) -> TierkeeperError:
    return _UNKNOWN[room](text)


def _said(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    shown = [a if isinstance(a, str | int) else f"{len(a)} bytes" for a in args if _short(a)]
    shown += [f"{k}={v}" for k, v in kwargs.items() if k not in ("metadata", "body", "sha256")]
    return " ".join(str(s)[:200] for s in shown)


def _short(value: Any) -> bool:
    return isinstance(value, str | int | bytes | bytearray | memoryview)
