"""The partition key of a ledger.

Owns: one partition per admitted ledger, its key the ledger id with 19 digits, so that keys sort as
ids do and no topic name ever becomes a key.
"""

from __future__ import annotations

KEY_DIGITS = 19  # of the largest 64-bit ledger id


def partition_key(ledger_id: int) -> str:
    """`0000000000000000042`. ValueError for what is no ledger id."""
    if not 0 <= ledger_id < 1 << 63:
        raise ValueError(f"no ledger id: {ledger_id}")
    return f"{ledger_id:0{KEY_DIGITS}d}"


def ledger_id_of(key: str) -> int:
    """Undo partition_key. ValueError for any other text."""
    if len(key) != KEY_DIGITS or not (key.isascii() and key.isdecimal()):
        raise ValueError(f"no ledger partition key: {key!r}")
    return int(key)
