"""The one race that decides an attempt's fate: publish or abandon, by conditional create.

A publisher that slept while its attempt was abandoned finds the other's record and stops for good;
a sweeper that comes while an attempt is being published finds `publish` and keeps everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tiering_assets.ground.record_book import Stored
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Won:
    """An attempt whose outcome is `publish`: no sweep can take it away any more."""

    certificate: Stored[Certificate]
    outcome: Stored[Outcome]


def win_outcome(
    stack: Stack,
    after: Stored[Attempt] | Stored[Certificate],
    wanted: Literal["publish", "abandon"],
    *,
    reason: str,
) -> Stored[Outcome] | None:
    """Create the outcome record, or find it; None when the other outcome stands already."""
    record = after.record
    ledger_id = record.ledger.ledger_id
    stored, _ours = stack.book.create_or_read(
        keys.outcome(ledger_id, record.uid),
        Outcome(
            ledger_id=ledger_id,
            uid=record.uid,
            outcome=wanted,
            reason=reason,
            decided_at=stack.now(),
            writer=stack.writer,
            previous=after.sha256,
        ),
    )
    return stored if stored.record.outcome == wanted else None
