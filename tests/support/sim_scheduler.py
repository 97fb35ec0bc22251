"""Simulated time: many actors, one of which runs, and the one that wakes first goes on.

Owns: an interleaving is decided by wake-up times alone, so the same seed gives the same schedule,
whatever the machine does. Actors are threads that hand a baton to each other, because the steps are
plain synchronous code; where the running actor is itself the next to wake, nothing is handed over.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable

STEPS_MAX = 60_000


class Killed(BaseException):
    """The process of this actor is gone: nothing that it does from now on has an effect."""


class NoProgress(BaseException):
    """More calls than any sound schedule makes."""


class Actor:
    """One process: it is done when its function returned, raised or was killed."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self.name = name
        self.act = act
        self.killed = False
        self.started_at = 0.0
        self.baton = threading.Lock()
        self.baton.acquire()
        self.thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return self.name


class Scheduler:
    """`now` is true time in seconds since the start, which no actor ever sees."""

    def __init__(self) -> None:
        self.now = 0.0
        self.current: Actor | None = None
        self.failures: list[tuple[Actor, BaseException]] = []
        self.steps = 0
        self._ahead: list[tuple[float, int, Actor]] = []
        self._order = itertools.count()
        self._all_done = threading.Lock()
        self._all_done.acquire()

    def spawn(self, name: str, at: float, act: Callable[[], None]) -> Actor:
        """Let an actor begin at a time; now, if that has passed."""
        actor = Actor(name, act)
        heapq.heappush(self._ahead, (max(at, self.now), next(self._order), actor))
        return actor

    def pause(self, seconds: float) -> None:
        """Let time pass for whoever calls; others act meanwhile. Between runs, time just passes."""
        me = self.current
        self.steps += 1
        if me is None:
            self.now += seconds
            return
        if self.steps > STEPS_MAX:
            raise NoProgress(f"{self.steps} calls")
        heapq.heappush(self._ahead, (self.now + seconds, next(self._order), me))
        if not self._hand_over(me):
            me.baton.acquire()

    def park(self) -> None:
        """Let whoever calls stand still until somebody who is to act wakes it."""
        me = self.current
        if me is not None and not self._hand_over(me):
            me.baton.acquire()

    def wake(self, actor: Actor) -> None:
        """Let a parked actor be the next to act at this time."""
        heapq.heappush(self._ahead, (self.now, next(self._order), actor))

    def run(self) -> None:
        """Let every actor act until all are done."""
        self._hand_over(None)
        if self.current is not None:
            self._all_done.acquire()

    def _hand_over(self, me: Actor | None) -> bool:
        """Wake the next actor; True when that is the one who asks."""
        if not self._ahead:
            ended, self.current = self.current, None
            if ended is not None:
                self._all_done.release()
            return False
        self.now, _order, actor = heapq.heappop(self._ahead)
        self.current = actor
        if actor is me:
            return True
        if actor.thread is None:
            actor.started_at = self.now
            actor.thread = threading.Thread(target=self._live, args=(actor,), daemon=True)
            actor.thread.start()
        else:
            actor.baton.release()
        return False

    def _live(self, actor: Actor) -> None:
        try:
            actor.act()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - what a process dies of is a finding
            self.failures.append((actor, error))
        self._hand_over(None)
