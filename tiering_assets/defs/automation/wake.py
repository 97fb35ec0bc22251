"""Shortens the poll: a sensor that looks every half minute looks at once when a topic changed.

Owns: a hint from ZooKeeper's watches, held by the process that evaluates sensors. Without one, or
when anything is in doubt, the sensor looks; it only skips a look that would find what the last
found.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.settings import MetadataSettings

TICK_S = 5.0  # how often a sensor asks whether anything changed


class Watches(Protocol):
    @property
    def changes(self) -> int: ...
    def follow(self, paths: Iterable[str]) -> None: ...
    def watch_of(self, path: str) -> int | None: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class _Last:
    changes: int
    at: float
    whole: bool


def _connect(settings: MetadataSettings) -> Watches:
    from tiering_assets.resources.metastore.zookeeper_watches import ZooKeeperWatches

    return ZooKeeperWatches(
        settings.store,
        session_timeout_s=settings.session_timeout_s,
        connect_timeout_s=settings.connect_timeout_s,
    )


@dataclass(slots=True)
class Wake:
    """Of one cluster in one process. `connect` and `clock` are for tests."""

    connect: Callable[[MetadataSettings], Watches] = _connect
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _watches: Watches | None = None
    _last: dict[str, _Last] = field(default_factory=dict)

    @property
    def has_watches(self) -> bool:
        with self._lock:
            return self._watches is not None

    def follow(self, paths: Iterable[str]) -> None:
        """Watch these nodes, too, if anything is watched at all."""
        with self._lock:
            watches = self._watches
        if watches is not None:
            watches.follow(paths)

    def watch_of(self, path: str) -> int | None:
        """A number that stays while a node's watch has not fired; None where it has none."""
        with self._lock:
            watches = self._watches
        return None if watches is None else watches.watch_of(path)

    def may_skip(self, sensor: str, *, every_s: float) -> str | None:
        """Why this tick need not look: nothing changed since a whole look that is young enough."""
        with self._lock:
            last, watches = self._last.get(sensor), self._watches
        if last is None or watches is None or not last.whole:
            return None
        age = self.clock() - last.at
        if age >= every_s or watches.changes != last.changes:
            return None
        return (
            f"no topic changed since the last look, {age:.0f} s ago; the next is at {every_s:.0f} s"
        )

    def before_look(self, settings: MetadataSettings) -> int:
        """What has changed until now, to be told to `after_look`: a change meanwhile counts
        later.
        """
        with self._lock:
            if self._watches is None:
                try:
                    self._watches = self.connect(settings)
                except TierkeeperError:
                    return -1  # no hint: every tick looks
            return self._watches.changes

    def after_look(self, sensor: str, changes: int, paths: Iterable[str], *, whole: bool) -> None:
        """Remember a look, and watch what it looked at."""
        if not self.has_watches or changes < 0:
            return
        self.follow(paths)
        with self._lock:
            self._last[sensor] = _Last(changes, self.clock(), whole)
