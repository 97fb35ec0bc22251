"""What is done by one thread at a time, by name, and what is done every so often beside it.

Owns: who waits sleeps by the stack's own sleep, so that a simulated schedule decides who is next,
and a run that is asked to end is not stuck in a lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

FIRST_LOOK_S, LAST_LOOK_S = 0.005, 1.0


def looks() -> Iterator[float]:
    """How long to wait between looks: a moment at first, never much longer than it took so far."""
    wait_s = FIRST_LOOK_S
    while True:
        yield wait_s
        wait_s = min(LAST_LOOK_S, 2 * wait_s)


class Turns:
    """Turns of one run. A turn is not to be asked for again by who has it."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep
        self._lock = Lock()
        self._taken: set[Hashable] = set()

    @contextmanager
    def of(self, name: Hashable) -> Iterator[None]:
        """Wait until nobody else has the turn of this name, and have it within the block."""
        wait_s = looks()
        while not self._take(name):
            self._sleep(next(wait_s))
        try:
            yield
        finally:
            with self._lock:
                self._taken.discard(name)

    def _take(self, name: Hashable) -> bool:
        with self._lock:
            if name in self._taken:
                return False
            self._taken.add(name)
            return True


@contextmanager
def every(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Within the block a thread does this every so many seconds, never before the first are over.

    An error of it ends the repetition and nothing else.
    """
    over = Event()

    def repeat() -> None:
        while not over.wait(seconds):
            act()

    thread = Thread(target=repeat, name="every", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
