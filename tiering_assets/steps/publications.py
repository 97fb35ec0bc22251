"""The publication records of a topic: the lag of every later release runs from them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Publication
from tiering_assets.steps.quarantine import is_quarantined
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack


def recorded_publications(
    stack: Stack, ml_name: str
) -> dict[tuple[int, UUID], Stored[Publication]]:
    """Confirmed publications of a topic by (ledger, attempt); the first confirmation counts."""
    found: dict[tuple[int, UUID], Stored[Publication]] = {}
    for stored in stack.book.iter_records(Publication, keys.publications_of(ml_name)):
        for ledger in stored.record.ledgers:
            found.setdefault((ledger.ledger_id, ledger.uid), stored)
    return found


def replaced_at(stack: Stack, record: Attempt, contexts: Collection[UUID]) -> datetime | None:
    """When a sound attempt's publication in the place of this quarantined one was recorded.

    By the store's clock; None unless the topic's node (`contexts`) names the sound one now.
    """
    ledger_id, uid = record.ledger.ledger_id, record.uid
    if uid in contexts or not is_quarantined(stack, ledger_id, uid):
        return None
    stored = [
        publication.stored_at
        for (published, other), publication in recorded_publications(stack, record.ml_name).items()
        if published == ledger_id and other != uid and other in contexts
    ]
    return min(stored, default=None)
