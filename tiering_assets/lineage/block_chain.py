"""Do the blocks of one attempt follow one another, from its first entry and byte to its last?

Owns: parts are counted from 1, entries and bytes from 0, each block begins where the one before it
ends, and the last one ends with the ledger. `chain_findings` finds nothing where that is so, and
something wherever it is not; ODD_SQL says of many attempts which are worth that look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

_PRIME: Final = 2**31 - 1


class Gap(StrEnum):
    """What may be wrong with coverage."""

    GAP = "gap"
    OVERLAP = "overlap"
    SWAP = "swap"
    DUPLICATE = "duplicate"
    SURPLUS = "surplus"
    UNCOVERED = "uncovered"
    UNLISTED = "unlisted"
    UNREADABLE = "unreadable"


class BlockSpan(NamedTuple):
    """A block's place in its attempt, as the catalogue's row has it."""

    part: int
    first_entry_id: int
    last_entry_id: int
    offset: int
    length: int


Told = tuple[Gap, str]


def chain_findings(blocks: Sequence[BlockSpan], entries: int | None) -> list[Told]:
    """What is wrong with the blocks of one attempt; `entries` is how many its ledger has."""
    found = [*_duplicates(blocks)]
    once = sorted({*blocks}, key=lambda one: (one.first_entry_id, one.last_entry_id, one.part))
    found += _impossible(once)
    found += _entry_findings(once, entries)
    found += _part_findings(once)
    found += _byte_findings(once)
    return found


def _duplicates(blocks: Sequence[BlockSpan]) -> Iterator[Told]:
    parts = sorted(one.part for one in blocks)
    for part in sorted({before for before, after in pairwise(parts) if before == after}):
        yield Gap.DUPLICATE, f"part {part} is there {parts.count(part)} times"


def _impossible(blocks: Sequence[BlockSpan]) -> Iterator[Told]:
    for one in blocks:
        if one.last_entry_id < one.first_entry_id or one.length <= 0 or one.offset < 0:
            yield Gap.SURPLUS, f"no block can be as part {one.part} is: {tuple(one)}"


def _entry_findings(blocks: Sequence[BlockSpan], entries: int | None) -> Iterator[Told]:
    end = 0
    for one in blocks:
        if one.first_entry_id > end:
            lost = f"no block has {_entries(end, one.first_entry_id)}"
            yield Gap.GAP, f"the first block is missing: {lost}" if end == 0 else lost
        elif one.first_entry_id < end:
            upto = min(end, one.last_entry_id + 1)
            yield (
                Gap.OVERLAP,
                f"part {one.part} has {_entries(one.first_entry_id, upto)} once more",
            )
        end = max(end, one.last_entry_id + 1)
    if entries is not None and end < entries:
        yield Gap.GAP, f"the last block is missing: no block has {_entries(end, entries)}"
    if entries is not None and end > entries:
        yield Gap.SURPLUS, f"blocks have {_entries(entries, end)}, the ledger has {entries} entries"


def _part_findings(blocks: Sequence[BlockSpan]) -> Iterator[Told]:
    """In the order of entries. A part that lacks with its entries is a gap in those."""
    if blocks and blocks[0].first_entry_id == 0 and blocks[0].part > 1:
        smaller = [one.part for one in blocks if one.part < blocks[0].part]
        if not smaller:
            yield Gap.GAP, f"part {blocks[0].part} has the first entry, part 1 is missing"
    for before, after in pairwise(blocks):
        if after.part < before.part:
            yield Gap.SWAP, f"part {before.part} lies before part {after.part}"
        elif after.part > before.part + 1 and after.first_entry_id == before.last_entry_id + 1:
            between = range(before.part + 1, after.part)
            if not any(one.part in between for one in blocks):
                yield Gap.GAP, f"no part is between parts {before.part} and {after.part}"


def _byte_findings(blocks: Sequence[BlockSpan]) -> Iterator[Told]:
    """Where entries follow, bytes follow, too."""
    if blocks and blocks[0].first_entry_id == 0 and blocks[0].offset != 0:
        yield Gap.GAP, f"bytes 0 to {blocks[0].offset - 1} are of no block"
    for before, after in pairwise(blocks):
        if after.first_entry_id != before.last_entry_id + 1:
            continue
        end = before.offset + before.length
        if after.offset > end:
            yield Gap.GAP, f"bytes {end} to {after.offset - 1} are of no block"
        elif after.offset < end:
            yield (
                Gap.OVERLAP,
                f"part {after.part} begins at byte {after.offset}, before byte {end}",
            )


def _entries(begin: int, end: int) -> str:
    return f"entry {begin}" if end == begin + 1 else f"entries {begin} to {end - 1}"


def _mixed(part: str, entry: str, byte: str) -> str:
    """A number below 2^31 for three of them, which no step of it lets overflow."""
    one = f"((({part}) % {_PRIME} * 48271 + ({entry}) % {_PRIME}) % {_PRIME} * 69621"
    one = f"{one} + ({byte}) % {_PRIME}) % {_PRIME}"
    return f"({one}) * ({one}) % {_PRIME} * ({one}) % {_PRIME}"


_BEGIN: Final = _mixed("part", "first_entry_id", '"offset"')
_END: Final = _mixed("part + 1", "last_entry_id + 1", '"offset" + length')
_CHAIN_BEGIN: Final = _mixed("1", "0", "0")
_CHAIN_END: Final = _mixed("parts + 1", "last_entry_id + 1", "end_byte")
_ENDS: Final = 'max(last_entry_id) as last_entry_id, max(part) as parts, max("offset" + length) as '
_ENDS_AND_SUMS: Final = (
    f"min(topic) as topic, ledger_id, uid, {_ENDS}end_byte, "
    "least(min(last_entry_id - first_entry_id), min(length) - 1) as smallest, "
    f"sum({_BEGIN}) as begins, sum({_END}) as ends"
)
_IS_ODD: Final = f"begins + {_CHAIN_END} <> ends + {_CHAIN_BEGIN} or smallest < 0"
ODD_SQL: Final = (
    f"select topic, ledger_id, uid, last_entry_id, {_IS_ODD} as odd "  # noqa: S608 - no input
    f"from (select {_ENDS_AND_SUMS} from blocks where {{where}} group by ledger_id, uid)"
)
"""SQL: a row for each attempt of a ledger, and whether its blocks do not follow.

A block leads from where it begins to where it ends: part, entry and byte, mixed into one number.
If blocks follow, each end is the beginning of the next, and the sums of both are the same but for
the first beginning and the last end. The other way round: sums that agree are of one way from the
first beginning to the end, for parts only count up. Other blocks agree once in two billion times.
Sums need no order, so ten million rows take seconds and little memory; a window took 3 GB.
"""
