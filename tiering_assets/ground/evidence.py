"""How old may what we know be when we act on it, and how old must a publication be? Pure.

Owns: every effect that publishes, marks, deletes, heals, sweeps, expires, forgets or reloads names
the kinds of evidence that it stands on, and goes ahead only while each of them is younger than its
bound. What was never asked is too old. Ages are of the moment *before* the question was asked, by a
monotonic clock, so that neither a slow answer nor a clock that steps makes anything younger. Every
byte of a ledger that is read alone is dated by the end: its length must not keep it waiting for
ever.

The deletion lag (invariant I5) counts from the publication record twice: from the time the store
gave it (Last-Modified, against the store's Date now) and from the time written in it (against our
clock now). Both must have passed it, so that a step forward of either clock alone releases nothing.
What was taken out and published again is a publication of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What was asked. The value is what messages say."""

    NODE = "the topic's node"
    LEDGER = "BookKeeper's metadata"
    RECORDS = "our records of the attempt"
    HOLDS = "holds"
    OBJECTS = "the objects"
    POLICY = "the topic's offload policy"
    BROKERS = "the brokers' settings"
    SHADOWS = "shadow topics"
    REPLICATION = "under-replication"
    TOPICS = "the other topics"
    BOOKIES = "writable bookies"
    BYTES = "every byte"


class Effect(StrEnum):
    """What is done. The value is what messages say."""

    PUBLISH = "publish"
    HEAL = "heal"
    MARK = "mark for release"
    DELETE = "delete the bookie copy"
    SWEEP = "sweep"
    EXPIRE = "expire"
    FORGET = "forget"
    RELOAD = "reload"


# What moves slowly, and costs a question to every broker, a look at every topic or a whole reading.
SLOW: Final = frozenset(
    {Kind.POLICY, Kind.BROKERS, Kind.SHADOWS, Kind.REPLICATION, Kind.TOPICS, Kind.BYTES}
)

_PUBLISH = frozenset({Kind.OBJECTS, Kind.RECORDS, Kind.POLICY, Kind.BROKERS})
_RELEASE = frozenset(
    {
        Kind.LEDGER, Kind.RECORDS, Kind.HOLDS, Kind.OBJECTS, Kind.BYTES,
        Kind.POLICY, Kind.BROKERS, Kind.SHADOWS, Kind.REPLICATION,
    }
)  # fmt: skip

NEEDS: Final[Mapping[Effect, frozenset[Kind]]] = {
    Effect.PUBLISH: _PUBLISH,
    Effect.HEAL: _PUBLISH,
    Effect.MARK: _RELEASE,
    Effect.DELETE: _RELEASE | {Kind.NODE},
    Effect.SWEEP: frozenset({Kind.NODE, Kind.LEDGER, Kind.RECORDS, Kind.HOLDS}),
    Effect.EXPIRE: frozenset({Kind.NODE, Kind.LEDGER, Kind.RECORDS, Kind.HOLDS, Kind.TOPICS}),
    Effect.FORGET: frozenset({Kind.NODE, Kind.LEDGER, Kind.RECORDS, Kind.HOLDS, Kind.TOPICS}),
    Effect.RELOAD: frozenset({Kind.BOOKIES}),
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds. `fast_s` is for what moves within seconds, `slow_s` for SLOW."""

    fast_s: float
    slow_s: float

    def of(self, kind: Kind) -> float:
        return self.slow_s if kind in SLOW else self.fast_s


@dataclass(frozen=True, slots=True)
class Dated:
    """When each kind of evidence was asked for last, in seconds of one process's monotonic
    clock.
    """

    asked_at_s: Mapping[Kind, float] = field(default_factory=dict)

    @classmethod
    def at(cls, now_s: float, *kinds: Kind) -> Dated:
        return cls(dict.fromkeys(kinds, now_s))

    def and_(self, other: Dated) -> Dated:
        """Both together: of a kind that both have, the older one counts."""
        both = {**self.asked_at_s}
        for kind, at_s in other.asked_at_s.items():
            both[kind] = min(at_s, both.get(kind, at_s))
        return Dated(both)

    def renewed(self, newer: Dated) -> Dated:
        """What was asked again takes the place of what was asked before."""
        return Dated({**self.asked_at_s, **newer.asked_at_s})

    def only(self, *kinds: Kind) -> Dated:
        """What is known of these kinds alone."""
        return Dated({kind: at_s for kind, at_s in self.asked_at_s.items() if kind in kinds})

    def is_young(self, kind: Kind, *, now_s: float, bounds: Bounds) -> bool:
        """Whether a kind may be used as it is, with half of its time still ahead."""
        asked = self.asked_at_s.get(kind)
        return asked is not None and now_s - asked <= bounds.of(kind) / 2


def all_of(evidence: Iterable[Dated]) -> Dated:
    """The oldest of each kind."""
    together = Dated()
    for one in evidence:
        together = together.and_(one)
    return together


def why_too_old(evidence: Dated, effect: Effect, *, now_s: float, bounds: Bounds) -> str | None:
    """What is missing or older than its bound for this effect; None when nothing is."""
    found = []
    for kind in sorted(NEEDS[effect]):
        asked = evidence.asked_at_s.get(kind)
        if asked is None:
            found.append(f"{kind} were never asked for")
        elif now_s - asked > (bound := bounds.of(kind)):
            found.append(f"{kind}: {now_s - asked:.0f} s old, at most {bound:g} s")
    return "; ".join(found) or None


def lag_elapsed(
    *,
    lag: timedelta,
    recorded_at: datetime,
    now: datetime,
    stored_at: datetime,
    store_now: datetime,
) -> bool:
    """True only when both ages are greater than `lag`."""
    return min(now - recorded_at, store_now - stored_at) > lag


def counts_for(context_ms: int, recorded_ms: int | None, *, confirmed_at: datetime) -> bool:
    """Whether a confirmation is one of the context that stands, whose timestamp is `context_ms`.

    `recorded_ms` is the timestamp that the record gives. A record without it is of a time when none
    was kept: it counts for a context that was there before the confirmation.
    """
    if recorded_ms is not None:
        return recorded_ms == context_ms
    return context_ms <= confirmed_at.timestamp() * 1000
