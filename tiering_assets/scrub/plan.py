"""Which copies to look at again, how deeply, and how far the budgets of one run reach.

Owns: the longest overdue comes first, and what was never verified before anything else, shallow
before deep, with ledgers that bookies still have in front: those can be healed. A run never goes
beyond its budgets by more than one block, a budget that ends in the middle of a ledger leaves a
place to go on from, and a large ledger is not passed over for the small ones behind it. There is
no cursor to lose: the age of the newest verification of each attempt is the cursor.

Pure. Ages are differences of the store's own times, so no clock of ours is part of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Final
from uuid import UUID

from tiering_assets.resources.settings_kinds import MIB

# Requests of one look besides ranged reads: both objects, certificate, and our record of the look.
LOOK_REQUESTS: Final = 6
BLOCK_BYTES_LEAST: Final = 5 * MIB  # but for an object's last block: the smallest part of S3


class Depth(Enum):
    """`SHALLOW`: existence, size, version, lifecycle and index. `DEEP`: every byte, too."""

    SHALLOW = "shallow"
    DEEP = "deep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A copy that a topic's node names, complete. Times are the store's; None means never.

    `deep_at` is the certificate's time where there is no later deep look. `shallow_at` counts deep
    looks, too. `object_bytes` is 0 where the bucket lists no data object.
    """

    ledger_id: int
    uid: UUID
    ml_name: str
    object_bytes: int
    certified: bool
    in_bookkeeper: bool
    published_at_ms: int
    shallow_at: datetime | None
    deep_at: datetime | None
    failed_at: datetime | None

    @property
    def failing(self) -> bool:
        """The newest look found something wrong: only a later deep one takes that back."""
        return self.failed_at is not None and (
            self.deep_at is None or self.deep_at <= self.failed_at
        )

    def last(self, depth: Depth) -> datetime | None:
        """When it was last looked at so deeply, whatever was found."""
        looked = [self.failed_at, self.deep_at if depth is Depth.DEEP else self.shallow_at]
        return max((at for at in looked if at is not None), default=None)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds between two looks of each depth; 0 means that every one is due."""

    shallow_s: float
    deep_s: float

    def of(self, depth: Depth) -> float:
        return self.shallow_s if depth is Depth.SHALLOW else self.deep_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DueLook:
    """One thing to do: `bytes_max` of the data object may be read, which is 0 for a shallow
    look.
    """

    candidate: Candidate
    depth: Depth
    bytes_max: int = 0

    @property
    def whole(self) -> bool:
        """False where the budget ends before the object does."""
        return self.depth is Depth.SHALLOW or self.bytes_max >= self.candidate.object_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBudget:
    """What is left of a run's requests and bytes. `range_bytes` is the size of one ranged read."""

    requests: int
    bytes: int
    range_bytes: int

    def admit(self, look: DueLook) -> DueLook | None:
        """The look as far as the budget reaches, or None where it does not reach."""
        if look.depth is Depth.SHALLOW:
            return look if self.requests >= LOOK_REQUESTS else None
        reads = self.requests - LOOK_REQUESTS
        if reads <= 0 or self.bytes <= 0:
            return None
        # n bytes need at most n/range + n/least + 2 reads: each block begins a range of its own.
        per_read = self.range_bytes * BLOCK_BYTES_LEAST / (self.range_bytes + BLOCK_BYTES_LEAST)
        readable = max(1, int((reads - 2) * per_read))
        return replace(look, bytes_max=min(look.candidate.object_bytes, self.bytes, readable))

    def spend(self, *, requests: int, bytes_read: int) -> RunBudget:
        return replace(self, requests=self.requests - requests, bytes=self.bytes - bytes_read)

    def estimate(self, look: DueLook) -> int:
        """Requests that a look needs at most."""
        if look.depth is Depth.SHALLOW:
            return LOOK_REQUESTS
        reads = -(-look.bytes_max // self.range_bytes) + -(-look.bytes_max // BLOCK_BYTES_LEAST)
        return LOOK_REQUESTS + reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubPlan:
    """What one run does: `heal` first, then `looks`; `deferred` are due and wait for the next."""

    heal: tuple[Candidate, ...]
    looks: tuple[DueLook, ...]
    deferred: tuple[DueLook, ...]
    requests: int
    bytes: int


def due_looks(
    candidates: Iterable[Candidate], *, now: datetime, intervals: Intervals
) -> tuple[DueLook, ...]:
    """Every look that is due at the store's time `now`, in the order in which to take them."""
    due = []
    for candidate in candidates:
        for depth in Depth:
            overdue = _overdue(candidate.last(depth), now, intervals.of(depth))
            if overdue is not None:
                due.append(
                    (_order(candidate, depth, overdue), DueLook(candidate=candidate, depth=depth))
                )
    return tuple(look for _order_key, look in sorted(due, key=lambda pair: pair[0]))


def to_heal(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Broken copies whose ledger bookies still have; the longest published first: the brokers' own
    deletion lag runs from there.
    """
    broken = [c for c in candidates if c.failing and c.in_bookkeeper]
    return tuple(sorted(broken, key=lambda c: (c.published_at_ms, c.ledger_id)))


def plan_scrub(
    candidates: Sequence[Candidate], *, now: datetime, intervals: Intervals, budget: RunBudget
) -> ScrubPlan:
    """What a run with this budget would do, by estimates; a copy that will be healed is not
    read.
    """
    heal = to_heal(candidates)
    healing = {(c.ledger_id, c.uid) for c in heal}
    others = [c for c in candidates if (c.ledger_id, c.uid) not in healing]
    taken: list[DueLook] = []
    deferred: list[DueLook] = []
    left = budget
    for look in due_looks(others, now=now, intervals=intervals):
        admitted = left.admit(look)
        if admitted is None:
            deferred.append(look)
            continue
        taken.append(admitted)
        left = left.spend(requests=left.estimate(admitted), bytes_read=admitted.bytes_max)
    return ScrubPlan(
        heal=heal,
        looks=tuple(taken),
        deferred=tuple(deferred),
        requests=budget.requests - left.requests,
        bytes=budget.bytes - left.bytes,
    )


def _overdue(last: datetime | None, now: datetime, every_s: float) -> float | None:
    """How many intervals ago the last look was; None where it is not due yet.

    A time in the future means that the store's clock was set back: looked at again at once.
    """
    if last is None:
        return float("inf")
    age = (now - last).total_seconds()
    if 0 <= age < every_s:
        return None
    return abs(age) / max(every_s, 1e-6)


def _order(candidate: Candidate, depth: Depth, overdue: float) -> tuple[float, ...]:
    return (
        -overdue,
        depth is Depth.DEEP,
        not candidate.in_bookkeeper,
        candidate.published_at_ms,
        candidate.ledger_id,
        candidate.uid.int,
    )
