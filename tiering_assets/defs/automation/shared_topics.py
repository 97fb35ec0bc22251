"""Topics' nodes that one sensor has read, given to the next: of one cluster and process, for a
minute at most.

Owns: a node is given again only while the watch that was set before it was read has not fired. It
is a hint like the watches themselves: sensors ask for runs, and a run reads every node anew.
Without watches, or where another sensor takes too long to read, a sensor reads for itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tiering_assets.defs.automation.wake import TICK_S, Wake
from tiering_assets.resources.metastore.store import MetadataStore, Node
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.metastore.topics import TopicDirectory

KEPT_S = 60.0
KEPT_BYTES = 64 * 1024**2  # of nodes: 30,000 topics of 2 KiB; beyond, the oldest are read again
_PATIENCE_S = 10.0

Found = tuple[str, Node | None]
Read = Callable[[Iterable[str]], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class _Kept:
    node: Node | None
    read_at: float
    watch: int


@dataclass(slots=True)
class KeptTopics:
    """Safe to share by threads: while one reads, another that wants the same waits for it."""

    wake: Wake
    clock: Callable[[], float] = time.monotonic
    bytes_max: int = KEPT_BYTES
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _nodes: dict[str, _Kept] = field(default_factory=dict)  # the oldest reading first
    _bytes: int = 0
    _names: tuple[float, list[str]] | None = None

    def names(self, ask: Callable[[], Iterable[str]]) -> list[str]:
        """All managed ledgers; listed once for sensors that tick together."""
        if not self.wake.has_watches or not self._lock.acquire(timeout=_PATIENCE_S):
            return list(ask())
        try:
            if self._names is None or self.clock() - self._names[0] > TICK_S:
                self._names = self.clock(), list(ask())
            return self._names[1]
        finally:
            self._lock.release()

    def nodes(self, names: list[str], ask: Read) -> list[Found]:
        """The nodes of these managed ledgers, those that `ask` need not read left out of it."""
        if not self.wake.has_watches or not self._lock.acquire(timeout=_PATIENCE_S):
            return list(ask(names))
        try:
            found = {name: kept.node for name in names if (kept := self._young(name)) is not None}
            new = [name for name in names if name not in found]
            self.wake.follow(map(managed_ledger_path, new))  # before they are read
            watches = {name: self.wake.watch_of(managed_ledger_path(name)) for name in new}
            asked_at = self.clock()
            for name, node in ask(new):
                found[name] = node
                watch = watches[name]
                if watch is not None:
                    self._keep(name, _Kept(node, asked_at, watch))
            return [(name, found[name]) for name in names]
        finally:
            self._lock.release()

    def _young(self, name: str) -> _Kept | None:
        kept = self._nodes.get(name)
        if kept is None:
            return None
        same = self.wake.watch_of(managed_ledger_path(name)) == kept.watch
        return kept if same and self.clock() - kept.read_at <= KEPT_S else None

    def _keep(self, name: str, kept: _Kept) -> None:
        self._drop(name)
        self._nodes[name] = kept
        self._bytes += _size(kept)
        while self._bytes > self.bytes_max:
            self._drop(next(iter(self._nodes)))

    def _drop(self, name: str) -> None:
        old = self._nodes.pop(name, None)
        if old is not None:
            self._bytes -= _size(old)


def _size(kept: _Kept) -> int:
    return 0 if kept.node is None else len(kept.node.data)


class SharedTopics(TopicDirectory):
    """Topics for one tick. Single nodes and cursors are read as ever."""

    def __init__(self, store: MetadataStore, kept: KeptTopics) -> None:
        super().__init__(store)
        self._kept = kept

    def read_many(self, ml_names: Iterable[str]) -> Iterator[Found]:
        return iter(self._kept.nodes(list(ml_names), super().read_many))

    def iter_managed_ledgers(self) -> Iterator[str]:
        return iter(self._kept.names(super().iter_managed_ledgers))
