"""Change one node by compare-and-set: read fresh, decide, write within seconds, or start again.

Owns: a decision is only ever applied to the bytes it was made on. A lost compare-and-set reads and
decides again after a growing, jittered pause (a broker that loads the topic must be able to win);
an unknown outcome is resolved by reading; a node made again under the same path ends it at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resources.errors import MetadataConflictError, MetadataError, MetadataUnknownError
from resources.metastore.store import MetadataStore, Node, VersionedPath

BACKOFF_FLOOR_S = 0.2  # writes every few milliseconds made broker loads fail
BACKOFF_CEILING_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResult:
    """The node as it is now known to be. `changed` is False when there was nothing to do."""

    path: str
    version: int
    czxid: int
    changed: bool
    attempts: int


def edit_node(
    store: MetadataStore,
    path: str,
    edit: Callable[[Node], bytes | None],
    *,
    expected_czxid: int | None,
    applied: Callable[[Node], bool],
    guards: Callable[[], Sequence[VersionedPath]] = tuple,
    read_to_write_max_s: float = 2.0,
    attempts: int = 5,
    backoff_s: float = 0.5,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    jitter: Callable[[], float] = random.random,
) -> EditResult:
    """Apply the pure `edit` (None: nothing to change) to the node, and know that it was applied.

    `guards` is asked after `edit`: nodes whose versions the write depends on, in one transaction.
    `applied` says whether a node shows our change; it is asked only after an unknown outcome. What
    `edit` raises passes through and nothing is written. `clock` is the one of Node.read_at_s.

    Raises:
        MetadataConflictError: the node is gone or was made again, or every attempt was lost.
        MetadataUnknownError: the answer of a write was lost and reading could not settle it.
        MetadataError: the store could not be read; nothing of this call is in flight.
    """
    if attempts < 1:
        raise ValueError(f"at least one attempt, got {attempts}")
    unknown: MetadataUnknownError | None = None
    lost: MetadataError | None = None
    for attempt in range(1, attempts + 1):
        if attempt > 1:
            sleep(_pause_s(backoff_s, attempt - 1, jitter))
        node = _read(store, path, expected_czxid, unknown)
        if unknown is not None:
            if applied(node):
                return _result(node, changed=True, attempts=attempt - 1)
            unknown = None  # our write lost, or comes too late: its version guard will refuse it
        data = edit(node)
        if data is None:
            return _result(node, changed=False, attempts=attempt)
        took_s = clock() - node.read_at_s
        if took_s > read_to_write_max_s:
            lost = MetadataConflictError(
                f"{path}: {took_s:.1f} s between read and write, at most {read_to_write_max_s} s"
            )
            continue
        try:
            stat = store.set(
                path,
                data,
                expected_version=node.stat.version,
                session_id=node.session_id,
                checks=guards(),
            )
        except MetadataUnknownError as error:
            unknown = lost = error
        except MetadataConflictError as error:
            lost = error
        else:
            return EditResult(
                path=path, version=stat.version, czxid=stat.czxid, changed=True, attempts=attempt
            )
    if unknown is not None:
        sleep(_pause_s(backoff_s, attempts, jitter))
        node = _read(store, path, expected_czxid, unknown)
        if applied(node):
            return _result(node, changed=True, attempts=attempts)
        raise MetadataUnknownError(
            f"{path}: the answer of the last of {attempts} writes was lost and version "
            f"{node.stat.version} does not show it; read again before any clean-up"
        ) from unknown
    raise MetadataConflictError(
        f"{path}: lost all {attempts} attempts, somebody else keeps writing it; try again later"
    ) from lost


def _read(
    store: MetadataStore,
    path: str,
    expected_czxid: int | None,
    unknown: MetadataUnknownError | None,
) -> Node:
    try:
        store.sync(path)
        node = store.get(path)
    except MetadataError as error:
        if unknown is None:
            raise
        raise MetadataUnknownError(
            f"{path}: the answer of a write was lost and the node cannot be read now ({error})"
        ) from unknown
    if node is None:
        raise MetadataConflictError(f"{path}: the node is gone; the topic was deleted")
    if expected_czxid is not None and node.stat.czxid != expected_czxid:
        raise MetadataConflictError(
            f"{path}: deleted and made again under the same name "
            f"(expected czxid {expected_czxid:#x}, found {node.stat.czxid:#x}); plan again"
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


def _pause_s(backoff_s: float, losses: int, jitter: Callable[[], float]) -> float:
    grown = max(BACKOFF_FLOOR_S, backoff_s) * 2 ** (losses - 1)
    return float(min(BACKOFF_CEILING_S, grown) * (1 + jitter() / 2))
