"""Copy lag and delete lag, verified share and stuck ledgers: per topic, per namespace and in total.

Owns: which backlog reasons count as lag, in one table; and that figures add up, because each
ledger is counted once in its topic and a namespace and the total are sums of topics. Copy lag is
Kafka's RemoteCopyLag: what policy wants in the bucket and no broker reads there yet. Delete lag is
its RemoteDeleteLag: what is due for deletion from the bookies and still there.

Pure: times come with the ledgers and from the caller.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.look.ledger.states import LedgerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`copy`: lag while no broker reads a copy. `delete`: lag once due. `stuck`: time does not
    help.
    """

    copy: bool = False
    delete: bool = False
    stuck: bool = False


R = BacklogReason
PLACES: Final[Mapping[BacklogReason, Place]] = {
    R.OPEN: Place(),
    R.DAMAGED: Place(delete=True, stuck=True),
    R.UNSEALED: Place(copy=True, stuck=True),
    R.BELOW_THRESHOLD: Place(),
    R.EXCLUDED: Place(),
    R.DISABLED: Place(),
    R.PAUSED: Place(),
    R.NOT_ADMITTED: Place(copy=True, delete=True),
    R.OVER_BUDGET: Place(copy=True),
    R.COPYING: Place(copy=True),
    R.FAILED: Place(copy=True, stuck=True),
    R.QUARANTINED: Place(copy=True, stuck=True),
    R.CANNOT_READ: Place(copy=True, stuck=True),
    R.MAY_RELEASE_FIRST: Place(copy=True, stuck=True),
    R.WAITING_TO_DISTURB: Place(copy=True),
    R.NODE_TOO_LARGE: Place(copy=True, stuck=True),
    R.PUBLISHED_BY_BROKER: Place(),
    R.UNCONFIRMED: Place(delete=True, stuck=True),
    R.IN_LAG: Place(),
    R.HELD: Place(),
    R.CAPPED: Place(delete=True),
    R.UNSAFE: Place(copy=True, delete=True, stuck=True),
    R.EXPIRED: Place(),
    R.DONE: Place(),
}

