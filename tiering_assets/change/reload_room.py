"""Whether one more reload has room, while other topics of this run are being changed beside it.

Owns: no topic's first reload is asked for at a budget that is used up, side by side as one after
the other. A topic is let in when the budget holds even if every topic under way needs all it may.
Where it would not, it waits until some of them have ended, and asks again; a budget that is used up
makes it wait for another run, as ever. Only what is in the records counts as done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock

from tiering_assets.change.disturbance import Recent, over_budget
from tiering_assets.resources.settings import DisturbSettings

RELOADS_MAX = 4  # of one change: its canary, that taken back, the rest, that taken back


class ReloadRoom:
    """The topics that this run changes now, and the brokers of those that may be reloaded."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._changing: set[str] = set()
        self._let_in: dict[str, str | None] = {}
        self._ended = 0

    @contextmanager
    def changing(self, ml_name: str) -> Iterator[None]:
        """Within it the topic may be let in; what it was let in for ends with it."""
        with self._lock:
            self._changing.add(ml_name)
        try:
            yield
        finally:
            with self._lock:
                self._changing.discard(ml_name)
                if ml_name in self._let_in:
                    del self._let_in[ml_name]
                    self._ended += 1

    @property
    def ended(self) -> int:
        """How many that were let in have ended: to be read before the records are."""
        return self._ended

    def let_in(
        self,
        ml_name: str,
        broker: str | None,
        recent: Recent,
        limits: DisturbSettings,
        *,
        ended: int,
    ) -> bool:
        """Whether the topic may go on now. `recent` was read of the records after `ended` was.

        A topic that nobody changes, but only looks at, always may.
        """
        with self._lock:
            if ml_name not in self._changing:
                return True
            unread = self._ended - ended  # those whose last reloads `recent` may lack
            others = [where for name, where in self._let_in.items() if name != ml_name]
            beside = len(others) + unread
            at_broker = sum(broker is None or where in (broker, None) for where in others) + unread
            if beside and over_budget(_with(recent, beside, at_broker), limits) is not None:
                return False
            self._let_in[ml_name] = broker
            return True


def _with(recent: Recent, beside: int, at_broker: int) -> Recent:
    """The same when every topic under way has made all its reloads."""
    return replace(
        recent,
        broker=None if recent.broker is None else recent.broker + RELOADS_MAX * at_broker,
        cluster=recent.cluster + RELOADS_MAX * beside,
    )
