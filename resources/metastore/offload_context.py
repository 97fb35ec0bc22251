"""The offload context of a ledger, and the pure edits tierkeeper makes to contexts.

Owns: an edit changes the contexts it names and nothing else, runs twice with the same result, and
refuses (MetadataConflictError, both values named) wherever the list it finds is not the one the
decision was made on: ledger gone, still open, or a context of another attempt. Messages and their
meaning: Pulsar OffloadContext, OffloadUtils.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import (
    FormatError,
    MetadataConflictError,
    RefusedError,
    SettingsError,
)
from tiering_assets.resources.proto_text import require_text

if TYPE_CHECKING:  # ledger_info decodes contexts with this module
    from tiering_assets.resources.metastore.ledger_info import ManagedLedger

# BlobStore drivers: name in the settings -> enum constant, which is what the properties hold.
_DRIVER_CONSTANTS = {
    "aws-s3": "AWS_S3",
    "S3": "S3",
    "google-cloud-storage": "GOOGLE_CLOUD_STORAGE",
    "azureblob": "AZURE_BLOB",
    "aliyun-oss": "ALIYUN_OSS",
    "transient": "TRANSIENT",
}
_LedgerInfo = ml_pb2.ManagedLedgerInfo.LedgerInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadContext:
    """Pulsar's record of one attempt. `timestamp_ms` is when it was completed, 0 before.

    `properties` keep their order; `driver_properties` gives the order that Pulsar writes.
    """

    uid: uuid.UUID
    complete: bool
    timestamp_ms: int = 0
    bookkeeper_deleted: bool = False
    driver_name: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def driver_properties(*, driver: str, bucket: str, region: str, endpoint: str) -> dict[str, str]:
    """Driver metadata in the order in which Pulsar writes it with a complete context.

    Raises:
        SettingsError: no such offload driver keeps its objects in a bucket.
    """
    constant = _DRIVER_CONSTANTS.get(driver)
    if constant is None:
        known = ", ".join(sorted(_DRIVER_CONSTANTS))
        raise SettingsError(f"unknown offload driver {driver!r}: expected one of {known}")
    return {
        "bucket": bucket,
        "managedLedgerOffloadDriver": constant,
        "serviceEndpoint": endpoint,
        "region": region,
    }


def decode_context(info: _LedgerInfo) -> OffloadContext | None:
    """The context of one ledger, None where no attempt is recorded. FormatError as for bytes."""
    if not info.HasField("offloadContext"):
        return None
    message = info.offloadContext
    has_uid = (message.HasField("uidMsb"), message.HasField("uidLsb"))
    if has_uid == (False, False) and not message.complete and not message.bookkeeperDeleted:
        return None
    if has_uid != (True, True):
        raise FormatError(f"ledger {info.ledgerId}: an offload context without a whole uid")
    what = f"ledger {info.ledgerId}: the driver metadata"
    return OffloadContext(
        uid=_uuid_of(message.uidMsb, message.uidLsb),
        complete=message.complete,
        bookkeeper_deleted=message.bookkeeperDeleted,
        timestamp_ms=message.timestamp,
        driver_name=require_text(what, message.driverMetadata.name),
        properties=decode_pairs(what, message.driverMetadata.properties),
    )


def decode_pairs(what: str, pairs: Iterable[ml_pb2.KeyValue]) -> dict[str, str]:
    """KeyValue messages in their order; FormatError if one is not text."""
    return {require_text(what, pair.key): require_text(what, pair.value) for pair in pairs}


def segmented_ledgers(ml: ManagedLedger) -> list[int]:
    """Ledgers whose context lists segments (PIP-76), which another tool wrote."""
    infos = ml.message_copy().ledgerInfo
    return [info.ledgerId for info in infos if info.offloadContext.offloadSegment]


def publish_contexts(
    ml: ManagedLedger,
    contexts: Mapping[int, OffloadContext],
    *,
    replacing: Mapping[int, uuid.UUID] | None = None,
) -> ManagedLedger:
    """Record the given complete contexts, by ledger id.

    A ledger that already has the same attempt complete stays as it is. Another attempt's context
    is replaced, mark and all, only where `replacing` names exactly that attempt.
    """
    broken = replacing or {}
    message = ml.message_copy()
    for ledger_id, context in contexts.items():
        if not context.complete or context.bookkeeper_deleted:
            raise ValueError(f"ledger {ledger_id}: only a complete, fresh context is published")
        info = _sealed_ledger(message, ml, ledger_id)
        found = _found_context(info, ledger_id)
        if found is not None and found.uid == broken.get(ledger_id):
            info.ClearField("offloadContext")
            found = None
        if found is not None and found.uid != context.uid:
            raise _other_attempt(ledger_id, expected=context.uid, found=found.uid)
        if found is None or not found.complete:
            _write_context(info.offloadContext, context)
    return ml.with_message(message)


def mark_bookkeeper_deleted(ml: ManagedLedger, uids: Mapping[int, uuid.UUID]) -> ManagedLedger:
    """Say that the bookie copies of these ledgers go, by ledger id and expected uid.

    A context that is not complete is refused: nothing could serve the ledger any more.
    """
    message = ml.message_copy()
    for ledger_id, uid in uids.items():
        info = _sealed_ledger(message, ml, ledger_id)
        context = _required_context(info, ledger_id, uid)
        if not context.complete:
            raise RefusedError(f"ledger {ledger_id}: context {uid} is not complete, keep the copy")
        info.offloadContext.bookkeeperDeleted = True
    return ml.with_message(message)


def unmark_bookkeeper_deleted(ml: ManagedLedger, uids: Mapping[int, uuid.UUID]) -> ManagedLedger:
    """Take the marks back, by ledger id and expected uid; only while the bookie copy exists."""
    message = ml.message_copy()
    for ledger_id, uid in uids.items():
        info = _sealed_ledger(message, ml, ledger_id)
        _required_context(info, ledger_id, uid)
        info.offloadContext.ClearField("bookkeeperDeleted")
    return ml.with_message(message)


def remove_contexts(ml: ManagedLedger, uids: Mapping[int, uuid.UUID]) -> ManagedLedger:
    """Take contexts out, complete or not, by ledger id and expected uid; absent ones are done.

    Raises:
        RefusedError: the context says the bookie copy is gone, so the object is the only copy.
    """
    message = ml.message_copy()
    for ledger_id, uid in uids.items():
        info = _sealed_ledger(message, ml, ledger_id)
        found = _found_context(info, ledger_id)
        if found is None:
            continue
        context = _required_context(info, ledger_id, uid)
        if context.bookkeeper_deleted:
            raise RefusedError(
                f"ledger {ledger_id}: context {uid} is marked bookkeeperDeleted, and only this "
                "context makes the ledger readable. If the bookie copy still exists, take the mark "
                "away first"
            )
        info.ClearField("offloadContext")
    return ml.with_message(message)


def _sealed_ledger(
    message: ml_pb2.ManagedLedgerInfo, ml: ManagedLedger, ledger_id: int
) -> _LedgerInfo:
    for info in message.ledgerInfo:
        if info.ledgerId != ledger_id:
            continue
        if info.timestamp <= 0:
            raise MetadataConflictError(
                f"ledger {ledger_id}: expected a sealed ledger, the managed ledger lists it as open"
            )
        return info
    listed = [info.ledger_id for info in ml.ledgers]
    span = f"{listed[0]} to {listed[-1]}" if listed else "nothing"
    raise MetadataConflictError(
        f"ledger {ledger_id}: not in the managed ledger's list any more ({span}, "
        f"{len(listed)} ledgers); it was trimmed or the topic was made again"
    )


def _found_context(info: _LedgerInfo, ledger_id: int) -> OffloadContext | None:
    if info.offloadContext.offloadSegment:
        raise RefusedError(f"ledger {ledger_id}: offloaded in segments (PIP-76), not supported")
    return decode_context(info)


def _required_context(info: _LedgerInfo, ledger_id: int, uid: uuid.UUID) -> OffloadContext:
    found = _found_context(info, ledger_id)
    if found is None or found.uid != uid:
        raise _other_attempt(ledger_id, expected=uid, found=None if found is None else found.uid)
    return found


def _other_attempt(
    ledger_id: int, *, expected: uuid.UUID, found: uuid.UUID | None
) -> MetadataConflictError:
    return MetadataConflictError(
        f"ledger {ledger_id}: expected the offload context of attempt {expected}, "
        f"found {'none' if found is None else f'that of {found}'}; decide again"
    )


def _write_context(message: ml_pb2.OffloadContext, context: OffloadContext) -> None:
    msb, lsb = divmod(context.uid.int, 1 << 64)
    message.uidMsb, message.uidLsb = _signed(msb), _signed(lsb)
    message.complete = True
    message.timestamp = context.timestamp_ms
    message.driverMetadata.Clear()
    message.driverMetadata.name = context.driver_name
    for key, value in context.properties.items():
        message.driverMetadata.properties.add(key=key, value=value)


def _uuid_of(msb: int, lsb: int) -> uuid.UUID:
    mask = (1 << 64) - 1
    return uuid.UUID(int=(msb & mask) << 64 | lsb & mask)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
