"""Up to which entry a ledger may be read. Pure.

Owns: `of_closed` and `proven_bound` alone make a ReadableTo, so nobody can ask for what is merely
visible: a bookie may have entries above the last confirmed one that never become part of the
ledger. Every bound is one that recovery keeps: of the metadata of a closed ledger, below an
ensemble that a writer could only begin once all before it was acknowledged, the last confirmed
entry that a stored entry carries, or what the ledger's owner says that it has acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from enum import Enum
from typing import Final

from tiering_assets.resources.bookkeeper.ledger import BookKeeperState, LedgerMetadata
from tiering_assets.resources.errors import IntegrityError, RefusedError

NO_ENTRY: Final = -1
_HERE: Final = object()


class BoundBy(Enum):
    """What proves a bound."""

    CLOSED = "closed"
    ENSEMBLE = "newest ensemble"
    LAC = "last add confirmed"
    BROKER = "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableTo:
    """The last entry of a ledger that may be read, NO_ENTRY for none of it."""

    ledger_id: int
    entry_id: int
    by: BoundBy
    made: InitVar[object] = None

    def __post_init__(self, made: object) -> None:
        if made is not _HERE:
            raise TypeError("of_closed and proven_bound alone say how far a ledger may be read")


def of_closed(metadata: LedgerMetadata) -> ReadableTo:
    """All of a closed ledger. RefusedError for another: to find its end would fence it."""
    if metadata.state is not BookKeeperState.CLOSED:
        raise RefusedError(
            f"ledger {metadata.ledger_id} is {metadata.state.name}; only CLOSED ledgers are read, "
            "because finding the end of another one would fence it. Wait until it is closed"
        )
    return ReadableTo(
        ledger_id=metadata.ledger_id,
        entry_id=metadata.last_entry_id,
        by=BoundBy.CLOSED,
        made=_HERE,
    )


def proven_bound(
    metadata: LedgerMetadata,
    *,
    confirmed: Mapping[str, int],
    acknowledged: tuple[int, int] | None = None,
) -> ReadableTo:
    """The highest of what is proven of a ledger that is open or closed.

    Args:
        metadata: as read before anything else. What is newer can only make the bound higher.
        confirmed: by bookie of its newest ensemble the last add confirmed of the last entry there,
            from an entry whose digest was checked.
        acknowledged: ledger and entry that the broker which has the topic loaded calls its last
            confirmed one; of another ledger it says nothing of this.

    Raises:
        RefusedError: the ledger is in recovery: where it ends is being decided.
        IntegrityError: a bookie that is none of the ensemble's was asked, or an entry below none.
    """
    if metadata.state is BookKeeperState.CLOSED:
        return of_closed(metadata)
    if metadata.state is not BookKeeperState.OPEN:
        raise RefusedError(
            f"ledger {metadata.ledger_id} is {metadata.state.name}: its end is being decided. Wait "
            "until it is closed"
        )
    newest = metadata.segments[-1]
    bounds = [(newest.first_entry_id - 1, BoundBy.ENSEMBLE)]
    for bookie_id, entry_id in confirmed.items():
        if bookie_id not in newest.bookies or entry_id < NO_ENTRY:
            raise IntegrityError(
                f"ledger {metadata.ledger_id}: expected an entry that a bookie of {newest.bookies} "
                f"confirms, found {entry_id} of {bookie_id}"
            )
        bounds.append((entry_id, BoundBy.LAC))
    if acknowledged is not None and acknowledged[0] == metadata.ledger_id:
        bounds.append((acknowledged[1], BoundBy.BROKER))
    entry_id, by = max(bounds, key=lambda bound: bound[0])
    return ReadableTo(ledger_id=metadata.ledger_id, entry_id=entry_id, by=by, made=_HERE)
