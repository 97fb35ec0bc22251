"""What stands still and will not move by itself: dead claims, ledgers open too long, overdue
topics.

Pure. A finding names what was expected and what to do; nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tiering_assets.ground.moments import moment

# A dropped claim is dated back a day (look/ledger/claims.py), so it is never taken for a dead one.
DEAD_CLAIM_MAX = timedelta(hours=23)


class StuckKind(StrEnum):
    DEAD_CLAIM = "dead claim"
    OPEN_TOO_LONG = "open too long"
    RETENTION_OVERDUE = "retention overdue"
    CATALOGUE_BEHIND = "catalogue behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """One finding. `subject` is a ledger id as text, or a topic."""

    kind: StuckKind
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.subject}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosingTimes:
    """When the first and the last of a topic's ledgers was closed; None where none is."""

    topic: str
    namespace: str
    oldest: datetime | None
    newest: datetime | None
    has_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollover:
    """When a broker closes a ledger: with the next message once one of them is reached. Pulsar
    4.0.
    """

    max_s: float
    entries: int
    bytes: int


def dead_claim(
    ledger_id: int, run_id: str, *, expires_at: datetime, store_now: datetime
) -> Stuck | None:
    """A claim that ran out and that its run neither renewed nor dropped."""
    if not timedelta() < store_now - expires_at < DEAD_CLAIM_MAX:
        return None
    return Stuck(
        kind=StuckKind.DEAD_CLAIM,
        subject=str(ledger_id),
        detail=f"run {run_id} ended without dropping it, it ran out at {moment(expires_at)}; "
        f"the next run takes the ledger over",
    )


def open_too_long(
    topic: str,
    ledger_id: int,
    *,
    opened_at: datetime,
    now: datetime,
    limit: timedelta,
    loaded: bool | None,
    rollover: Rollover | None,
    retention: timedelta | None = None,
) -> Stuck | None:
    """An open ledger past the limit or its retention, with the condition that is not met."""
    age = now - opened_at
    expired = retention is not None and age > retention
    if age < limit and not expired:
        return None
    if loaded is False:
        why = "no broker has the topic loaded, so it stays open; load or terminate the topic"
    elif rollover is None:
        why = "the broker did not tell its rollover settings"
    elif age.total_seconds() >= rollover.max_s:
        why = (
            f"older than managedLedgerMaxLedgerRolloverTimeMinutes ({rollover.max_s / 60:.0f}), "
            f"but a broker closes it only with the next message; unload the topic to close it now"
        )
    else:
        why = (
            f"its broker waits for {rollover.entries} entries, {rollover.bytes} bytes or "
            f"{rollover.max_s / 60:.0f} minutes"
        )
    if expired and retention is not None:
        why += (
            f". Its retention of {_hours(retention)} is over, and only closed ledgers are trimmed"
        )
    return Stuck(
        kind=StuckKind.OPEN_TOO_LONG,
        subject=str(ledger_id),
        detail=f"{topic} has it open for {_hours(age)}; {why}",
    )


def retention_overdue(topic: str, ledger_ids: Sequence[int]) -> Stuck | None:
    """What a broker would trim of a topic that nobody has loaded: only a broker trims."""
    if not ledger_ids:
        return None
    return Stuck(
        kind=StuckKind.RETENTION_OVERDUE,
        subject=topic,
        detail=f"{len(ledger_ids)} ledgers, the oldest {ledger_ids[0]}, are consumed and past their"
        f" retention; only a broker that has the topic loaded trims them: `tierkeeper topic"
        f" load-overdue {topic.removeprefix('persistent://')} --plan`",
    )


def catalogue_behind(said: str) -> Stuck:
    """Sensors that it nominates for stand until it has caught up."""
    return Stuck(kind=StuckKind.CATALOGUE_BEHIND, subject="catalogue", detail=said)


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:.1f} h"
