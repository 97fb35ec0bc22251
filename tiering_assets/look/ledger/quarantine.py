"""What is decided of an attempt for good: publish or abandon, and that its check failed.

Owns: one conditional create decides the race. A publisher that slept while its attempt was
abandoned finds the other's record and stops for good; a sweeper that comes while an attempt is
being published finds `publish` and keeps everything. A quarantine is written down once, and asked
for before anything is done with the attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate, Outcome, Quarantine
from tiering_assets.records.stored import Stored
from tiering_assets.records.writer import Writer
from tiering_assets.resources.errors import FormatError


class HasBook(Protocol):
    """What it takes to read records."""

    @property
    def book(self) -> RecordBook: ...


class Desk(HasBook, Protocol):
    """What it takes to write one: a stack has it, and so has an audit of a bucket alone."""

    @property
    def writer(self) -> Writer: ...

    @property
    def now(self) -> Callable[[], datetime]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Won:
    """An attempt whose outcome is `publish`: no sweep can take it away any more."""

    certificate: Stored[Certificate]
    outcome: Stored[Outcome]


def win_outcome(
    desk: Desk,
    after: Stored[Attempt] | Stored[Certificate],
    wanted: Literal["publish", "abandon"],
    *,
    reason: str,
) -> Stored[Outcome] | None:
    """Create the outcome record, or find it; None when the other outcome stands already."""
    record = after.record
    ledger_id = record.ledger.ledger_id
    stored, _ours = desk.book.create_or_read(
        keys.outcome(ledger_id, record.uid),
        Outcome(
            ledger_id=ledger_id,
            uid=record.uid,
            outcome=wanted,
            reason=reason,
            decided_at=desk.now(),
            writer=desk.writer,
            previous=after.sha256,
        ),
    )
    return stored if stored.record.outcome == wanted else None


def quarantine(
    desk: Desk, ledger_id: int, uid: UUID, *, ml_name: str, reason: str, previous: str
) -> bool:
    """Quarantine an attempt for good; False where it is already, and the first reason stays.

    `previous` is the digest of its attempt record.
    """
    _found, fresh = desk.book.create_or_read(
        keys.quarantine(ledger_id, uid),
        Quarantine(
            ledger_id=ledger_id,
            uid=uid,
            ml_name=ml_name,
            reason=reason,
            found_at=desk.now(),
            writer=desk.writer,
            previous=previous,
        ),
    )
    return fresh


def is_quarantined(desk: HasBook, ledger_id: int, uid: UUID) -> bool:
    """A record that cannot be read quarantines as one that can."""
    return desk.book.exists(keys.quarantine(ledger_id, uid))


def why_quarantined(desk: HasBook, ledger_id: int, uid: UUID) -> str | None:
    """The reason, None without one. A record that cannot be read forbids as one that can."""
    try:
        found = desk.book.read(Quarantine, keys.quarantine(ledger_id, uid))
    except FormatError as error:
        return f"a quarantine record that cannot be read: {error}"
    return None if found is None else found.record.reason
