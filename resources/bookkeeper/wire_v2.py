"""The binary protocol of a bookie (version 2): requests to bytes, replies from bytes, status codes.

Owns: every request carries flags 0. The flags that fence a ledger or add to a fenced one are not
parameters that default to off, they do not exist here; a fenced ledger makes its broker's writes
fail. Layout: BookKeeper `BookieProtocol`, `BookieProtoEncoding` (RequestEnDeCoderPreV3); batch
reads since 4.17 (BP-62). Opcodes 4 to 6 kill the connection on version 2 and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType

from tiering_assets.resources.bookkeeper.digest import Buffer
from tiering_assets.resources.errors import (
    BookieError,
    BookieNotAuthorizedError,
    FormatError,
    LedgerNotOnBookieError,
)

VERSION = 2
ADD_ENTRY = 1
READ_ENTRY = 2
BATCH_READ_ENTRY = 7
MASTER_KEY_BYTES = 20
LAST_ENTRY = -1  # as the entry id of a ReadEntry: the last one this bookie has
COUNT_MAX = 2**31 - 1

EOK = 0
ENOLEDGER = 1
EUA = 102
STATUS_NAMES: Mapping[int, str] = MappingProxyType(
    {
        EOK: "EOK",
        ENOLEDGER: "ENOLEDGER",
        2: "ENOENTRY",
        100: "EBADREQ",
        101: "EIO",
        EUA: "EUA",
        103: "EBADVERSION",
        104: "EFENCED",
        105: "EREADONLY",
        106: "ETOOMANYREQUESTS",
        107: "EUNKNOWNLEDGERSTATE",
    }
)

_READ_FRAME = Struct(">iIqq")  # length, header, ledger, entry
_BATCH_FRAME = Struct(">iIqqqiq")  # length, header, ledger, first, request id, count, bytes
_ADD_FRAME = Struct(f">iI{MASTER_KEY_BYTES}s")  # length, header, master key; then the stored entry
_REPLY = Struct(">Iiqq")  # header, status, ledger, entry
_REQUEST_ID = Struct(">q")
_BATCH_REPLY_BYTES = _REPLY.size + _REQUEST_ID.size
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class ReadEntry:
    ledger_id: int
    entry_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReadEntry:
    """`first_entry_id` and those after it, as many as fit; the first one comes however large."""

    ledger_id: int
    first_entry_id: int
    request_id: int
    max_count: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddEntry:
    """`stored` is the whole stored entry: header, digest, payload."""

    ledger_id: int
    entry_id: int
    master_key: bytes
    stored: bytes

    def __post_init__(self) -> None:
        if len(self.master_key) != MASTER_KEY_BYTES:
            raise ValueError(f"a master key of {len(self.master_key)} bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReply:
    status: int
    ledger_id: int
    entry_id: int
    stored: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReply:
    """`records` is int32 length and stored entry, again and again to its end."""

    status: int
    ledger_id: int
    first_entry_id: int
    request_id: int
    records: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class AddReply:
    status: int
    ledger_id: int
    entry_id: int


Request = ReadEntry | BatchReadEntry | AddEntry
Reply = ReadReply | BatchReply | AddReply


def encode_request(request: Request) -> bytes:
    """Return the frame, its length word included."""
    match request:
        case ReadEntry():
            body_bytes = _READ_FRAME.size - _LENGTH_BYTES
            return _READ_FRAME.pack(
                body_bytes, _header(READ_ENTRY), request.ledger_id, request.entry_id
            )
        case BatchReadEntry():
            return _BATCH_FRAME.pack(
                _BATCH_FRAME.size - _LENGTH_BYTES,
                _header(BATCH_READ_ENTRY),
                request.ledger_id,
                request.first_entry_id,
                request.request_id,
                request.max_count,
                request.max_bytes,
            )
        case AddEntry():
            body_bytes = _ADD_FRAME.size - _LENGTH_BYTES + len(request.stored)
            return (
                _ADD_FRAME.pack(body_bytes, _header(ADD_ENTRY), request.master_key) + request.stored
            )


def decode_reply(frame: Buffer) -> Reply:
    """Decode one frame without its length word; any other outcome is a FormatError."""
    view = memoryview(frame)
    if len(view) < _REPLY.size:
        raise FormatError(f"reply needs {_REPLY.size} bytes, got {len(view)}")
    header, status, ledger_id, entry_id = _REPLY.unpack_from(view)
    opcode = (header >> 16) & 0xFF
    if header != _header(opcode):  # the version is echoed and a reply has no flags
        raise FormatError(f"reply header {header:#010x}; expected version {VERSION} and flags 0")
    if opcode == READ_ENTRY:
        stored = view[_REPLY.size :]
        _require_bare_error(status, stored)
        return ReadReply(status=status, ledger_id=ledger_id, entry_id=entry_id, stored=stored)
    if opcode == BATCH_READ_ENTRY:
        if len(view) < _BATCH_REPLY_BYTES:
            raise FormatError(f"batch reply needs {_BATCH_REPLY_BYTES} bytes, got {len(view)}")
        records = view[_BATCH_REPLY_BYTES:]
        _require_bare_error(status, records)
        return BatchReply(
            status=status,
            ledger_id=ledger_id,
            first_entry_id=entry_id,
            request_id=_REQUEST_ID.unpack_from(view, _REPLY.size)[0],
            records=records,
        )
    if opcode == ADD_ENTRY:
        if len(view) != _REPLY.size:
            raise FormatError(f"add reply of {len(view)} bytes; expected {_REPLY.size}")
        return AddReply(status=status, ledger_id=ledger_id, entry_id=entry_id)
    raise FormatError(f"reply with opcode {opcode}; expected 1, 2 or 7")


def error_for_status(status: int, *, bookie_id: str, request: Request) -> BookieError:
    """Return the error that a status other than EOK stands for."""
    name = STATUS_NAMES.get(status, "an unknown status")
    text = f"bookie {bookie_id} answered {name} ({status}) to {describe(request)}"
    if status == EUA:
        return BookieNotAuthorizedError(text)
    if status == ENOLEDGER:
        return LedgerNotOnBookieError(text)
    return BookieError(text)


def describe(request: Request) -> str:
    """Name a request in a message; keys and payload stay out of it."""
    match request:
        case ReadEntry():
            return f"read of ledger {request.ledger_id} entry {request.entry_id}"
        case BatchReadEntry():
            return f"batch read of ledger {request.ledger_id} from entry {request.first_entry_id}"
        case AddEntry():
            return f"add to ledger {request.ledger_id} of entry {request.entry_id}"


def _header(opcode: int) -> int:
    return VERSION << 24 | opcode << 16


def _require_bare_error(status: int, rest: memoryview) -> None:
    if status != EOK and len(rest) > 0:
        raise FormatError(f"reply with status {status} and {len(rest)} more bytes; expected none")
