"""Rates that are never exceeded in any 10 s: one spender's share of a budget, as a bucket of
tokens.

Owns the arithmetic. A budget is split into equal parts, one for every spender that may be at work
at once; nobody lends. A part refills a bucket that begins empty, so that the next spender in the
same place (a restarted worker) adds nothing to what the one before it spent. What has been taken
and may still be on its way stays in the bucket as held, so the bucket never holds more than
`burst`, and any 10 s see at most burst + 10 s of refill (+ `aside`), which is the part's own bound.
Refuses a budget whose part cannot carry the largest thing that is sent at once. Time is told by the
caller. Sizes are bytes or requests, rates those per second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import ceil
from typing import Final

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import BudgetSettings

WINDOW_S: Final = 10.0
REREAD_S: Final = 10.0
REREAD_REQUESTS: Final = 4  # any 10 s hold two re-reads of the record, two requests at most each
FRAME_PREFIX_BYTES: Final = 4  # the length before each answer of a bookie
SLICE_BYTES_MIN: Final = 16 * 1024
SLICE_BYTES_MAX: Final = 256 * 1024
_REFILL_SHARE_MIN = 0.2  # of a window; the rest of it is the largest thing that is sent at once
_NEARLY = 1e-6  # what rounding of times may leave of an amount


class Rate(Enum):
    """What is bounded; the value is the name of its setting and of its field in the record."""

    UPLOAD = "upload_bytes_per_s"
    BOOKIE_READ = "bookie_read_bytes_per_s"
    REQUESTS = "store_requests_per_s"

    @property
    def of_topic(self) -> str:
        """The name of the same budget for each topic."""
        return f"topic_{self.value}"


NAMES: Final = tuple(r.value for r in Rate) + tuple(r.of_topic for r in Rate)
_BURST_S = {Rate.UPLOAD: 0.5, Rate.BOOKIE_READ: 2.0, Rate.REQUESTS: 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One part of a budget: `burst` + 10 `refill` + what is set aside are its 10 s.

    `step` is the most that may be taken at once.
    """

    burst: float
    refill: float
    step: int


def wanted_rates(settings: BudgetSettings, record: Mapping[str, int | None]) -> dict[str, int]:
    """Each budget by name: the record's value, else the settings'. 0 is no bound."""
    return {
        name: getattr(settings, name) if (told := record.get(name)) is None else told
        for name in NAMES
    }


def limit_of(name: str, rate: int, settings: BudgetSettings, *, parts: int) -> Limit | None:
    """One part of a budget; None where there is no bound.

    Raises:
        SettingsError: the part could not carry the largest thing that is sent at once.
    """
    if rate <= 0:
        return None
    part = rate / parts
    kind = _kind_of(name)
    step, aside = _step_and_aside(kind, part, settings)
    room = part * WINDOW_S - aside
    if room * (1 - _REFILL_SHARE_MIN) < step - _NEARLY:
        least = smallest_rate(name, settings, parts=parts)
        raise SettingsError(
            f"budget {name} = {rate}: split into {parts} parts it is too small for what is sent "
            f"at once. Give at least {least}, or 0 for no bound, or lower budget.runs_max or the "
            "cores of spark.master"
        )
    burst = max(step, min(_BURST_S[kind] * part, room / 2))
    return Limit(burst=burst, refill=(room - burst) / WINDOW_S, step=step)


def smallest_rate(name: str, settings: BudgetSettings, *, parts: int) -> int:
    """The smallest rate above 0 that `limit_of` accepts for so many parts."""
    step, aside = _step_and_aside(_kind_of(name), 0.0, settings)
    return ceil(parts * (step / (1 - _REFILL_SHARE_MIN) + aside) / WINDOW_S)


def _kind_of(name: str) -> Rate:
    return Rate(name.removeprefix("topic_"))


def _step_and_aside(kind: Rate, part: float, settings: BudgetSettings) -> tuple[int, int]:
    match kind:
        case Rate.UPLOAD:
            # A slice is spent when it is taken; it may leave a moment later, into the next window.
            step = int(max(SLICE_BYTES_MIN, min(part / 8, SLICE_BYTES_MAX)))
            return step, step
        case Rate.BOOKIE_READ:
            return settings.bookie_answer_bytes_max + FRAME_PREFIX_BYTES, 0
        case Rate.REQUESTS:
            return 1, REREAD_REQUESTS


class Bucket:
    """Tokens of one part. What is in it and what is held never exceed the burst together."""

    __slots__ = ("_as_of", "held", "level", "limit")

    def __init__(self, limit: Limit | None, now: float) -> None:
        self.limit = limit
        self.level = 0.0
        self.held = 0.0
        self._as_of = now

    def set_limit(self, limit: Limit | None, now: float) -> None:
        """Go on with another limit; without one nothing is counted, and a new one begins empty."""
        self._refill(now)
        if self.limit is None:
            self.level = 0.0
        self.limit = limit
        self._refill(now)

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until so much may be taken, if nothing else is; 0 when it may be now.

        What exceeds the burst together with what is held could wait for ever. It was begun under a
        larger limit, and is let through as that one's.
        """
        self._refill(now)
        if self.limit is None:
            return 0.0
        short = min(amount, max(0.0, self.limit.burst - self.held)) - self.level
        return 0.0 if short <= _NEARLY else short / self.limit.refill

    def take(self, amount: float, now: float) -> None:
        """Take what `wait_s` allowed; it is held until it is settled."""
        self._refill(now)
        self.level -= amount
        self.held += amount

    def settle(self, amount: float, spent: float, now: float) -> None:
        """Let go of what was taken; what was not spent of it comes back."""
        self._refill(now)
        self.held -= amount
        self.level += amount - spent

    def _refill(self, now: float) -> None:
        passed, self._as_of = max(0.0, now - self._as_of), max(now, self._as_of)
        if self.limit is not None:
            room = max(0.0, self.limit.burst - self.held)
            self.level = min(self.level + passed * self.limit.refill, room)
