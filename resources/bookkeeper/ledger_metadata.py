"""Ledger metadata as BookKeeper stores it, and as Pulsar copies it into a V1 index.

Owns: any bytes decode to a LedgerMetadata that placement can trust, or raise FormatError. A stored
value is the line `BookieMetadataFormatVersion<TAB><version>` and a body: version 1 is text lines,
2 the text form of LedgerMetadataFormat, 3 (what BookKeeper writes today) the delimited binary form.
The index holds the bare binary message. Source: BookKeeper LedgerMetadataSerDe; Pulsar
BlobStoreManagedLedgerOffloader's index builder. The ledger password never enters a message or an
index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from tiering_assets.resources._proto.BookKeeperDataFormats_pb2 import LedgerMetadataFormat
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.errors import FormatError, IntegrityError
from tiering_assets.resources.proto_text import require_text

UNKNOWN_LEDGER_ID = -1  # an index does not say which ledger it belongs to
NO_ENTRY = -1

_HEADER = b"BookieMetadataFormatVersion\t"
_LINES, _TEXT, _BINARY = 1, 2, 3
_V1_IN_RECOVERY = -102  # LedgerMetadataSerDe: "last entry id" of a version 1 ledger in recovery
_V1_CLOSED_TAG = "CLOSED"
_INT64_MAX = 2**63 - 1


def decode_ledger_metadata(ledger_id: int, data: bytes) -> LedgerMetadata:
    """Decode the value of a ledger node; header versions 1, 2 and 3.

    Raises:
        FormatError: anything else, also values that parse but contradict themselves.
    """
    what = f"metadata of ledger {ledger_id}"
    version, body = _split_header(what, data)
    if version == _LINES:
        return _decode_lines(what, ledger_id, body)
    message = _parse_text(what, body) if version == _TEXT else _parse_delimited(what, body)
    return _from_message(what, ledger_id, message, format_version=version)


def decode_index_ledger_metadata(data: bytes) -> LedgerMetadata:
    """Decode the bare message of a V1 index; the ledger id is not in it and reads as -1."""
    what = "ledger metadata of an index"
    message = _parse_binary(what, data)
    return _from_message(what, UNKNOWN_LEDGER_ID, message, format_version=_BINARY)


def encode_ledger_metadata(metadata: LedgerMetadata, *, ctoken: int | None = None) -> bytes:
    """Encode as version 3. BookKeeper writes cToken 0 with every update after the creation."""
    message = _to_message(metadata)
    if metadata.password is not None:
        message.password = metadata.password
    if metadata.ctime_ms is not None:
        message.ctime = metadata.ctime_ms
    if ctoken is not None:
        message.cToken = ctoken
    body = message.SerializeToString()
    return _HEADER + b"%d\n" % _BINARY + _encode_varint(len(body)) + body


def index_ledger_metadata(data: bytes, *, ledger_id: int, ctime_ms: int) -> bytes:
    """The ledger metadata that Pulsar puts into a V1 index, from the bytes of the ledger node.

    `ctime_ms` is the creation time of the node itself; it is used where the value carries none,
    which is the usual case. Custom metadata keeps the order of the node: Pulsar copies it.

    Raises:
        FormatError: `data` is not ledger metadata.
        IntegrityError: the ledger is not CLOSED, so its length and last entry are not final.
    """
    metadata = decode_ledger_metadata(ledger_id, data)
    if metadata.state is not BookKeeperState.CLOSED:
        raise IntegrityError(
            f"ledger {ledger_id}: an index needs a CLOSED ledger, found {metadata.state.name}"
        )
    message = _to_message(metadata)
    message.ctime = ctime_ms if metadata.ctime_ms is None else metadata.ctime_ms
    return message.SerializeToString()


def _split_header(what: str, data: bytes) -> tuple[int, bytes]:
    line, newline, body = data.partition(b"\n")
    digits = line.removeprefix(_HEADER)
    if not newline or not line.startswith(_HEADER) or digits not in (b"1", b"2", b"3"):
        raise FormatError(
            f"{what}: expected a first line {_HEADER.decode().strip()} 1, 2 or 3, found {line[:40]!r}"
        )
    return int(digits), body


def _decode_lines(what: str, ledger_id: int, body: bytes) -> LedgerMetadata:
    try:
        lines = [line for line in body.decode().split("\n") if line]
        write_quorum, ensemble_size, length = (int(line) for line in lines[:3])
        rows = [line.split("\t") for line in lines[3:]]
        state, last_entry_id = BookKeeperState.OPEN, NO_ENTRY
        if rows and rows[-1][1:] == [_V1_CLOSED_TAG]:
            last_entry_id = int(rows.pop()[0])
            state = BookKeeperState.CLOSED
            if last_entry_id == _V1_IN_RECOVERY:
                state, last_entry_id = BookKeeperState.IN_RECOVERY, NO_ENTRY
        segments = [EnsembleFragment(int(row[0]), tuple(row[1:])) for row in rows]
    except ValueError as error:  # also UnicodeDecodeError
        raise FormatError(f"{what}: not version 1 lines: {error}") from error
    return _checked(
        what,
        ledger_id=ledger_id,
        state=state,
        last_entry_id=last_entry_id,
        length=length,
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=write_quorum,  # version 1 knows one quorum only
        segments=segments,
        format_version=_LINES,
    )


def _parse_text(what: str, body: bytes) -> LedgerMetadataFormat:
    message = LedgerMetadataFormat()
    try:
        text_format.Parse(body.decode(), message, allow_unknown_field=True)
    except (text_format.ParseError, ValueError, RecursionError) as error:
        raise FormatError(f"{what}: not version 2 text") from error
    if not message.IsInitialized():
        raise FormatError(f"{what}: a required field is missing or unknown")
    return message


def _parse_delimited(what: str, body: bytes) -> LedgerMetadataFormat:
    length = shift = offset = 0
    for byte in body[:5]:
        offset += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise FormatError(f"{what}: no message length after the header")
    if length != len(body) - offset:
        raise FormatError(f"{what}: expected {length} bytes of message, found {len(body) - offset}")
    return _parse_binary(what, body[offset:])


def _parse_binary(what: str, data: bytes) -> LedgerMetadataFormat:
    message = LedgerMetadataFormat()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(f"{what}: not a LedgerMetadataFormat message") from error
    if not message.IsInitialized():
        raise FormatError(f"{what}: a required field is missing or unknown")
    return message


def _from_message(
    what: str, ledger_id: int, message: LedgerMetadataFormat, *, format_version: int
) -> LedgerMetadata:
    state = BookKeeperState(message.state)
    if state is BookKeeperState.CLOSED and not message.HasField("lastEntryId"):
        raise FormatError(f"{what}: CLOSED without lastEntryId")
    named = f"{what}: a bookie id"
    segments = [
        EnsembleFragment(
            item.firstEntryId, tuple(require_text(named, name) for name in item.ensembleMember)
        )
        for item in message.segment
    ]
    key = f"{what}: a custom key"
    custom = {require_text(key, item.key): item.value for item in message.customMetadata}
    has_ack_quorum = message.HasField("ackQuorumSize")
    return _checked(
        what,
        ledger_id=ledger_id,
        state=state,
        last_entry_id=message.lastEntryId if state is BookKeeperState.CLOSED else NO_ENTRY,
        length=message.length,
        ensemble_size=message.ensembleSize,
        write_quorum=message.quorumSize,
        ack_quorum=message.ackQuorumSize if has_ack_quorum else message.quorumSize,
        segments=segments,
        digest_type=DigestType(message.digestType),
        password=message.password if message.HasField("password") else None,
        ctime_ms=message.ctime if message.HasField("ctime") else None,
        custom=custom,
        format_version=format_version,
    )


def _checked(
    what: str,
    *,
    segments: Sequence[EnsembleFragment],
    ensemble_size: int,
    write_quorum: int,
    ack_quorum: int,
    length: int,
    last_entry_id: int,
    **others: Any,
) -> LedgerMetadata:
    """Refuse what would make placement or a length check compute nonsense."""
    if not 0 <= ack_quorum <= write_quorum <= ensemble_size or write_quorum < 1:
        raise FormatError(
            f"{what}: impossible quorums E {ensemble_size} W {write_quorum} A {ack_quorum}"
        )
    if not 0 <= length <= _INT64_MAX or not NO_ENTRY <= last_entry_id <= _INT64_MAX:
        raise FormatError(f"{what}: impossible length {length} or last entry {last_entry_id}")
    ordered = tuple(sorted(segments, key=lambda segment: segment.first_entry_id))
    starts = [segment.first_entry_id for segment in ordered]
    if starts and (starts[0] != 0 or len(set(starts)) != len(starts) or starts[-1] > _INT64_MAX):
        raise FormatError(f"{what}: segments must start at 0 and differ, found {starts[:20]}")
    for segment in ordered:
        if len(segment.bookies) != ensemble_size or not all(segment.bookies):
            raise FormatError(
                f"{what}: segment at {segment.first_entry_id} needs {ensemble_size} bookies, "
                f"found {len(segment.bookies)}"
            )
    return LedgerMetadata(
        segments=ordered,
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        length=length,
        last_entry_id=last_entry_id,
        **others,
    )


def _to_message(metadata: LedgerMetadata) -> LedgerMetadataFormat:
    """Fields 1 to 7, 9 and 11: all but the password, the creation time and the creator token."""
    message = LedgerMetadataFormat(
        quorumSize=metadata.write_quorum,
        ensembleSize=metadata.ensemble_size,
        length=metadata.length,
        lastEntryId=metadata.last_entry_id,
        state=metadata.state.name,
        digestType=metadata.digest_type.name,
        ackQuorumSize=metadata.ack_quorum,
    )
    for segment in metadata.segments:
        message.segment.add(ensembleMember=segment.bookies, firstEntryId=segment.first_entry_id)
    for key, value in metadata.custom.items():
        message.customMetadata.add(key=key, value=value)
    return message


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
