"""Which topics need not be asked whether they moved: their watches are still set. A hint alone.

Owns: a topic's watch is set before its node is asked for, and its number is remembered once the
answer is in the catalogue. Without watches, or after a lost session, every topic is asked; and each
one after AGAIN_S: the server that was asked may have been behind the one that watches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from tiering_assets.resources.metastore.topic_names import managed_ledger_path

AGAIN_S: Final = 600.0


class Watching(Protocol):
    def follow(self, paths: Iterable[str]) -> None: ...
    def watch_of(self, path: str) -> int | None: ...


class Unmoved:
    """What one process has seen of one cluster's topics. About 200 bytes a topic."""

    def __init__(self, watching: Watching, clock: Callable[[], float] = time.monotonic) -> None:
        self._watching, self._clock = watching, clock
        self._seen: dict[str, tuple[int, float]] = {}  # by topic its watch, and when it was asked
        self._asked: dict[str, tuple[int, float]] = {}

    def may_have_moved(self, names: Sequence[str]) -> list[str]:
        """Of these topics those that must be asked. What was asked before is in the tables now."""
        self.settle()
        paths = {name: managed_ledger_path(name) for name in names}
        self._watching.follow(paths.values())
        watches = {name: self._watching.watch_of(path) for name, path in paths.items()}
        now = self._clock()
        wanted = [name for name, watch in watches.items() if not self._is_seen(name, watch, now)]
        self._asked = {
            name: (watch, now) for name in wanted if (watch := watches[name]) is not None
        }
        return wanted

    def _is_seen(self, name: str, watch: int | None, now: float) -> bool:
        seen, asked_at = self._seen.get(name, (None, now))
        return watch is not None and seen == watch and now - asked_at < AGAIN_S

    def settle(self) -> None:
        """Everything that was asked for is in the tables."""
        self._seen.update(self._asked)
        self._asked = {}

    def forget(self) -> None:
        """What was asked for last did not come to the tables."""
        self._asked = {}
