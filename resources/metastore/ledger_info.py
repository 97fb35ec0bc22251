"""A topic's managed-ledger node: its list of ledgers with their offload contexts.

Owns: what is not understood survives. The view keeps the message it was made from, edits go through
that message, and encoding gives back unknown fields, order and compression form. The list in the
node is unsorted after a broker's own offload, so the view is sorted by id and nothing relies on
"the last one is open". Source: Pulsar MLDataFormats.proto, ManagedLedgerImpl.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from struct import Struct

from google.protobuf.message import DecodeError

from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.envelope import (
    Compression,
    decode_enveloped,
    encode_enveloped,
)
from tiering_assets.resources.metastore.offload_context import (
    OffloadContext,
    decode_context,
    decode_pairs,
)

PlainLedger = tuple[int, int, bytes | None, bool]
"""Its id, entries (0 where absent), the uid of its complete context, and whether it is open."""
_UID = Struct(">qq")


@dataclass(frozen=True, slots=True)
class Position:
    ledger_id: int
    entry_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerInfo:
    """One ledger as the topic lists it. `size` is payload bytes.

    `closed_at_ms` is None while the topic may still write to it; entries and size are then absent.
    The last ledger of a terminated topic stays so although BookKeeper has it CLOSED.
    """

    ledger_id: int
    entries: int | None
    size: int | None
    closed_at_ms: int | None
    offload: OffloadContext | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.closed_at_ms is None

    @property
    def closed_at(self) -> datetime | None:
        """By the clock of the broker that closed it."""
        if self.closed_at_ms is None:
            return None
        return datetime.fromtimestamp(self.closed_at_ms / 1000, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedLedger:
    """One read of a managed-ledger node; `ledgers` ascend by id, whatever the node's order."""

    ledgers: tuple[LedgerInfo, ...]
    terminated_at: Position | None
    properties: Mapping[str, str]
    compression: Compression
    _message: ml_pb2.ManagedLedgerInfo = field(repr=False)

    @property
    def uncompressed_bytes(self) -> int:
        """Size of the message itself, which is what the limits of the metadata store are about."""
        return self._message.ByteSize()

    def ledger(self, ledger_id: int) -> LedgerInfo | None:
        return next((info for info in self.ledgers if info.ledger_id == ledger_id), None)

    def message_copy(self) -> ml_pb2.ManagedLedgerInfo:
        """A copy of the original message for an edit, unknown fields included."""
        copy = ml_pb2.ManagedLedgerInfo()
        copy.CopyFrom(self._message)
        return copy

    def with_message(self, message: ml_pb2.ManagedLedgerInfo) -> ManagedLedger:
        """The view of an edited message, to be written in the form that was found."""
        return _view(message, self.compression)


def decode_managed_ledger(data: bytes) -> ManagedLedger:
    """Decode the node's value; no bytes at all are a new, empty managed ledger.

    Raises:
        FormatError: not a ManagedLedgerInfo, bare or enveloped, or one that contradicts itself.
    """
    message, compression = decode_enveloped(data, _parse)
    return _view(message, compression)


def plain_ledgers(data: bytes) -> list[PlainLedger] | None:
    """Of each ledger what coverage compares, by id: a fifth of the time of the whole decoding.

    None where the whole decoding is needed: it fails, or something in it is unusual.
    """
    try:
        message, _ = decode_enveloped(data, _parse)
    except FormatError:
        return None
    if message.properties:
        return None
    found: list[PlainLedger] = []
    for info in message.ledgerInfo:
        ledger_id, entries, uid = info.ledgerId, info.entries, None
        if min(ledger_id, entries, info.size, info.timestamp) < 0 or info.properties:
            return None
        if info.HasField("offloadContext"):
            context = info.offloadContext
            if not (context.HasField("uidMsb") and context.HasField("uidLsb")):
                return None
            driver = context.driverMetadata
            if context.HasField("driverMetadata") and not _is_text(driver.SerializeToString()):
                return None
            if context.complete:
                uid = _UID.pack(context.uidMsb, context.uidLsb)
        found.append((ledger_id, entries, uid, not info.timestamp))
    found.sort()
    if any(one[0] == other[0] for one, other in pairwise(found)):
        return None
    return found


@lru_cache(maxsize=1000)
def _is_text(driver_metadata: bytes) -> bool:
    """Ledgers of a cluster share a few of these."""
    message = ml_pb2.OffloadDriverMetadata.FromString(driver_metadata)
    pairs = message.properties
    texts = (message.name, *(one.key for one in pairs), *(one.value for one in pairs))
    return all(isinstance(one, str) for one in texts)


def encode_managed_ledger(ml: ManagedLedger) -> bytes:
    """The node's value in the compression form that was read; unedited and bare, the same bytes."""
    return encode_enveloped(ml.message_copy().SerializeToString(), ml.compression)


def _parse(data: bytes) -> ml_pb2.ManagedLedgerInfo:
    message = ml_pb2.ManagedLedgerInfo()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(f"not a ManagedLedgerInfo message ({len(data)} bytes)") from error
    if not message.IsInitialized():
        raise FormatError("managed ledger: a required field is missing")
    return message


def _view(message: ml_pb2.ManagedLedgerInfo, compression: Compression) -> ManagedLedger:
    ledgers = sorted(map(_ledger_info, message.ledgerInfo), key=lambda info: info.ledger_id)
    for earlier, later in pairwise(ledgers):
        if earlier.ledger_id == later.ledger_id:
            raise FormatError(f"managed ledger: ledger {later.ledger_id} is listed twice")
    terminated_at = None
    if message.HasField("terminatedPosition"):
        position = message.terminatedPosition
        terminated_at = Position(position.ledgerId, position.entryId)
    return ManagedLedger(
        ledgers=tuple(ledgers),
        terminated_at=terminated_at,
        properties=decode_pairs("managed ledger: a property", message.properties),
        compression=compression,
        _message=message,
    )


def _ledger_info(message: ml_pb2.ManagedLedgerInfo.LedgerInfo) -> LedgerInfo:
    ledger_id = message.ledgerId
    numbers = (ledger_id, message.entries, message.size, message.timestamp)
    if min(numbers) < 0:
        raise FormatError(f"managed ledger: ledger {ledger_id} has a negative number: {numbers}")
    return LedgerInfo(
        ledger_id=ledger_id,
        entries=message.entries if message.HasField("entries") else None,
        size=message.size if message.HasField("size") else None,
        closed_at_ms=message.timestamp or None,
        offload=decode_context(message),
        properties=decode_pairs(f"ledger {ledger_id}: a property", message.properties),
    )
