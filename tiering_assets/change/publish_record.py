"""What is written once a publication is confirmed: its record, and the namespace's canary."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from tiering_assets.change.topic_change import Confirmed
from tiering_assets.ground.effects import reach
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.quarantine import Won
from tiering_assets.look.topic.publications import recorded_publications
from tiering_assets.records import keys
from tiering_assets.records.models import Canary, Certificate, Publication, PublishedLedger
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError, ObjectExistsError


def record_publication(
    stack: Stack, ml_name: str, ours: Mapping[int, Won], confirmed: Confirmed
) -> dict[int, str]:
    """Record the confirmed contexts, by ledger the record's key.

    What another run recorded of the very same contexts is not written again.
    """
    recorded = recorded_publications(stack, ml_name)
    found: dict[int, str] = {}
    for ledger_id in ours:
        before = recorded.counted(ledger_id, confirmed.contexts.get(ledger_id))
        if before is not None:
            found[ledger_id] = before.key
    new = {i: won for i, won in ours.items() if i not in found}
    if new:
        stored = _create(stack, ml_name, new, confirmed)
        found.update(dict.fromkeys(new, stored.key))
        reach("publish.recorded", *new, topic=ml_name)
    return found


def _create(
    stack: Stack, ml_name: str, ours: Mapping[int, Won], confirmed: Confirmed
) -> Stored[Publication]:
    publication = Publication(
        ml_name=ml_name,
        ledgers=tuple(
            PublishedLedger(
                ledger_id=i,
                uid=won.certificate.record.uid,
                certificate_sha256=won.certificate.sha256,
                previous=won.outcome.sha256,
                context_ms=confirmed.contexts[i].timestamp_ms,
            )
            for i, won in sorted(ours.items())
        ),
        node_version=confirmed.edited.version,
        node_czxid=confirmed.edited.czxid,
        confirmed_by=confirmed.by,
        confirmed_at=stack.now(),
        writer=stack.writer,
    )
    number = len(stack.book.keys(keys.publications_of(ml_name))) + 1
    while True:
        try:
            return stack.book.create(keys.publication(ml_name, number), publication)
        except ObjectExistsError:  # another run of the same topic; numbers only order them
            number += 1


def read_canary(stack: Stack, ml_name: str) -> Stored[Canary] | None:
    """What stands for the namespace; one that cannot be read proves nothing, so another goes
    first.
    """
    return stack.book.read_readable(Canary, keys.canary(ml_name), lambda _key, _error: None)


def canary_stands(stack: Stack, ml_name: str, place: str) -> bool:
    """Whether brokers of the namespace have read a ledger from this place not too long ago."""
    found = read_canary(stack, ml_name)
    if found is None or found.record.policy_digest != place:
        return False
    age = stack.objects.server_time() - found.stored_at
    return age <= timedelta(seconds=stack.settings.evidence.canary_age_max_s)


def record_canary(stack: Stack, ml_name: str, place: str, certificate: Certificate) -> None:
    """Say that the namespace's brokers have read this ledger from our objects just now."""
    canary = Canary(
        namespace=keys.namespace_of(ml_name),
        policy_digest=place,
        ledger_id=certificate.ledger.ledger_id,
        uid=certificate.uid,
        proven_at=stack.now(),
        writer=stack.writer,
    )
    try:
        stored, ours = stack.book.create_or_read(keys.canary(ml_name), canary)
    except FormatError:
        stack.book.overwrite_damaged(keys.canary(ml_name), canary)
    else:
        if not ours and not canary_stands(stack, ml_name, place):
            stack.book.replace(stored, canary)
    reach(
        "publish.canary_recorded",
        certificate.ledger.ledger_id,
        topic=ml_name,
        attempt=certificate.uid,
    )
