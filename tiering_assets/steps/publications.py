"""The publication records of a topic: the lag of every later release runs from them.

Owns: which publication counts. A context that was taken out and published again is another
publication: only a record of the very context that stands now, by its timestamp, lets its lag run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from resources.metastore.offload_context import OffloadContext
from tiering_assets.records import keys
from tiering_assets.records.models import Publication, PublishedLedger
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack
from tiering_assets.tiering.lag import counts_for

Pair = tuple[int, UUID]


@dataclass(frozen=True, slots=True)
class Publications:
    """Every confirmed publication of one topic, oldest first."""

    records: Sequence[Stored[Publication]]

    def of(self, ledger_id: int, uid: UUID) -> list[Stored[Publication]]:
        """All confirmations of this attempt, whether or not what they confirmed still stands."""
        return [one for one in self.records if _entry(one, ledger_id, uid) is not None]

    def newest(self, ledger_id: int, uid: UUID) -> Stored[Publication] | None:
        return next(iter(self.of(ledger_id, uid)[::-1]), None)

    def counted(self, ledger_id: int, context: OffloadContext | None) -> Stored[Publication] | None:
        """The first confirmation of the context that stands now; None without one."""
        if context is None or not context.complete:
            return None
        for stored in self.records:
            entry = _entry(stored, ledger_id, context.uid)
            if entry is not None and counts_for(
                context.timestamp_ms, entry.context_ms, confirmed_at=stored.record.confirmed_at
            ):
                return stored
        return None

    def replaced_at(self, ledger_id: int, uid: UUID, contexts: Collection[UUID]) -> datetime | None:
        """When the publication of another attempt, which the topic names now, was recorded.

        By the store's clock; `contexts` are all that the topic's node names.
        """
        stored = [
            newest.stored_at
            for published, other in self.pairs
            if published == ledger_id and other != uid and other in contexts
            if (newest := self.newest(ledger_id, other)) is not None
        ]
        return min(stored, default=None)

    @property
    def pairs(self) -> set[Pair]:
        return {(one.ledger_id, one.uid) for p in self.records for one in p.record.ledgers}


def _entry(stored: Stored[Publication], ledger_id: int, uid: UUID) -> PublishedLedger | None:
    wanted = (ledger_id, uid)
    return next((p for p in stored.record.ledgers if (p.ledger_id, p.uid) == wanted), None)


def recorded_publications(stack: Stack, ml_name: str) -> Publications:
    """Read them all: one listing, and one request each."""
    return Publications([*stack.book.iter_records(Publication, keys.publications_of(ml_name))])
