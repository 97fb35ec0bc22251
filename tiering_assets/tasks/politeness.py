"""Reads of bookies wait while those bookies say that their adds are slow, and so do their sends.

Owns: one memory for each process, because tasks are short and a bookie's figures are a minute old:
what one task learnt counts for the next. One look at a time, each at one page, so that pages are
asked LOOKS_PER_S_MAX times a second by all workers together, whatever their number. What the page
says, or that it says nothing, never fails a read; see tasks/polite_share.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock, local

from tiering_assets.resources import ending
from tiering_assets.resources.bookkeeper.add_latency import AddLatency
from tiering_assets.resources.bookkeeper.address_map import Address
from tiering_assets.resources.bookkeeper.figures_page import read_add_latency
from tiering_assets.resources.bookkeeper.meter import ReadMeter, TakenRead
from tiering_assets.resources.errors import BookieError
from tiering_assets.resources.object_store.meter import StoreMeter
from tiering_assets.tasks.polite_share import (
    SENDS_OVER_READS,
    BookiePace,
    Speed,
    fresh_for,
    may_look,
    next_pace,
    next_use,
)

SENT_BYTES = 512 * 1024  # at once, where a share is less than the whole
FORGET_S = 300.0  # figures of a bookie that nobody looked at for so long say nothing


class Politeness:
    """What this process knows of bookies, by the addresses of their pages. For all threads."""

    def __init__(
        self,
        *,
        bound_s: float,
        every_s: float,
        read: Callable[[Address], AddLatency] = read_add_latency,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bound_s, self._every_s, self._fresh_s = bound_s, every_s, fresh_for(every_s)
        self._read, self._clock = read, clock
        self._lock = Lock()
        self._looked_at: float | None = None
        self._paces: dict[Address, BookiePace] = {}
        self._speed, self._speed_lock = Speed(), Lock()
        self._sent = Speed()
        self._tasks, self._worked_s, self._counted_at = 0, 0.0, 0.0

    @contextmanager
    def working(self) -> Iterator[None]:
        """While a task that reads runs: what the process does in between is no speed of reads."""
        self._count_work(1)
        try:
            yield
        finally:
            self._count_work(-1)

    def wait_s(self, pages: Sequence[Address], count: int) -> float:
        """How long so many reads of these wait; those of all threads are spread over the time."""
        share = self.share(pages)
        with self._speed_lock:
            self._speed, wait_s = self._next_use(self._speed, count, share)
            return wait_s

    def send_wait_s(self, pages: Sequence[Address], count: int) -> float:
        """How long so many bytes wait that were read from these, before they are sent."""
        share = min(1.0, self.known_share(pages) * SENDS_OVER_READS)
        with self._speed_lock:
            self._sent, wait_s = self._next_use(self._sent, count, share)
            return wait_s

    def _next_use(self, speed: Speed, count: int, share: float) -> tuple[Speed, float]:
        now = self._clock()
        following = next_use(speed, now, worked_s=self._worked(now), count=count, share=share)
        return following, following.begins - now

    def share(self, pages: Sequence[Address]) -> float:
        """Of the speed, for one who reads from all of these; looks at one of them if it is time."""
        self._look(pages)
        return self.known_share(pages)

    def known_share(self, pages: Sequence[Address]) -> float:
        """The same by what is known already."""
        now = self._clock()
        paces = [self._paces.get(page) for page in pages]
        return min((p.share for p in paces if p and now - p.at < FORGET_S), default=1.0)

    def _look(self, pages: Sequence[Address]) -> None:
        if not pages or not self._lock.acquire(blocking=False):
            return  # somebody is looking, and what is known by now is enough
        try:
            now = self._clock()
            if self._looked_at is not None and now - self._looked_at < self._every_s:
                return
            due = [one for one in pages if may_look(self._pace(one), now)]
            if not due:
                return
            page = min(due, key=lambda one: (not self._pace(one).waits, self._pace(one).at))
            try:
                seen = self._read(page)
            except BookieError:
                seen = None
            self._looked_at = self._clock()
            pace = self._pace(page)
            self._paces[page] = next_pace(
                pace, seen, self._looked_at, bound_s=self._bound_s, fresh_s=self._fresh_s
            )
        finally:
            self._lock.release()

    def _count_work(self, tasks: int) -> None:
        with self._speed_lock:
            now = self._clock()
            self._worked_s, self._counted_at = self._worked(now), now
            self._tasks += tasks

    def _worked(self, now: float) -> float:
        return self._worked_s + (now - self._counted_at if self._tasks else 0.0)

    def _pace(self, page: Address) -> BookiePace:
        return self._paces.get(page) or BookiePace(at=float("-inf"))


@cache
def politeness_of_process(bound_s: float, every_s: float) -> Politeness:
    """The one that all workers of this process share."""
    return Politeness(bound_s=bound_s, every_s=every_s)


class PoliteReads:
    """A worker's meter of reads: waits for its bookies first, then for its budgets."""

    def __init__(
        self,
        budgets: ReadMeter,
        politeness: Politeness | None,
        *,
        sleep: Callable[[float], None] = ending.pause,
    ) -> None:
        self._budgets, self.politeness = budgets, politeness
        self._sleep = sleep
        self.pages: Sequence[Address] = ()

    def working(self) -> AbstractContextManager[None]:
        """While a task that reads runs."""
        return nullcontext() if self.politeness is None else self.politeness.working()

    def take_reads(self, count: int) -> Sequence[TakenRead]:
        if self.politeness is not None:
            wait_s = self.politeness.wait_s(self.pages, count)
            if wait_s > 0:
                self._sleep(wait_s)
        return self._budgets.take_reads(count)

    def reads_at_once(self) -> int | None:
        return self._budgets.reads_at_once()


class PoliteSends:
    """A worker's meter of its store: bytes that were read at a share of the speed leave at it, too.

    A block that leaves at once keeps the cores of a small cluster from everybody for a tenth of a
    second, as often as one is read. Threads that send `adopt` the pages that their task reads from.
    """

    def __init__(
        self,
        budgets: StoreMeter,
        politeness: Politeness | None,
        *,
        sleep: Callable[[float], None] = ending.pause,
    ) -> None:
        self._budgets, self.politeness = budgets, politeness
        self._sleep = sleep
        self._own = local()

    def adopt(self, pages: Sequence[Address]) -> None:
        """From now on what this thread sends was read from these."""
        self._own.pages = pages

    def request(self) -> None:
        self._budgets.request()

    def upload(self, size: int) -> int:
        pages, politeness = self._pages(), self.politeness
        if not pages or politeness is None:
            return self._budgets.upload(size)
        if politeness.known_share(pages) < 1:
            size = min(size, SENT_BYTES)
        allowed = self._budgets.upload(size)
        wait_s = politeness.send_wait_s(pages, allowed)
        if wait_s > 0:
            self._sleep(wait_s)
        return allowed

    def bounds_uploads(self) -> bool:
        polite = self.politeness is not None and len(self._pages()) > 0
        return polite or self._budgets.bounds_uploads()

    def _pages(self) -> Sequence[Address]:
        pages: Sequence[Address] = getattr(self._own, "pages", ())
        return pages
