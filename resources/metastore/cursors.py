"""Durable cursors of a topic: how far each subscription has got.

Owns: what a cursor node says and no more. While a broker runs, the newest position may lie in the
cursor's own ledger (`cursors_ledger_id`); the node's copy is then an older, safe lower bound, and
absent for a cursor never stored. Source: Pulsar ManagedCursorInfo, ManagedCursorImpl.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.envelope import Compression, decode_enveloped
from tiering_assets.resources.metastore.ledger_info import Position


@dataclass(frozen=True, slots=True)
class DeletedRange:
    """Individually acknowledged entries: `lower` exclusive, `upper` inclusive."""

    lower: Position
    upper: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorInfo:
    """`mark_delete` is the last position up to which everything is acknowledged."""

    cursors_ledger_id: int
    mark_delete: Position | None
    individually_deleted: tuple[DeletedRange, ...]
    last_active_ms: int | None
    compression: Compression


def decode_cursor(data: bytes) -> CursorInfo:
    """Decode the value of a cursor node; anything that is not one raises FormatError."""
    message, compression = decode_enveloped(data, _parse)
    mark_delete = None
    has_position = (
        message.HasField("markDeleteLedgerId"),
        message.HasField("markDeleteEntryId"),
    )
    if has_position == (True, True):
        mark_delete = Position(message.markDeleteLedgerId, message.markDeleteEntryId)
    elif has_position != (False, False):
        raise FormatError("cursor: half a mark-delete position")
    return CursorInfo(
        cursors_ledger_id=message.cursorsLedgerId,
        mark_delete=mark_delete,
        individually_deleted=tuple(map(_range, message.individualDeletedMessages)),
        last_active_ms=message.lastActive if message.HasField("lastActive") else None,
        compression=compression,
    )


def _parse(data: bytes) -> ml_pb2.ManagedCursorInfo:
    message = ml_pb2.ManagedCursorInfo()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(f"not a ManagedCursorInfo message ({len(data)} bytes)") from error
    if not message.IsInitialized():
        raise FormatError("cursor: a required field is missing")
    return message


def _range(message: ml_pb2.MessageRange) -> DeletedRange:
    lower, upper = message.lowerEndpoint, message.upperEndpoint
    return DeletedRange(
        Position(lower.ledgerId, lower.entryId), Position(upper.ledgerId, upper.entryId)
    )
