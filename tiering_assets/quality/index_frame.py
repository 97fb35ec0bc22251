"""Index objects as a frame: what each one says, beside what others say of the same ledger.

Owns the names and meanings of the columns that every expectation suite, ours and users', is written
against. The reader is lenient on purpose: it shares the constants of block.py with the decoder and
nothing else, takes each field where PIP-17 puts it, checks none, and never raises on any bytes. So
the expectations can fail where the decoder has a mistake, and can name what a damaged object says.

A row is one index entry, in index order, ledgers in the order given; every ledger-wide value is
repeated in each of its rows. An index without a readable entry gives one row with `part` 0.
All columns have dtype object and hold Python values, because floats would round 64-bit integers.
None: unreadable, or, in the two `topic_` columns, unknown to the managed ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from google.protobuf.message import DecodeError

from tiering_assets.offload_format.block import (
    FRAME_BYTES,
    HEADER_BYTES,
    INDEX_ENTRY_BYTES,
    INDEX_HEADER_BYTES,
)
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.resources._proto.BookKeeperDataFormats_pb2 import LedgerMetadataFormat

if TYPE_CHECKING:
    import pandas as pd

_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_INDEX_ENTRY: Final = Struct(">qiq")


class IndexRow(NamedTuple):
    """One row of the frame. Lengths, sizes and offsets are bytes."""

    ledger_id: int
    part: int  # position of the entry in the index, from 1; 0 where no entry can be read

    # What the index object says, once for the ledger.
    index_magic: str  # its first four bytes in hex, fewer where there are fewer
    index_length: int | None
    data_length: int | None
    data_header_length: int | None
    entry_count: int | None
    start_entry_id: int | None  # first entry id of its first entry
    metadata_last_entry_id: int | None  # this and the next four: its copy of the ledger metadata
    metadata_length: int | None
    metadata_state: str | None
    metadata_missing: str | None  # required fields it lacks, but for length and state; "" if none
    metadata_has_password: bool | None

    # What was found elsewhere, once for the ledger.
    index_bytes: int  # bytes of the index as read
    index_size: int  # HEAD of the index object
    data_size: int  # HEAD of the data object
    entries_present: int | None  # whole index entries between its metadata and its last byte
    entries_end: int | None  # byte where the last of them ends
    last_entry_id: int  # BookKeeper
    ledger_entries: int  # BookKeeper: last entry id + 1
    ledger_length: int  # BookKeeper: payload bytes, or more
    topic_entries: int | None  # managed ledger
    topic_bytes: int | None  # managed ledger
    blocks_end: int | None  # block lengths of all headers summed
    least_data_size: int | None  # headers, frames and payloads that the data object must hold

    # What the index entry says.
    part_number: int | None = None
    first_entry_id: int | None = None
    offset: int | None = None

    # What its neighbours and the block's own header in the data object say.
    previous_first_entry_id: int | None = None  # of the index entry before; -1 before the first
    expected_offset: int | None = None  # block lengths of the headers before it summed
    header_magic: str | None = None  # first four bytes in hex, fewer where there are fewer
    header_length: int | None = None
    header_block_length: int | None = None
    header_first_entry_id: int | None = None
    least_block_length: int | None = (
        None  # the header and empty frames up to the next first entry id
    )


def read_rows(facts: IndexFacts) -> list[IndexRow]:
    """The rows of one ledger. Never raises on any bytes."""
    raw = facts.index
    metadata_bytes = read_number(_INT32, raw, 28)
    entries = _read_entries(raw, metadata_bytes)
    headers = [bytes(facts.headers.get(part, b"")) for part in range(1, len(entries or ()) + 1)]
    block_lengths = [read_number(_INT64, header, 12) for header in headers]
    ends = running_sums(block_lengths)
    end = None if entries is None or metadata_bytes is None else INDEX_HEADER_BYTES + metadata_bytes
    held = None if entries is None else len(entries)
    metadata = _read_metadata(raw, metadata_bytes)
    ledger_entries = facts.last_entry_id + 1
    ledger = IndexRow(
        ledger_id=facts.ledger_id,
        part=0,
        index_magic=raw[:4].hex(),
        index_length=read_number(_INT32, raw, 4),
        data_length=read_number(_INT64, raw, 8),
        data_header_length=read_number(_INT64, raw, 16),
        entry_count=read_number(_INT32, raw, 24),
        start_entry_id=entries[0][0] if entries else None,
        metadata_last_entry_id=metadata.last_entry_id,
        metadata_length=metadata.length,
        metadata_state=metadata.state,
        metadata_missing=metadata.missing,
        metadata_has_password=metadata.has_password,
        index_bytes=len(raw),
        index_size=facts.index_size,
        data_size=facts.data_size,
        entries_present=held,
        entries_end=None if end is None or held is None else end + INDEX_ENTRY_BYTES * held,
        last_entry_id=facts.last_entry_id,
        ledger_entries=ledger_entries,
        ledger_length=facts.ledger_length,
        topic_entries=facts.topic_entries,
        topic_bytes=facts.topic_bytes,
        blocks_end=ends[-1] if entries else None,
        least_data_size=None
        if not held
        else HEADER_BYTES * held + FRAME_BYTES * ledger_entries + facts.payload_bytes,
    )
    if not entries:
        return [ledger]
    rows = []
    previous = -1
    for at, (first_entry_id, part_number, offset) in enumerate(entries):
        header = headers[at]
        after = entries[at + 1][0] if at + 1 < len(entries) else ledger_entries
        row = ledger._replace(
            part=at + 1,
            part_number=part_number,
            first_entry_id=first_entry_id,
            offset=offset,
            previous_first_entry_id=previous,
            expected_offset=ends[at],
            header_magic=header[:4].hex(),
            header_length=read_number(_INT64, header, 4),
            header_block_length=block_lengths[at],
            header_first_entry_id=read_number(_INT64, header, 20),
            least_block_length=HEADER_BYTES + FRAME_BYTES * (after - first_entry_id),
        )
        rows.append(row)
        previous = first_entry_id
    return rows


def index_frame(facts: Sequence[IndexFacts]) -> pd.DataFrame:
    """The frame of a batch of ledgers; see the module for rows and order, IndexRow for columns."""
    import pandas as pd

    rows = [row for one in facts for row in read_rows(one)]
    return pd.DataFrame(rows, columns=list(IndexRow._fields), dtype=object)


def read_number(field: Struct, raw: bytes, at: int) -> int | None:
    """The number at a place, None where the bytes end before it does."""
    if at + field.size > len(raw):
        return None
    value: int = field.unpack_from(raw, at)[0]
    return value


def _read_entries(raw: bytes, metadata_bytes: int | None) -> list[tuple[int, int, int]] | None:
    """Every whole index entry behind the metadata, however many the index claims to have."""
    if metadata_bytes is None or not 0 <= metadata_bytes <= len(raw) - INDEX_HEADER_BYTES:
        return None
    tail = raw[INDEX_HEADER_BYTES + metadata_bytes :]
    whole = len(tail) - len(tail) % INDEX_ENTRY_BYTES
    return list(_INDEX_ENTRY.iter_unpack(tail[:whole]))


def running_sums(lengths: Sequence[int | None]) -> list[int | None]:
    """Sum of the lengths before each position and, last, of all; None from the first unknown on."""
    sums: list[int | None] = [0]
    for length in lengths:
        before = sums[-1]
        sums.append(None if before is None or length is None else before + length)
    return sums


class _Metadata(NamedTuple):
    last_entry_id: int | None = None
    length: int | None = None
    state: str | None = None
    missing: str | None = None
    has_password: bool | None = None


def _read_metadata(raw: bytes, metadata_bytes: int | None) -> _Metadata:
    """The ledger metadata in the index; every value None where it is no protobuf message."""
    if metadata_bytes is None or metadata_bytes < 0:
        return _Metadata()
    message = LedgerMetadataFormat()
    try:
        message.ParseFromString(raw[INDEX_HEADER_BYTES : INDEX_HEADER_BYTES + metadata_bytes])
    except DecodeError:
        return _Metadata()
    missing = [name for name in ("quorumSize", "ensembleSize") if not message.HasField(name)]
    if not all(segment.HasField("firstEntryId") for segment in message.segment):
        missing.append("segment.firstEntryId")
    return _Metadata(
        last_entry_id=message.lastEntryId if message.HasField("lastEntryId") else None,
        length=message.length if message.HasField("length") else None,
        state=message.State.Name(message.state) if message.HasField("state") else None,
        missing=", ".join(missing),
        has_password=message.HasField("password"),
    )
