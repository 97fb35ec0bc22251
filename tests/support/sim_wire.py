"""Every remote call of ours in the simulation: it takes time, is told to the monitor, and may go
wrong.

Owns: where faults strike a call, what a process is then told, and what it remembers of that; and
the metadata server that answers a read with what was there a few seconds ago.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.support.sim_cluster import BOOKIE
from tests.support.sim_evidence import question_of
from tests.support.sim_faults import WRITES, Ambush
from tests.support.sim_scheduler import Killed
from tiering_assets.offload_format.keys import parse_key
from tiering_assets.resources.errors import (
    BrokerError,
    BrokerUnknownError,
    EntryUnavailableError,
    MetadataError,
    MetadataUnknownError,
    ObjectStoreError,
    TierkeeperError,
)
from tiering_assets.resources.metastore.store import Node

if TYPE_CHECKING:
    from tests.support.sim_clients import Process, Site
    from tests.support.sim_world import World

SESSION_S = 10.0


class Wire:
    """Between our processes and the servers of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ambushes: dict[tuple[str, str], list[Ambush]] = {}
        self._history: dict[int, list[tuple[float, str, Any]]] = {}

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
        faults, rng = self.world.faults, self.world.rng
        fault = faults.pick(room, method, args) if faults.on and not process.steady else None
        began = self.world.scheduler.now
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
        elif fault is not None and room == "objects":
            process.told_errors = True
        self.world.pause(process, wait_s)
        self.world.calls += 1
        if self.world.trace is not None:
            said = f"{room}.{method} {_said(args, kwargs)}"
            self.world.note(process.name, said + (f"  <<{fault}>>" if fault else ""))
        if room == "metadata" and (wait_s > SESSION_S or fault == "session lost"):
            if fault == "session lost":
                faults.strike(fault)
            process.metadata.drop_session()
        self._fail_before(process, room, method, fault)
        if fault == "stale metadata read" and (old := self._older(process, args[0])) is not None:
            faults.strike(fault)
            self._heard(process, room, method, args, self.world.scheduler.now - SESSION_S)
            return old
        process.call_began = began  # of this call: others of the process may be on their way
        self.world.monitor.before(process, room, method, args, kwargs)
        if room == "metadata" and method in WRITES:
            self.remember(process.site)
        answer = apply(*args, **kwargs)
        if method in WRITES:
            self.world.monitor.after(process, room, method, args, kwargs)
        if (room, method) in self.ambushes:
            self._spring(process, room, method, args)
        if fault is not None:
            answer = self._after(process, room, method, fault, answer, args)
        if method not in WRITES:
            self._heard(process, room, method, args, self.world.scheduler.now)
        if method == "locate":
            process.located[args[0]] = answer.load
        elif method == "get_range":
            span = (kwargs["start"], kwargs["start"] + kwargs["length"])
            process.ranges.setdefault(args[0], {})[span] = self.world.scheduler.now
        elif method == "read_entry":
            process.rehearsed.add((args[1], args[2]))
        if isinstance(answer, Node):
            process.seen_zxid = max(process.seen_zxid, answer.stat.mzxid)
        return answer

    @staticmethod
    def _heard(process: Process, room: str, method: str, args: tuple[Any, ...], at: float) -> None:
        """Remember what the process was told, and how things stood at that time."""
        question = question_of(room, method, args)
        alone = method == "runtime_configs" and process.world.scheduler.current in process.placing
        if question is not None and not alone:
            process.asked[question] = max(at, process.asked.get(question, at))
            process.asked_by[process.world.scheduler.current, question] = at

    def lie_in_wait(self, ambush: Ambush) -> None:
        """Let something happen right after a call of ours, whoever makes it."""
        self.ambushes.setdefault((ambush.room, ambush.method), []).append(ambush)

    def _spring(self, process: Process, room: str, method: str, args: tuple[Any, ...]) -> None:
        if not self.world.faults.on:
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
                self.world.faults.strike(fault)
                if fault == "request lost" and method in WRITES and self.world.rng.random() < 0.5:
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
        strike = self.world.faults.strike
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
                at = self.world.rng.randrange(len(answer))
                return answer[:at] + bytes([answer[at] ^ 1]) + answer[at + 1 :]
            case "bits rot before verification" if parse_key(args[0]) is not None:
                found = self.world.objects.peek(args[0])
                if found is not None and found[0]:
                    strike(fault)
                    self.world.rot(args[0])
            case _:
                pass
        return answer

    def _kill(self, process: Process, fault: str) -> None:
        self.world.faults.strike(fault)
        process.killed = True
        raise Killed

    def _part(self, items: list[Any]) -> list[Any]:
        return items[: self.world.rng.randrange(len(items))] if items else items

    def _stale(self, items: list[Any]) -> list[Any]:
        """A listing from a little earlier: what is new is not in it."""
        limit = self.world.objects.now - timedelta(seconds=self.world.rng.choice((1, 60, 3600)))
        return [i for i in items if getattr(i, "last_modified", limit) <= limit]

    # ----- a metadata server that lags behind

    def remember(self, site: Site) -> None:
        """Keep the nodes as they are before a write of ours or after a broker's, for stale
        reads.
        """
        kept = self._history.setdefault(id(site), [])
        kept.append((self.world.scheduler.now, "", dict(site.cluster.metadata.nodes)))
        del kept[:-8]

    def _older(self, process: Process, path: str) -> Node | None:
        """The node as it was a few seconds ago, never older than this session has seen."""
        for at, _what, nodes in self._history.get(id(process.site), [])[::-1]:
            stored = nodes.get(path)
            if self.world.scheduler.now - at > SESSION_S or stored is None:
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
                    read_at_s=self.world.scheduler.now,
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
    shown += [
        f"{k}={v}" for k, v in kwargs.items() if k not in ("metadata", "body", "sha256", "into")
    ]
    return " ".join(str(s)[:200] for s in shown)


def _short(value: Any) -> bool:
    return isinstance(value, str | int | bytes | bytearray | memoryview)
