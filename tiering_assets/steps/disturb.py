"""Is a topic's next publication due? Facts from its node and our records for tiering/disturbance."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from tiering_assets.records.models import Certificate
from tiering_assets.steps.publish import recorded_publications
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack
from tiering_assets.tiering.disturbance import Pending, sealed_by_us, worth_disturbing


def publication_due(
    stack: Stack, ml_name: str, certificates: Mapping[int, Stored[Certificate]]
) -> bool:
    """True when what waits to be published is worth an unload of the topic now."""
    found = stack.topics.read(ml_name)
    if found is None:
        return True  # publishing tells what happened to the topic
    closed_at = {
        listed.ledger_id: datetime.fromtimestamp(listed.closed_at_ms / 1000, UTC)
        for listed in found[0].ledgers
        if listed.closed_at_ms is not None
    }
    waiting = [
        Pending(
            ledger_id=ledger_id,
            bytes=certificate.record.payload_bytes,
            closed_at=closed_at[ledger_id],
        )
        for ledger_id, certificate in certificates.items()
        if ledger_id in closed_at
    ]
    disturbed = {
        stored.key: stored.record.confirmed_at
        for stored in recorded_publications(stack, ml_name).values()
    }
    settings = stack.settings.publish
    return worth_disturbing(
        waiting,
        ours=sealed_by_us(closed_at, disturbed.values()),
        now=stack.now(),
        last_disturbed_at=max(disturbed.values(), default=None),
        bytes_min=settings.pending_bytes,
        age_max=timedelta(seconds=settings.pending_age_s),
    )
