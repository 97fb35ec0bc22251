"""Which bookies hold entry e of a ledger.

Owns: replica w of entry e is at position (e + w) mod E of the ensemble in force, with the absolute
entry id (BookKeeper `RoundRobinDistributionSchedule`). A segment ends where the next one begins and
the last one at the ledger's last entry; an ensemble change at the very end leaves an empty one.
"""

from __future__ import annotations

from bisect import bisect_right

from tiering_assets.resources.bookkeeper.ledger import EnsembleFragment, LedgerMetadata
from tiering_assets.resources.errors import IntegrityError


def segment_number(metadata: LedgerMetadata, entry_id: int) -> int:
    """Return which segment holds the entry.

    Raises:
        IntegrityError: the metadata has no segment for it, or one without its full ensemble.
    """
    number = bisect_right(metadata.segments, entry_id, key=_first_entry_id) - 1
    if entry_id < 0 or number < 0:
        raise IntegrityError(
            f"ledger {metadata.ledger_id} has no segment for entry {entry_id}; "
            f"{len(metadata.segments)} segments"
        )
    found = len(metadata.segments[number].bookies)
    if found != metadata.ensemble_size or not 0 < metadata.write_quorum <= found:
        raise IntegrityError(
            f"ledger {metadata.ledger_id} segment {number} names {found} bookies; "
            f"ensemble size {metadata.ensemble_size}, write quorum {metadata.write_quorum}"
        )
    return number


def segment_end(metadata: LedgerMetadata, number: int, *, last_entry_id: int) -> int:
    """Return the last entry id of a segment, `last_entry_id` at most; before its first if empty."""
    if number + 1 < len(metadata.segments):
        return min(metadata.segments[number + 1].first_entry_id - 1, last_entry_id)
    return last_entry_id


def write_set(metadata: LedgerMetadata, entry_id: int) -> tuple[str, ...]:
    """Return the bookies that hold the entry, first replica first."""
    bookies = metadata.segments[segment_number(metadata, entry_id)].bookies
    return write_set_of(bookies, write_quorum=metadata.write_quorum, entry_id=entry_id)


def write_set_of(bookies: tuple[str, ...], *, write_quorum: int, entry_id: int) -> tuple[str, ...]:
    """The write set of an entry within one ensemble."""
    return tuple(bookies[(entry_id + w) % len(bookies)] for w in range(write_quorum))


def batch_reads_allowed(metadata: LedgerMetadata) -> bool:
    """Whether one bookie has every entry of a segment, so that a batch from it has no gaps."""
    return metadata.ensemble_size == metadata.write_quorum


def _first_entry_id(segment: EnsembleFragment) -> int:
    return segment.first_entry_id
