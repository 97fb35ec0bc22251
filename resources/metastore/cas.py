"""Change one node by compare-and-set: read fresh, decide, write within seconds, or start again.

Owns: a decision is only ever applied to the bytes it was made on. A lost compare-and-set reads and
decides again after a growing, jittered pause (a broker that loads the topic must be able to win);
an unknown outcome is resolved by reading; a node made again under the same path ends it at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tiering_assets.resources.errors import (
    MetadataConflictError,
    MetadataError,
    MetadataUnknownError,
)
from tiering_assets.resources.metastore.store import MetadataStore, Node, VersionedPath

BACKOFF_FLOOR_S = 0.2  # writes every few milliseconds made broker loads fail
BACKOFF_CEILING_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEdit:
    """What is to become of a node; asked again of each fresh read, so it must be pure.

    `decide` gives the node's new bytes, None where there is nothing to change; what it raises
    passes through, and nothing is written. `applied` says whether a node shows our change, and is
    asked only after an unknown outcome. `guards` is asked after `decide`: nodes whose versions the
    write depends on, in one transaction. `expected_czxid` None takes the node whoever made it.
    """

    decide: Callable[[Node], bytes | None]
    applied: Callable[[Node], bool]
    expected_czxid: int | None
    guards: Callable[[], Sequence[VersionedPath]] = tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a read may be old when it is written on, and how often a lost write is tried again.

    `clock` is the one of Node.read_at_s.
    """

    read_to_write_max_s: float = 2.0
    attempts: int = 5
    backoff_s: float = 0.5
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"at least one attempt, got {self.attempts}")

    def pause(self, losses: int) -> None:
        """Sleep after so many losses."""
        grown = max(BACKOFF_FLOOR_S, self.backoff_s) * 2 ** (losses - 1)
        self.sleep(float(min(BACKOFF_CEILING_S, grown) * (1 + self.jitter() / 2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResult:
    """The node as it is now known to be. `changed` is False when there was nothing to do."""

    path: str
    version: int
    czxid: int
    changed: bool
    attempts: int


def edit_node(store: MetadataStore, path: str, edit: NodeEdit, pace: Pace) -> EditResult:
    """Apply an edit to the node, and know that it was applied.

    Raises:
        MetadataConflictError: the node is gone or was made again, or every attempt was lost.
        MetadataUnknownError: the answer of a write was lost and reading could not settle it.
        MetadataError: the store could not be read; nothing of this call is in flight.
    """
    tries = _Tries(store, path, edit, pace)
    for attempt in range(1, pace.attempts + 1):
        if attempt > 1:
            pace.pause(attempt - 1)
        done = tries.once(attempt)
        if done is not None:
            return done
    return tries.require_applied()


@dataclass(slots=True)
class _Tries:
    """The attempts so far: `lost` is why the last failed, `unknown` the same if its answer was
    lost.
    """

    store: MetadataStore
    path: str
    edit: NodeEdit
    pace: Pace
    unknown: MetadataUnknownError | None = field(default=None, init=False)
    lost: MetadataError | None = field(default=None, init=False)

    def once(self, attempt: int) -> EditResult | None:
        """Read, decide, write; None where that was lost."""
        node = self._read()
        if self.unknown is not None and self.edit.applied(node):
            return _result(node, changed=True, attempts=attempt - 1)
        self.unknown = None  # our write lost, or comes too late: its version guard will refuse it
        data = self.edit.decide(node)
        if data is None:
            return _result(node, changed=False, attempts=attempt)
        if self._is_late(node):
            return None
        return self._write(node, data, attempt)

    def require_applied(self) -> EditResult:
        """All attempts are lost, but the last may have been written and only its answer was
        lost.
        """
        attempts = self.pace.attempts
        if self.unknown is None:
            raise MetadataConflictError(
                f"{self.path}: lost all {attempts} attempts, somebody else keeps writing it; "
                f"try again later"
            ) from self.lost
        self.pace.pause(attempts)
        node = self._read()
        if self.edit.applied(node):
            return _result(node, changed=True, attempts=attempts)
        raise MetadataUnknownError(
            f"{self.path}: the answer of the last of {attempts} writes was lost and version "
            f"{node.stat.version} does not show it; read again before any clean-up"
        ) from self.unknown

    def _is_late(self, node: Node) -> bool:
        took_s, most_s = self.pace.clock() - node.read_at_s, self.pace.read_to_write_max_s
        if took_s > most_s:
            self.lost = MetadataConflictError(
                f"{self.path}: {took_s:.1f} s between read and write, at most {most_s} s"
            )
            return True
        return False

    def _write(self, node: Node, data: bytes, attempt: int) -> EditResult | None:
        try:
            stat = self.store.set(
                self.path,
                data,
                expected_version=node.stat.version,
                session_id=node.session_id,
                checks=self.edit.guards(),
            )
        except MetadataUnknownError as error:
            self.unknown = self.lost = error
            return None
        except MetadataConflictError as error:
            self.lost = error
            return None
        return EditResult(
            path=self.path, version=stat.version, czxid=stat.czxid, changed=True, attempts=attempt
        )

    def _read(self) -> Node:
        try:
            self.store.sync(self.path)
            node = self.store.get(self.path)
        except MetadataError as error:
            if self.unknown is None:
                raise
            raise MetadataUnknownError(
                f"{self.path}: the answer of a write was lost and the node cannot be read now ({error})"
            ) from self.unknown
        return self._require_same(node)

    def _require_same(self, node: Node | None) -> Node:
        if node is None:
            raise MetadataConflictError(f"{self.path}: the node is gone; the topic was deleted")
        expected = self.edit.expected_czxid
        if expected is not None and node.stat.czxid != expected:
            raise MetadataConflictError(
                f"{self.path}: deleted and made again under the same name "
                f"(expected czxid {expected:#x}, found {node.stat.czxid:#x}); plan again"
            )
        return node


def _result(node: Node, *, changed: bool, attempts: int) -> EditResult:
    return EditResult(
        path=node.path,
        version=node.stat.version,
        czxid=node.stat.czxid,
        changed=changed,
        attempts=attempts,
    )
