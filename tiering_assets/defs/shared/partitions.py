"""The partition keys: of a ledger its id, or of all ledgers that were closed on a day that day.

Owns: no topic name ever becomes a key, and keys as they were once (the id with 19 digits) are
still understood, so that they can be taken away.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

KEY_DIGITS = 19  # of the largest 64-bit ledger id
FIRST_DAY = date(2016, 1, 1)  # Pulsar became public in that year, so no ledger is older


def partition_key(ledger_id: int) -> str:
    """`42`. ValueError for what is no ledger id."""
    if not 0 <= ledger_id < 1 << 63:
        raise ValueError(f"no ledger id: {ledger_id}")
    return str(ledger_id)


def ledger_id_of(key: str) -> int:
    """Undo partition_key, and what it was before. ValueError for any other text."""
    if key.isascii() and key.isdecimal() and len(key) <= KEY_DIGITS:
        ledger_id = int(key)
        if ledger_id < 1 << 63 and key in (str(ledger_id), f"{ledger_id:0{KEY_DIGITS}d}"):
            return ledger_id
    raise ValueError(f"no ledger partition key: {key!r}")


def day_key(closed_at: datetime | None) -> str | None:
    """`2026-11-27`, the day in UTC; None for a ledger without one, or of before FIRST_DAY."""
    if closed_at is None:
        return None
    day = closed_at.astimezone(UTC).date()
    return day.isoformat() if day >= FIRST_DAY else None


def is_day_key(key: str) -> bool:
    """Whether this is a key of a day, and not of a ledger."""
    return "-" in key
