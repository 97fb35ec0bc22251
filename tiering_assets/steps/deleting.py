"""Delete what one attempt left in the bucket, and write down that it is done.

Owns: intent, act, done. The intent (an outcome `abandon`, or a sweep intent for what a broker left)
is the caller's and stands already; the record `swept` comes last, so that a run which finds an
intent without it knows that it has to finish. A delete that fails leaves no `swept` record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from resources.errors import (
    BrokerError,
    ObjectConflictError,
    ObjectStoreError,
    RefusedError,
)
from resources.object_store.deletion import Deleted, delete_object
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.records.sweep_models import Swept
from tiering_assets.steps.confirm import settle_undos
from tiering_assets.steps.crash_points import reach
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.topic_evidence import topic_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """Objects and unfinished uploads of one attempt; `intent` is the digest of its intent record."""

    ledger_id: int
    uid: UUID
    ml_name: str
    objects: Sequence[str]
    uploads: Sequence[str]
    intent: str


def delete_leavings(stack: Stack, going: Going) -> Swept:
    """Delete all of it, and say what that freed. Safe to run again.

    Raises:
        RefusedError: an undo of its topic is unconfirmed, so a broker may still read them.
        ObjectStoreError: something could not be deleted. The rest is; the next run goes on.
    """
    _require_settled(stack, going.ml_name)
    failed: list[str] = []
    freed: list[Deleted] = []
    upload_key = data_key(going.uid, going.ledger_id)
    for upload_id in going.uploads:
        try:
            stack.objects.abort_upload(upload_key, upload_id)
        except ObjectStoreError as error:
            failed.append(str(error))
        else:
            reach("sweep.aborted")
    for key in going.objects:
        try:
            freed.append(delete_object(stack.objects, key))
        except ObjectStoreError as error:
            failed.append(str(error))
        else:
            reach("sweep.deleted")
    if failed:
        raise ObjectStoreError(
            f"ledger {going.ledger_id}: {len(failed)} of "
            f"{len(going.objects) + len(going.uploads)} leavings of attempt {going.uid} stay, the "
            f"next sweep goes on with them: {'; '.join(failed[:3])}"
        )
    return record_swept(
        stack,
        going,
        bytes_freed=sum(one.bytes_freed for one in freed),
        bytes_stay=sum(one.bytes_stay for one in freed),
        why_stay=next((one.why_stay for one in freed if one.why_stay), ""),
    )


def _require_settled(stack: Stack, ml_name: str) -> None:
    """Have the topic's broker forget what was taken back: nobody else may ever come to do it."""
    try:
        wait = settle_undos(stack, ml_name)
    except BrokerError as error:
        raise RefusedError(f"{topic_of(ml_name)}: undo unconfirmed: {error}") from error
    if wait is not None:
        raise RefusedError(f"{topic_of(ml_name)}: {wait}")


def record_swept(
    stack: Stack,
    going: Going,
    *,
    bytes_freed: int | None,
    bytes_stay: int | None,
    why_stay: str = "",
) -> Swept:
    """Write that an attempt's leavings are gone; what came late is added to an earlier record."""
    record = Swept(
        ledger_id=going.ledger_id,
        uid=going.uid,
        ml_name=going.ml_name,
        objects=tuple(going.objects),
        uploads=len(going.uploads),
        bytes_freed=bytes_freed,
        bytes_stay=bytes_stay,
        why_stay=why_stay,
        swept_at=stack.now(),
        writer=stack.writer,
        previous=going.intent,
    )
    found, ours = stack.book.create_or_read(keys.swept(going.ledger_id, going.uid), record)
    if not ours and going.objects:
        try:
            stack.book.replace(found, _sum(found.record, record))
        except ObjectConflictError:
            stack.narrate(f"ledger {going.ledger_id}: another sweep recorded {going.uid} just now")
    reach("sweep.recorded")
    return record


def retry_locked(stack: Stack, stored: Stored[Swept]) -> Swept | None:
    """Try again what a lock kept; the new record if that freed anything."""
    before = stored.record
    again = [delete_object(stack.objects, key) for key in before.objects]
    freed = sum(one.bytes_freed for one in again)
    if not freed:
        return None
    after = replace(
        before,
        bytes_freed=(before.bytes_freed or 0) + freed,
        bytes_stay=sum(one.bytes_stay for one in again),
        why_stay=next((one.why_stay for one in again if one.why_stay), ""),
        swept_at=stack.now(),
        writer=stack.writer,
    )
    stack.book.replace(stored, after)
    return after


def _sum(earlier: Swept, later: Swept) -> Swept:
    return replace(
        later,
        objects=tuple(sorted({*earlier.objects, *later.objects})),
        uploads=earlier.uploads + later.uploads,
        bytes_freed=(earlier.bytes_freed or 0) + (later.bytes_freed or 0),
        bytes_stay=later.bytes_stay,
    )
