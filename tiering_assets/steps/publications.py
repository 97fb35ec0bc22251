"""The publication records of a topic: the lag of every later release runs from them."""

from __future__ import annotations

from uuid import UUID

from tiering_assets.records import keys
from tiering_assets.records.models import Publication
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
