"""Delete what one attempt left in the bucket, and write down that it is done.

Owns: intent, act, done. The intent (an outcome `abandon`, or a sweep intent for what a broker left)
is the caller's and stands already; the record `swept` comes last, so that a run which finds an
intent without it knows that it has to finish. A delete that fails leaves no `swept` record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from tiering_assets.change.confirm import settle_undos
from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Dated, Effect
from tiering_assets.ground.stack import Stack, require_fresh
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.records.sweep_models import NamedVersion, Swept
from tiering_assets.resources.errors import (
    BrokerError,
    ObjectConflictError,
    ObjectStoreError,
    RefusedError,
)
from tiering_assets.resources.object_store.deletion import Deleted, delete_object, delete_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """Objects and unfinished uploads of one attempt; `intent` is the digest of its intent record.

    `effect` and `evidence` say on what grounds they go. With `versions` only those go, of any key;
    without, every version that `objects` have.
    """

    ledger_id: int
    uid: UUID
    ml_name: str
    objects: Sequence[str]
    uploads: Sequence[str]
    intent: str
    effect: Effect
    evidence: Dated
    versions: Sequence[NamedVersion] | None = None


def delete_leavings(stack: Stack, going: Going) -> Swept:
    """Delete all of it, and say what that freed. Safe to run again.

    Raises:
        RefusedError: an undo of its topic is unconfirmed, so a broker may still read them.
        ObjectStoreError: something could not be deleted. The rest is; the next run goes on.
        StaleEvidenceError: its grounds are too old; what is left stays, the next run decides anew.
    """
    _require_settled(stack, going.ml_name)
    failed: list[str] = []
    freed: dict[str, Deleted] = {}
    upload_key = data_key(going.uid, going.ledger_id)
    for upload_id in going.uploads:
        _require_fresh(stack, going)
        try:
            stack.objects.abort_upload(upload_key, upload_id)
        except ObjectStoreError as error:
            failed.append(str(error))
        else:
            reach("sweep.aborted", going.ledger_id, topic=going.ml_name, attempt=going.uid)
    allowed = partial(_require_fresh, stack, going)
    for key, version_ids in _targets(going):
        try:
            freed[key] = (
                delete_object(stack.objects, key, allowed=allowed)
                if version_ids is None
                else delete_versions(stack.objects, key, version_ids, allowed=allowed)
            )
        except ObjectStoreError as error:
            failed.append(str(error))
        else:
            reach("sweep.deleted", going.ledger_id, topic=going.ml_name, attempt=going.uid)
    if failed:
        raise ObjectStoreError(
            f"ledger {going.ledger_id}: {len(failed)} of "
            f"{len(going.objects) + len(going.uploads)} leavings of attempt {going.uid} stay, the "
            f"next sweep goes on with them: {'; '.join(failed[:3])}"
        )
    return record_swept(
        stack,
        going,
        bytes_freed=sum(one.bytes_freed for one in freed.values()),
        bytes_stay=sum(one.bytes_stay for one in freed.values()),
        why_stay=next((one.why_stay for one in freed.values() if one.why_stay), ""),
        stay=_staying(freed),
    )


def _targets(going: Going) -> Iterator[tuple[str, list[str] | None]]:
    """Each key, with the versions of it that go; None is all."""
    if going.versions is None:
        yield from ((key, None) for key in going.objects)
        return
    for key in sorted({one.key for one in going.versions}):
        yield key, [one.version_id for one in going.versions if one.key == key]


def _staying(freed: Mapping[str, Deleted]) -> tuple[NamedVersion, ...]:
    return tuple(
        NamedVersion(key, version_id) for key, one in freed.items() for version_id in one.stay
    )


def _require_fresh(stack: Stack, going: Going) -> None:
    what = f"ledger {going.ledger_id}: attempt {going.uid}"
    require_fresh(stack, going.effect, going.evidence, what=what)


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
    stay: tuple[NamedVersion, ...] = (),
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
        stay=stay,
    )
    found, ours = stack.book.create_or_read(keys.swept(going.ledger_id, going.uid), record)
    new = not set(going.objects) <= set(found.record.objects)
    if not ours and (bytes_freed or new):
        try:
            stack.book.replace(found, _sum(found.record, record))
        except ObjectConflictError:
            stack.tell(
                f"ledger {going.ledger_id}: another sweep recorded {going.uid} just now",
                going.ledger_id,
            )
    reach("sweep.recorded", going.ledger_id, topic=going.ml_name, attempt=going.uid)
    return record


def _sum(earlier: Swept, later: Swept) -> Swept:
    return replace(
        later,
        objects=tuple(sorted({*earlier.objects, *later.objects})),
        uploads=earlier.uploads + later.uploads,
        bytes_freed=(earlier.bytes_freed or 0) + (later.bytes_freed or 0),
        bytes_stay=later.bytes_stay,
        stay=later.stay,
    )
