"""What tierkeeper needs of a metadata store: versioned nodes, compare-and-set, guarded deletes.

ZooKeeper (zookeeper.py) is the one real store of this version; others are refused by name in
settings. A simulator in tests/support passes the same contract tests. Semantics are ZooKeeper's:
`version` counts data changes of a node and starts at 0; `czxid` differs whenever a node was deleted
and made again under the same path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

READS_AT_ONCE: Final = 256  # docs/decisions/0008: the client itself is as slow then


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStat:
    """`ctime_ms`/`mtime_ms` are the server's clock in milliseconds since the epoch."""

    version: int
    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One read of one node. `session_id` and `read_at_s` (monotonic) bound what may follow it."""

    path: str
    data: bytes
    stat: NodeStat
    session_id: int
    read_at_s: float


@dataclass(frozen=True, slots=True)
class VersionedPath:
    path: str
    version: int


class MetadataStore(Protocol):
    """Every method may raise MetadataError; a write may raise MetadataUnknownError (answer
    lost).
    """

    def get(self, path: str) -> Node | None:
        """Read one node, or None when the store says it does not exist."""

    def get_many(self, paths: Iterable[str]) -> Iterator[Node | None]:
        """Read many nodes, in their order, each as `get` does; READS_AT_ONCE are on their way.

        Memory is that of READS_AT_ONCE nodes. Each is as old as its own read, not as the first.
        """

    def stat_many(self, paths: Iterable[str]) -> Iterator[NodeStat | None]:
        """What `get_many` says of the nodes' stats alone: their data is not sent."""

    def children(self, path: str) -> list[str]:
        """Names of the children, sorted; empty when the node does not exist."""

    def sync(self, path: str) -> None:
        """Make the next read see every write that was acknowledged before this call."""

    def create(self, path: str, data: bytes, *, ephemeral: bool = False) -> NodeStat:
        """Create a node and its missing parents; MetadataConflictError if it exists."""

    def set(
        self,
        path: str,
        data: bytes,
        *,
        expected_version: int,
        session_id: int | None = None,
        checks: Sequence[VersionedPath] = (),
    ) -> NodeStat:
        """Compare-and-set, sent once and never retried by the client.

        With `checks`, one transaction: it is written only if those nodes have those versions, too.

        MetadataConflictError when the version differs, the node is gone, or the session is no
        longer `session_id`; MetadataUnknownError when the connection died before the answer.
        """

    def delete(self, path: str, *, expected_version: int) -> None:
        """Delete one node; MetadataConflictError when the version differs or it is gone."""

    def check_and_delete(
        self,
        *,
        checks: Sequence[VersionedPath],
        deletes: Sequence[VersionedPath],
        session_id: int | None = None,
    ) -> None:
        """One transaction: all versions hold and all deletes happen, or nothing does.

        MetadataConflictError and MetadataUnknownError as for `set`.
        """

    def require_writable(self, path: str) -> None:
        """Change nothing; raise MetadataError where the store does not let us write this node."""

    def session_id(self) -> int:
        """Id of the present session; it changes when the session was lost and made again."""

    def close(self) -> None: ...
