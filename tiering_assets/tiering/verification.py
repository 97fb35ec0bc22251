"""Is what we read back equal to what the bookies served? Invariant I3, decided in one place.

Owns: every block is compared on count, payload bytes and the digest over (id, length, payload), and
the whole on entries = last entry id + 1 and length = ledger length. Differences are listed, not
raised, so that a quarantine record can name them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from resources.errors import IntegrityError
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.tasks.descriptors import BlockRow


def rows_by_part(rows: Iterable[BlockRow]) -> dict[int, BlockRow]:
    """Good rows by part number. A task that ran twice gives equal rows; the first one is kept.

    Raises:
        IntegrityError: two rows of one part differ: somebody answered differently twice.
    """
    kept: dict[int, BlockRow] = {}
    for row in rows:
        if row.error:
            continue
        first = kept.setdefault(row.part_number, row)
        if _facts(first) != _facts(row):
            raise IntegrityError(
                f"ledger {row.ledger_id} block {row.part_number}: read twice with different "
                f"results: {_facts(first)} and {_facts(row)}"
            )
    return kept


def _facts(row: BlockRow) -> tuple[int, int, str, str]:
    return row.entries, row.payload_bytes, row.sha256, row.entries_sha256


def find_differences(
    *,
    plan: Sequence[BlockPlan],
    source: dict[int, BlockRow],
    stored: dict[int, BlockRow],
    last_entry_id: int,
    ledger_length: int,
) -> list[str]:
    """Every difference in words; an empty list is the proof."""
    found: list[str] = []
    for block in plan:
        part = block.part_number
        ours, theirs = stored.get(part), source.get(part)
        if ours is None or theirs is None:
            found.append(f"block {part}: {'object' if ours is None else 'bookies'} not read")
            continue
        expected = block.last_entry_id - block.first_entry_id + 1
        for name, want, have in (
            ("entries", expected, ours.entries),
            ("entries served by bookies", expected, theirs.entries),
            ("payload bytes", theirs.payload_bytes, ours.payload_bytes),
            ("entries digest", theirs.entries_sha256, ours.entries_sha256),
        ):
            if want != have:
                found.append(f"block {part}: {name}: expected {want}, found {have}")
        if theirs.sha256 and theirs.sha256 != ours.sha256:
            found.append(f"block {part}: bytes sent {theirs.sha256}, bytes stored {ours.sha256}")
    entries = sum(row.entries for row in stored.values())
    length = sum(row.payload_bytes for row in stored.values())
    if entries != last_entry_id + 1:
        found.append(f"entries: expected {last_entry_id + 1}, found {entries}")
    if length != ledger_length:
        found.append(f"payload bytes: expected {ledger_length}, found {length}")
    return found


def object_digest(blocks: Iterable[str]) -> str:
    """Digest of a data object: SHA-256 over its blocks' SHA-256 digests (hex) in part order."""
    whole = sha256()
    for block in blocks:
        whole.update(bytes.fromhex(block))
    return whole.hexdigest()
