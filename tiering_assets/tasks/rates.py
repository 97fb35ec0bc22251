"""What one spender (a run's driver, or one task of it) may send and read now: it waits here.

Owns: nothing leaves before it was taken from the part of the cluster's budget and, while a topic is
worked on, of the topic's. The wanted budget is read again every 10 s, from a record in the bucket
because workers open nothing else, so it changes without a restart. A first reading that fails is an
error (unknown is not unbounded); later, while the store is away, the last one stays in force. A
record that cannot be understood, or a budget that cannot be kept, ends the task.
The spender begins with nothing to spend: see tasks/rate_budget.py. Who was asked to end waits for
nothing any more: the main thread gives up what it holds, every other one stops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock, current_thread, get_ident, local, main_thread
from typing import NamedTuple

from tiering_assets.resources import ending
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.settings import BudgetSettings, Settings
from tiering_assets.resources.spark_master import parse_master
from tiering_assets.tasks.rate_budget import (
    REREAD_REQUESTS,
    REREAD_S,
    Bucket,
    Limit,
    Rate,
    limit_of,
    wanted_rates,
)

Budget = Mapping[str, int | None]  # rates per second by their names; None is as settings say


class Reading(NamedTuple):
    """The wanted budget as it was read at a time of the process's clock."""

    at: float
    budget: Budget


def no_reading() -> Reading | None:
    """Of a spender with none beside it."""
    return None


def parts_of(settings: Settings) -> int:
    """How many spenders share a budget: the tasks and the driver of every run there may be."""
    return settings.budget.runs_max * (parse_master(settings.spark).cores + 1)


class RateTaken:
    """What one read took from the buckets that bound it."""

    __slots__ = ("_buckets", "_rates", "bytes_max")

    def __init__(self, rates: Rates, buckets: Sequence[Bucket], bytes_max: int) -> None:
        self._rates, self._buckets, self.bytes_max = rates, buckets, bytes_max

    def settle(self, spent: int) -> None:
        self._rates.settle(self._buckets, self.bytes_max, spent)


