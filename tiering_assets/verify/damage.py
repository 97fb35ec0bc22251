"""Copies that brokers read and that a check found broken: written down, so that everything knows.

Owns: whoever finds damage has looked twice before it says so here, and the first to find it is told
apart from all who find it again. A copy of ours is quarantined for good, which keeps its ledger on
the bookies; a broker's is no attempt of ours, so it gets a record that a later good look takes
away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tiering_assets.look.ledger.quarantine import Desk, quarantine
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Damage
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError

_NAMED_MAX = 5  # findings in a record


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A copy that two looks in a row found broken. `found_by` is the command or job."""

    ledger_id: int
    uid: UUID
    ml_name: str | None
    findings: Sequence[str]
    found_by: str


def record_damage(desk: Desk, copy: Broken) -> bool:
    """Record it by ledger and attempt; False where it was known, and what was found first stays."""
    attempt = _attempt(desk, copy.ledger_id, copy.uid)
    findings = copy.findings[:_NAMED_MAX]
    if attempt is not None:
        return quarantine(
            desk,
            copy.ledger_id,
            copy.uid,
            ml_name=attempt.record.ml_name,
            reason=f"{copy.found_by}: {'; '.join(findings)}",
            previous=attempt.sha256,
        )
    record = Damage(
        ledger_id=copy.ledger_id,
        uid=copy.uid,
        ml_name=copy.ml_name,
        findings=tuple(findings),
        found_by=copy.found_by,
        found_at=desk.now(),
        writer=desk.writer,
    )
    _there, fresh = desk.book.create_or_read(keys.damage(copy.ledger_id, copy.uid), record)
    return fresh


def damage_is_over(desk: Desk, ledger_id: int, uid: UUID) -> None:
    """Every byte of a broker's copy was read well: what was found before was an outage or is
    mended.
    """
    desk.book.delete(keys.damage(ledger_id, uid))


def _attempt(desk: Desk, ledger_id: int, uid: UUID) -> Stored[Attempt] | None:
    """The record of one of ours, None for a broker's. One that cannot be read proves nothing
    anyway.
    """
    try:
        return desk.book.read(Attempt, keys.attempt(ledger_id, uid))
    except FormatError:
        return None
