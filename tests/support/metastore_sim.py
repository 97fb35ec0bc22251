"""A metadata store in memory with ZooKeeper's rules for versions, czxid, sessions and multi.

`Cluster` holds the data; every `SimulatedStore` on it is one client with a session of its own.
Faults are asked for beforehand: `lose_answer` (the next write is applied or not, and its answer is
lost either way), `drop_session`, `fail_reads`. It passes the contract of metastore_contract.py, as
the real store does.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tiering_assets.resources.errors import (
    MetadataConflictError,
    MetadataError,
    MetadataUnknownError,
)
from tiering_assets.resources.metastore.store import Node, NodeStat, VersionedPath

T = TypeVar("T")


@dataclass(frozen=True)
class _Stored:
    data: bytes
    stat: NodeStat
    owner: int | None = None  # session of an ephemeral node


class Cluster:
    """The data that all clients share. `clock_ms` is the server's clock."""

    def __init__(self, clock_ms: Callable[[], int] = lambda: int(time.time() * 1000)) -> None:
        self.clock_ms = clock_ms
        self.lock = threading.RLock()
        self.nodes: dict[str, _Stored] = {}
        self.zxid = 0x100
        self.sessions = itertools.count(0x10000001)

    def client(self, clock: Callable[[], float] = time.monotonic) -> SimulatedStore:
        return SimulatedStore(self, clock)

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        below = (name[len(prefix) :] for name in self.nodes if name.startswith(prefix))
        return sorted(name for name in below if "/" not in name)

    def put(self, path: str, data: bytes, owner: int | None = None) -> NodeStat:
        """Create with missing parents, unconditionally (a test's way to lay out a tree)."""
        parent = path.rpartition("/")[0]
        if parent and parent not in self.nodes:
            self.put(parent, b"")
        self.zxid += 1
        now_ms = self.clock_ms()
        stat = NodeStat(
            version=0, czxid=self.zxid, mzxid=self.zxid, ctime_ms=now_ms, mtime_ms=now_ms
        )
        self.nodes[path] = _Stored(data, stat, owner)
        return stat

    def require(self, path: str, version: int) -> _Stored:
        stored = self.nodes.get(path)
        if stored is None:
            raise MetadataConflictError(f"{path}: expected version {version}, found no node")
        if stored.stat.version != version:
            raise MetadataConflictError(
                f"{path}: expected version {version}, found {stored.stat.version}"
            )
        return stored

    def end_session(self, session_id: int) -> None:
        gone = [path for path, stored in self.nodes.items() if stored.owner == session_id]
        for path in gone:
            del self.nodes[path]


class SimulatedStore:
    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._session_id = next(cluster.sessions)
        self._lost_answers: list[bool] = []
        self._failing_reads = 0
        self._closed = False
        self.writes_sent = 0
        self.before_write: Callable[[], None] | None = None

    def lose_answer(self, *, applied: bool) -> None:
        """The next write ends unknown, after having been applied or not."""
        self._lost_answers.append(applied)

    def fail_reads(self, count: int) -> None:
        self._failing_reads = count

    def drop_session(self) -> None:
        """The session expires and another one is made, as after a long network failure."""
        self._cluster.end_session(self._session_id)
        self._session_id = next(self._cluster.sessions)

    def get(self, path: str) -> Node | None:
        self._before_read(path)
        with self._cluster.lock:
            stored = self._cluster.nodes.get(path)
        if stored is None:
            return None
        return Node(
            path=path,
            data=stored.data,
            stat=stored.stat,
            session_id=self._session_id,
            read_at_s=self._clock(),
        )

    def get_many(self, paths: Iterable[str]) -> Iterator[Node | None]:
        return map(self.get, paths)

    def stat(self, path: str) -> NodeStat | None:
        node = self.get(path)
        return None if node is None else node.stat

    def stat_many(self, paths: Iterable[str]) -> Iterator[NodeStat | None]:
        return map(self.stat, paths)

    def children(self, path: str) -> list[str]:
        self._before_read(path)
        with self._cluster.lock:
            return self._cluster.children(path)

    def sync(self, path: str) -> None:
        self._require_open(path)

    def create(self, path: str, data: bytes, *, ephemeral: bool = False) -> NodeStat:
        def apply() -> NodeStat:
            if path in self._cluster.nodes:
                raise MetadataConflictError(f"{path}: expected no such node, found one")
            return self._cluster.put(path, data, self._session_id if ephemeral else None)

        return self._write(path, apply)

    def set(
        self,
        path: str,
        data: bytes,
        *,
        expected_version: int,
        session_id: int | None = None,
        checks: Sequence[VersionedPath] = (),
    ) -> NodeStat:
        for version in (expected_version, *(check.version for check in checks)):
            _require_version(version)

        def apply() -> NodeStat:
            cluster = self._cluster
            for check in checks:
                cluster.require(check.path, check.version)
            stored = cluster.require(path, expected_version)
            cluster.zxid += 1
            stat = replace(
                stored.stat,
                version=stored.stat.version + 1,
                mzxid=cluster.zxid,
                mtime_ms=cluster.clock_ms(),
            )
            cluster.nodes[path] = replace(stored, data=data, stat=stat)
            return stat

        return self._write(path, apply, session_id=session_id)

    def require_writable(self, path: str) -> None:
        self._require_open(path)

    def delete(self, path: str, *, expected_version: int) -> None:
        self.check_and_delete(checks=(), deletes=(VersionedPath(path, expected_version),))

    def check_and_delete(
        self,
        *,
        checks: Sequence[VersionedPath],
        deletes: Sequence[VersionedPath],
        session_id: int | None = None,
    ) -> None:
        operations = (*checks, *deletes)
        if not operations:
            return
        for operation in operations:
            _require_version(operation.version)

        def apply() -> None:
            kept = dict(self._cluster.nodes)
            try:
                for check in checks:
                    self._cluster.require(check.path, check.version)
                for delete in deletes:
                    self._cluster.require(delete.path, delete.version)
                    if self._cluster.children(delete.path):
                        raise MetadataConflictError(f"{delete.path}: it has children")
                    del self._cluster.nodes[delete.path]
            except MetadataConflictError:
                self._cluster.nodes = kept
                raise

        self._write(operations[0].path, apply, session_id=session_id)

    def session_id(self) -> int:
        self._require_open("session")
        return self._session_id

    def close(self) -> None:
        self._cluster.end_session(self._session_id)
        self._closed = True

    def _write(self, what: str, apply: Callable[[], T], session_id: int | None = None) -> T:
        self._require_open(what)
        if self.before_write is not None:
            self.before_write()
        if session_id is not None and session_id != self._session_id:
            raise MetadataConflictError(f"{what}: the session of the read is gone")
        self.writes_sent += 1
        with self._cluster.lock:
            if not self._lost_answers:
                return apply()
            if self._lost_answers.pop(0):
                apply()
        raise MetadataUnknownError(f"{what}: the answer was lost")

    def _before_read(self, path: str) -> None:
        self._require_open(path)
        if self._failing_reads:
            self._failing_reads -= 1
            raise MetadataError(f"{path}: connection lost while reading")

    def _require_open(self, what: str) -> None:
        if self._closed:
            raise MetadataError(f"{what}: the store is closed")


def _require_version(version: int) -> None:
    if version < 0:
        raise ValueError(f"a write names the version it expects, got {version}")