# Brokers read a copy of these; the topic's node says so.
OFFLOADED: Final = frozenset(
    {
        LedgerState.PUBLISHED,
        LedgerState.RELEASE_DUE,
        LedgerState.RELEASING,
        LedgerState.HELD,
        LedgerState.RELEASED,
    }
)
_DELETABLE = frozenset({LedgerState.RELEASE_DUE, LedgerState.RELEASING})
_NEVER_COPIED = frozenset({LedgerState.OPEN, LedgerState.EXPIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What is counted of one ledger, or of several that are alike: their bytes, the first times.

    `due_at` is when the deletion lag has passed, where it runs.
    """

    topic: str
    namespace: str
    reason: BacklogReason
    state: LedgerState
    bytes: int
    closed_at: datetime | None
    due_at: datetime | None
    certified: bool
    damaged: bool = False
    ledgers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCount:
    """`oldest_s` is the time since the first of them was closed; None where none is."""

    reason: BacklogReason
    ledgers: int
    bytes: int
    oldest_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCount:
    """The same by state."""

    state: LedgerState
    ledgers: int
    bytes: int
    oldest_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """`oldest_s`: seconds since the first was closed (copy) or due (delete), 0 at least."""

    ledgers: int
    bytes: int
    oldest_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of a topic, a namespace or all.

    `offloaded` are published or released, `verified` those certified and not found broken.
    """

    ledgers: int
    bytes: int
    copy_lag: Lag
    delete_lag: Lag
    stuck: int
    offloaded: int
    verified: int
    reasons: tuple[ReasonCount, ...]
    states: tuple[StateCount, ...]

    @property
    def verified_share(self) -> float | None:
        """Certified and sound ledgers among those that brokers read from the bucket; None without
        any.
        """
        return self.verified / self.offloaded if self.offloaded else None


class FiguresByTopic(Mapping[str, Figures]):
    """By topic, in name order."""

    @abstractmethod
    def lagging(self) -> Iterator[tuple[str, Figures]]:
        """Those with ledgers in a lag or stuck."""

    @abstractmethod
    def largest(self, count: int, state: LedgerState | None = None) -> list[tuple[str, Figures]]:
        """Topics with most bytes, most first; of ledgers in this state alone, where one is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFigures:
    """`disturbances_last_hour` are our reloads of topics, by the store's clock."""

    total: Figures
    namespaces: Mapping[str, Figures]
    topics: FiguresByTopic
    disturbances_last_hour: int
    taken_at: datetime


def is_copy_lag(one: Counted) -> bool:
    """True where policy wants a copy that brokers read, and there is none."""
    settled = one.state in OFFLOADED or one.state in _NEVER_COPIED
    return PLACES[one.reason].copy and not settled


def is_delete_lag(one: Counted) -> bool:
    """True where the bookie copy is due for deletion, or half deleted, and nobody holds it."""
    return PLACES[one.reason].delete and one.state in _DELETABLE


def is_lagging(one: Counted) -> bool:
    """True where it is in a lag or stuck."""
    return is_copy_lag(one) or is_delete_lag(one) or PLACES[one.reason].stuck


@dataclass(slots=True)
class _LagSum:
    ledgers: int = 0
    bytes: int = 0
    since: datetime | None = None

    def add(self, ledgers: int, size: int, since: datetime | None) -> None:
        self.ledgers += ledgers
        self.bytes += size
        self.since = _first(self.since, since)

    def merge(self, other: _LagSum) -> None:
        self.add(other.ledgers, other.bytes, other.since)

    def lag(self, now: datetime) -> Lag:
        oldest_s = max(0.0, _age_s(self.since, now) or 0.0)  # clocks may differ
        return Lag(ledgers=self.ledgers, bytes=self.bytes, oldest_s=oldest_s)


@dataclass(slots=True)
class FigureSum:
    """What is counted of a topic, a namespace or all, ledger by ledger or many at once."""

    copy: _LagSum = field(default_factory=_LagSum)
    delete: _LagSum = field(default_factory=_LagSum)
    counts: Counter[str] = field(default_factory=Counter)
    reasons: dict[BacklogReason, _LagSum] = field(default_factory=dict)
    states: dict[LedgerState, _LagSum] = field(default_factory=dict)

    def add(self, one: Counted) -> None:
        many = one.ledgers
        self.reasons.setdefault(one.reason, _LagSum()).add(many, one.bytes, one.closed_at)
        self.states.setdefault(one.state, _LagSum()).add(many, one.bytes, one.closed_at)
        if is_copy_lag(one):
            self.copy.add(many, one.bytes, one.closed_at)
        if is_delete_lag(one):
            self.delete.add(many, one.bytes, one.due_at)
        if PLACES[one.reason].stuck:
            self.counts["stuck"] += many
        if one.state in OFFLOADED:
            self.counts["offloaded"] += many
            if one.certified and not one.damaged:
                self.counts["verified"] += many

    def merge(self, other: FigureSum) -> None:
        self.copy.merge(other.copy)
        self.delete.merge(other.delete)
        self.counts.update(other.counts)
        for reason, found in other.reasons.items():
            self.reasons.setdefault(reason, _LagSum()).merge(found)
        for state, found in other.states.items():
            self.states.setdefault(state, _LagSum()).merge(found)

    def figures(self, now: datetime) -> Figures:
        rows = tuple(
            ReasonCount(
                reason=reason,
                ledgers=self.reasons[reason].ledgers,
                bytes=self.reasons[reason].bytes,
                oldest_s=_age_s(self.reasons[reason].since, now),
            )
            for reason in BacklogReason
            if reason in self.reasons
        )
        return Figures(
            ledgers=sum(row.ledgers for row in rows),
            bytes=sum(row.bytes for row in rows),
            copy_lag=self.copy.lag(now),
            delete_lag=self.delete.lag(now),
            stuck=self.counts["stuck"],
            offloaded=self.counts["offloaded"],
            verified=self.counts["verified"],
            reasons=rows,
            states=tuple(
                StateCount(
                    state=state,
                    ledgers=self.states[state].ledgers,
                    bytes=self.states[state].bytes,
                    oldest_s=_age_s(self.states[state].since, now),
                )
                for state in LedgerState
                if state in self.states
            ),
        )


def _first(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((at for at in (one, other) if at is not None), default=None)


def _age_s(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else (now - since).total_seconds()
