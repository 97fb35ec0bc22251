"""Versions that the store would not delete when their attempt was swept: try again, one by one.

Owns: a retry is decided from scratch, as if nothing had been decided before: metadata may have been
restored and markers taken away since. It deletes versions that were named, never all of a key. What
a release was intended from, or was published, goes by an approved plan alone (expired.py).
"""

from __future__ import annotations

from tiering_assets.clean.deleting import Going, delete_leavings
from tiering_assets.clean.leavings_evidence import decide_after_reading
from tiering_assets.ground.evidence import Effect, Kind
from tiering_assets.ground.reasons import NotNow
from tiering_assets.ground.record_book import narrate_unreadable
from tiering_assets.ground.stack import Stack, asking
from tiering_assets.look.brakes.holds import require_nothing_held
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.records.stored import Stored
from tiering_assets.records.sweep_models import NamedVersion, Swept
from tiering_assets.resources.errors import TierkeeperError


def retry_locked_leavings(stack: Stack) -> list[Swept]:
    """Try each once; returns the records of those that freed something."""
    done: list[Swept] = []
    for stored in stack.book.iter_readable(Swept, "sweeps/", narrate_unreadable(stack)):
        if not stored.record.bytes_stay:
            continue
        try:
            freed = _retry(stack, stored)
        except TierkeeperError as error:
            stack.tell(
                f"ledger {stored.record.ledger_id}: its locked versions stay: {error}",
                stored.record.ledger_id,
            )
            continue
        done += [] if freed is None else [freed]
    return done


def _retry(stack: Stack, stored: Stored[Swept]) -> Swept | None:
    record = stored.record
    attempt = stack.book.read(Attempt, keys.attempt(record.ledger_id, record.uid))
    if attempt is None:
        stack.tell(
            f"ledger {record.ledger_id}: what a broker left of attempt {record.uid} stays locked; "
            f"delete its versions by hand when the lock has run out",
            record.ledger_id,
            attempt=record.uid,
        )
        return None
    held = asking(stack, Kind.HOLDS)
    require_nothing_held(stack, "sweep")
    decision, dated = decide_after_reading(stack, attempt)
    if isinstance(decision, NotNow):
        stack.tell(
            f"ledger {record.ledger_id}: its locked versions stay: {decision!s}", record.ledger_id
        )
        return None
    again = Going(
        ledger_id=record.ledger_id,
        uid=record.uid,
        ml_name=record.ml_name,
        objects=record.objects,
        uploads=(),
        intent=record.previous,
        effect=Effect.SWEEP,
        evidence=dated.and_(held),
        versions=named_versions(stack, record),
    )
    done = delete_leavings(stack, again)
    return done if done.bytes_freed else None


def named_versions(stack: Stack, record: Swept) -> tuple[NamedVersion, ...]:
    """The versions that stayed; a record that does not name them means those hidden behind a
    marker.
    """
    if record.stay:
        return record.stay
    return tuple(
        NamedVersion(key, version.version_id)
        for key in record.objects
        if stack.objects.head(key) is None
        for version in stack.objects.list_versions(key)
        if not version.is_marker and version.version_id is not None
    )
