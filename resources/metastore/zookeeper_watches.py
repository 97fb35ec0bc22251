"""Says that one of many ZooKeeper nodes changed, without reading them again and again.

Owns: watches are a hint and never evidence. They fire once and are set again by the next follow();
whatever breaks (a lost session, a request that fails) counts as a change, so that somebody looks.
Only the data of a node is watched: cursors, which change all the time, are its children.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from kazoo import exceptions as zk_errors
from kazoo.client import KazooState
from kazoo.handlers.threading import KazooTimeoutError

from tiering_assets.resources.metastore.store_uri import parse_store_uri
from tiering_assets.resources.metastore.zookeeper_client import close_client, connect_client

IN_FLIGHT_MAX = 1000
_ANSWER_S = 10.0


class ZooKeeperWatches:
    """Watches of one process. Safe to share by threads."""

    def __init__(
        self, uri: str, *, session_timeout_s: float = 10.0, connect_timeout_s: float = 10.0
    ) -> None:
        """Connect. MetadataError when nobody answers within `connect_timeout_s`."""
        address = parse_store_uri(uri)
        self._lock = threading.Lock()
        self._armed: dict[str, int] = {}  # by path, the number of its watch
        self._watches = 0
        self._changes = 0
        self._client = connect_client(
            address,
            session_timeout_s=session_timeout_s,
            connect_timeout_s=connect_timeout_s,
            on_state=self._on_state,
        )

    @property
    def changes(self) -> int:
        """Grows with every change that was noticed; equal means that none was."""
        with self._lock:
            return self._changes

    def follow(self, paths: Iterable[str]) -> None:
        """Watch these nodes, too, those that do not exist included. What cannot be is a change."""
        with self._lock:
            fresh = [path for path in paths if path not in self._armed]
        for start in range(0, len(fresh), IN_FLIGHT_MAX):
            self._arm(fresh[start : start + IN_FLIGHT_MAX])

    def watch_of(self, path: str) -> int | None:
        """The number of a node's watch, another one after each change; None while it has none."""
        with self._lock:
            return self._armed.get(path)

    def close(self) -> None:
        close_client(self._client)

    def _arm(self, paths: list[str]) -> None:
        with self._lock:
            for path in paths:  # before the request: the event may be quicker than we are
                self._watches += 1
                self._armed[path] = self._watches
        try:
            requests = [self._client.exists_async(path, watch=self._on_event) for path in paths]
            for request in requests:
                request.get(timeout=_ANSWER_S)
        except (zk_errors.KazooException, KazooTimeoutError):
            with self._lock:
                for path in paths:
                    self._armed.pop(path, None)
                self._changes += 1

    def _on_event(self, event: Any) -> None:
        with self._lock:
            self._armed.pop(event.path, None)
            self._changes += 1

    def _on_state(self, state: str) -> None:
        if state != KazooState.CONNECTED:
            with self._lock:
                self._armed.clear()
                self._changes += 1
