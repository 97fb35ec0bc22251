"""How much one run may release: caps by run, hour, topic and bookie, and the mass-delete tripwire.

Owns: a mistake in a policy or in our own code is stopped by counting, whatever the gate says. Caps
make ledgers wait, oldest publication first; the tripwire refuses the whole run until a person has
acknowledged the plan that shows it. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tiering_assets.resources.settings import ReleaseSettings

TRIPWIRE_ITEMS = 100  # below so many ledgers a share of the fleet says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Ledgers in one run: in all, of one topic, with a replica on one bookie; and in an hour."""

    per_run: int
    per_hour: int
    per_topic: int
    per_bookie: int

    @classmethod
    def of(cls, limits: ReleaseSettings) -> Caps:
        return cls(
            per_run=limits.per_run_max,
            per_hour=limits.per_hour_max,
            per_topic=limits.per_topic_run_max,
            per_bookie=limits.per_bookie_run_max,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DueLedger:
    """A ledger that the gate would let go. `bookies` are those that hold a replica."""

    ledger_id: int
    ml_name: str
    published_at: datetime
    bookies: frozenset[str]


def apply_caps(candidates: Iterable[DueLedger], caps: Caps, *, last_hour: int) -> dict[int, str]:
    """The ledgers that must wait, each with the cap that it met. `last_hour` were intended already.

    A ledger that waits uses up no other cap, so a full bookie does not hold up ledgers elsewhere.
    """
    taken = 0
    topics: Counter[str] = Counter()
    bookies: Counter[str] = Counter()
    capped: dict[int, str] = {}
    for one in sorted(candidates, key=lambda c: (c.published_at, c.ledger_id)):
        full = sorted(b for b in one.bookies if bookies[b] >= caps.per_bookie)
        if taken >= caps.per_run:
            capped[one.ledger_id] = f"capped: release.per_run_max = {caps.per_run}"
        elif last_hour + taken >= caps.per_hour:
            capped[one.ledger_id] = (
                f"capped: release.per_hour_max = {caps.per_hour}, "
                f"{last_hour} were released in the last hour"
            )
        elif topics[one.ml_name] >= caps.per_topic:
            capped[one.ledger_id] = f"capped: release.per_topic_run_max = {caps.per_topic}"
        elif full:
            capped[one.ledger_id] = (
                f"capped: release.per_bookie_run_max = {caps.per_bookie} for {', '.join(full)}"
            )
        else:
            taken += 1
            topics[one.ml_name] += 1
            bookies.update(one.bookies)
    return capped


def tripwire(ledgers: int, *, fleet: int, share_max: float) -> str | None:
    """Why so many deletes at once need a person's acknowledgement; None when they do not."""
    if ledgers <= TRIPWIRE_ITEMS or ledgers <= share_max * fleet:
        return None
    return (
        f"{ledgers} of {fleet} ledgers would go at once, more than release.fleet_share_max = "
        f"{share_max:g} of the fleet"
    )