class Rates:
    """One spender's part of every budget; both meters that clients ask. May be used by threads.

    Waiting raises what the first reading of the budget does: ObjectStoreError, FormatError, and
    SettingsError for a budget that is too small to be split.
    """

    def __init__(
        self,
        settings: BudgetSettings,
        *,
        parts: Callable[[], int],
        read: Callable[[], Budget] = dict,
        known: Callable[[], Reading | None] = no_reading,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = ending.pause,
    ) -> None:
        """`known` is another spender's newest reading, of this process and by its clock: the first
        one of this spender need not be its own.
        """
        self._settings, self._parts = settings, parts
        self._read, self._clock, self._sleep = read, clock, sleep
        self._known = known
        self._lock = RLock()
        self._read_at: float | None = None
        self._newest: Reading | None = None
        self._reader: int | None = None  # the thread that reads the budget
        self._tries = 0  # requests of this reading
        self._limits: dict[str, Limit | None] = {}
        self._own = local()  # the topic of a thread
        self._buckets: dict[tuple[str, str], Bucket] = {}

    @contextmanager
    def of_topic(self, name: str) -> Iterator[None]:
        """Take from this topic's budgets, too; `name` is any stable name of it, empty is none.

        It is this thread's topic, and nobody else's: a thread that serves it has to `adopt` it.
        """
        before = self._topic()
        self.adopt(name)
        try:
            yield
        finally:
            self.adopt(before)

    def adopt(self, name: str) -> None:
        """From now on this thread takes from that topic's budgets, too."""
        self._own.topic = name

    def _topic(self) -> str:
        own: str = getattr(self._own, "topic", "")
        return own

    def newest(self) -> Reading | None:
        """The last reading that came, for spenders beside this one."""
        return self._newest

    # ----- what the store's client asks

    def request(self) -> None:
        if self._reader == get_ident():
            self._tries += 1
        else:
            self._take(Rate.REQUESTS, 1)

    def upload(self, size: int) -> int:
        return self._take(Rate.UPLOAD, size)

    def bounds_uploads(self) -> bool:
        self._look()
        return bool(self._bounded(Rate.UPLOAD))

    # ----- what bookies' connections ask

    def take_reads(self, count: int) -> Sequence[RateTaken]:
        buckets, amount = self._wait(Rate.BOOKIE_READ, lambda step: step * count)
        return [RateTaken(self, buckets, amount // count) for _ in range(count if buckets else 0)]

    def reads_at_once(self) -> int | None:
        self._look()
        with self._lock:
            bounded = self._bounded(Rate.BOOKIE_READ)
            return min((int(x.burst // x.step) for _, x in bounded), default=None)

    # ----- how it is done

    def settle(self, buckets: Sequence[Bucket], taken: int, spent: int) -> None:
        """Let go of what was taken, and give back what was not spent of it."""
        with self._lock:
            now = self._clock()
            for bucket in buckets:
                bucket.settle(taken, spent, now)

    def _take(self, rate: Rate, size: int) -> int:
        """Take some of it for good, and tell how much; all of it where nothing is bounded."""
        buckets, amount = self._wait(rate, lambda step: min(size, step))
        self.settle(buckets, amount, amount)
        return amount if buckets else size

    def _wait(self, rate: Rate, amount_of: Callable[[int], int]) -> tuple[Sequence[Bucket], int]:
        """Take from every bucket that bounds this rate, at one moment; which, and how much.

        `amount_of` tells the amount by what may be taken at once at most.
        """
        while True:
            if ending.asked():
                if rate is Rate.BOOKIE_READ or current_thread() is not main_thread():
                    raise KeyboardInterrupt
                return (), 0
            self._look()
            with self._lock:
                bounded = self._bounded(rate)
                if not bounded:
                    return (), 0
                amount = amount_of(min(limit.step for _, limit in bounded))
                now = self._clock()
                wait_s = max(bucket.wait_s(amount, now) for bucket, _ in bounded)
                if wait_s <= 0:
                    for bucket, _ in bounded:
                        bucket.take(amount, now)
                    return [bucket for bucket, _ in bounded], amount
            self._pause(wait_s)

    def _pause(self, wait_s: float) -> None:
        """Wait, but not beyond the next reading: the budget may be another one then."""
        due = (self._read_at or 0.0) + REREAD_S - self._clock()
        self._sleep(max(0.001, min(wait_s, due)))

    def _bounded(self, rate: Rate) -> list[tuple[Bucket, Limit]]:
        """The buckets that bound this rate now, each with its limit."""
        asked = [(rate.value, "")]
        if topic := self._topic():
            asked.append((rate.of_topic, topic))
        found: list[tuple[Bucket, Limit]] = []
        for name, topic in asked:
            limit = self._limits.get(name)
            if limit is None:
                continue
            bucket = self._buckets.get((name, topic))
            if bucket is None:
                bucket = self._buckets[name, topic] = Bucket(limit, self._clock())
            found.append((bucket, limit))
        return found

    def _look(self) -> None:
        """Read the wanted budget if it is time to."""
        if self._is_new(self._read_at):
            return
        with self._lock:
            if self._is_new(self._read_at):
                return  # another thread has just read it
            known = self._known() if self._read_at is None else None
            if known is not None and self._is_new(known.at):
                self._follow(known.budget)
                self._read_at, self._newest = known.at, known
                return
            try:
                budget = self._reading()
                self._follow(budget)
                self._newest = Reading(self._clock(), budget)
            except ObjectStoreError:
                if self._read_at is None:
                    raise
            self._read_at = self._clock()
            self._pay(Rate.REQUESTS, self._tries - REREAD_REQUESTS // 2)

    def _is_new(self, at: float | None) -> bool:
        return at is not None and self._clock() - at < REREAD_S

    def _reading(self) -> Budget:
        self._reader, self._tries = get_ident(), 0
        try:
            return self._read()
        finally:
            self._reader = None

    def _follow(self, record: Budget) -> None:
        wanted = wanted_rates(self._settings, record)
        parts = self._parts() if any(wanted.values()) else 1
        self._limits = {
            name: limit_of(name, rate, self._settings, parts=parts) for name, rate in wanted.items()
        }
        now = self._clock()
        for (name, _topic), bucket in self._buckets.items():
            bucket.set_limit(self._limits[name], now)

    def _pay(self, rate: Rate, amount: int) -> None:
        """Take, without having asked, what a reading cost that the store did not serve at once."""
        for bucket, _ in self._bounded(rate) if amount > 0 else ():
            now = self._clock()
            bucket.take(amount, now)
            bucket.settle(amount, amount, now)
