"""Is what we read back equal to what the bookies served? Invariant I3, decided in one place.

Owns: every block is compared on count, payload bytes and the digest over (id, length, payload), and
the whole on entries = last entry id + 1 and on the payload bytes of the plan, which are those that
the last entry's own header counts. Differences are listed, not
raised, so that a quarantine record can name them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from resources.errors import IntegrityError, SettingsError
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.tasks.descriptors import BlockRow

SAMPLED_EVERY: Final = 10  # of a ledger's blocks, with verify.second_replica = sample


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
    planned = sum(block.payload_bytes for block in plan)
    payload_bytes = sum(row.payload_bytes for row in stored.values())
    if entries != last_entry_id + 1:
        found.append(f"entries: expected {last_entry_id + 1}, found {entries}")
    if payload_bytes != planned:
        found.append(f"payload bytes: expected {planned}, found {payload_bytes}")
    return found


def second_read_parts(blocks: Sequence[BlockPlan], how_many: str) -> frozenset[int]:
    """Part numbers to read from another replica, too: none, every tenth and the last, or all.

    Raises:
        SettingsError: verify.second_replica is none of off, sample and all.
    """
    if how_many not in ("off", "sample", "all"):
        raise SettingsError(f"verify.second_replica is {how_many!r}, expected off, sample or all")
    last = blocks[-1].part_number
    return frozenset(
        b.part_number
        for b in blocks
        if how_many == "all"
        or (how_many == "sample" and (b.part_number % SAMPLED_EVERY == 1 or b.part_number == last))
    )


def second_read_differences(
    copied: Mapping[int, BlockRow], again: Mapping[int, BlockRow]
) -> list[str]:
    """Blocks whose entries another replica serves otherwise than the copy's did."""
    found = []
    for part, row in sorted(again.items()):
        first = copied.get(part)
        facts = None if first is None else (first.entries, first.payload_bytes)
        if (
            first is None
            or facts != (row.entries, row.payload_bytes)
            or (first.entries_sha256 != row.entries_sha256)
        ):
            digest = None if first is None else first.entries_sha256
            found.append(
                f"block {part}: replicas differ: copied {facts} {digest}, another replica serves "
                f"{(row.entries, row.payload_bytes)} {row.entries_sha256}"
            )
    return found
