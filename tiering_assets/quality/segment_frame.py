"""A segment's index object as a frame: what it says, beside what was assigned and found elsewhere.

Owns the names and meanings of the columns that the suite of segments is written against. The reader
is lenient on purpose, as that of V1 indexes is (index_frame.py): it takes each field where PIP-76
puts it, checks none, and never raises on any bytes.

A row is one block of the index, in its order; what is said once for the object or once for a ledger
is repeated. A segment whose index has no readable block gives one row with `part` 0.
None: unreadable, or of a ledger that was not assigned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from google.protobuf.message import DecodeError

from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES, INDEX_ENTRY_BYTES
from tiering_assets.quality.index_frame import read_number, running_sums
from tiering_assets.resources._proto.MLDataFormats_pb2 import ManagedLedgerInfo

if TYPE_CHECKING:
    import pandas as pd

_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_GROUP: Final = Struct(">qii")
_BLOCK: Final = Struct(">qiq")
_HEAD_BYTES: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedLedger:
    """What of a ledger is in the segment, both ends included; `bytes_upto` counts from its first
    entry.
    """

    first_entry_id: int
    last_entry_id: int
    bytes_before: int
    bytes_upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFacts:
    """A segment. `headers` has the first bytes found at the offset of each part, `assigned` what
    was assigned of each ledger.
    """

    number: int
    index: bytes
    index_size: int
    data_size: int
    headers: Mapping[int, bytes]
    assigned: Mapping[int, AssignedLedger]


class SegmentRow(NamedTuple):
    """One row of the frame. Lengths, sizes and offsets are bytes."""

    ledger_id: int  # number of the segment: what a result of the suite is of
    part: int  # position of the block in the index, from 1; 0 where none can be read

    # What the index object says, and what was found elsewhere, once for the segment.
    index_magic: str
    index_length: int | None
    data_length: int | None
    data_header_length: int | None
    index_bytes: int  # bytes of the index as read
    index_size: int  # HEAD of the index object
    data_size: int  # HEAD of the data object
    groups_end: int  # byte where the last whole group ends
    groups: int  # that can be read
    assigned_groups: int
    blocks_end: int | None  # block lengths of all headers summed
    least_data_size: int  # headers, frames and payloads that the data object must hold

    # What its group says of a ledger, and what was assigned of that.
    group_ledger_id: int | None = None
    ledger_before: int | None = None  # of the group before; -1 before the first
    info_ledger_id: int | None = None
    info_entries: int | None = None
    info_size: int | None = None
    start_entry_id: int | None = None  # first entry id of its first block
    assigned_first: int | None = None
    assigned_last: int | None = None
    assigned_entries: int | None = None  # up to the assigned last entry of the ledger
    assigned_bytes: int | None = None  # payload bytes up to it

    # What the block says, its neighbours, and its header in the data object.
    part_number: int | None = None
    first_entry_id: int | None = None
    offset: int | None = None
    previous_first_entry_id: int | None = None  # of the same ledger; below all before the first
    expected_offset: int | None = None  # block lengths of the headers before it summed
    header_magic: str | None = None
    header_length: int | None = None
    header_block_length: int | None = None
    header_first_entry_id: int | None = None
    header_ledger_id: int | None = None
    least_block_length: int | None = None  # the header and empty frames up to the next first entry


class _Group(NamedTuple):
    ledger_id: int
    info: bytes
    blocks: list[tuple[int, int, int]]  # first entry, part number, offset
    end: int


def read_rows(facts: SegmentFacts) -> list[SegmentRow]:
    """The rows of one segment. Never raises on any bytes."""
    raw = facts.index
    groups = [*_groups(raw)]
    parts = sum(len(group.blocks) for group in groups)
    headers = [bytes(facts.headers.get(part, b"")) for part in range(1, parts + 1)]
    lengths = [read_number(_INT64, header, 12) for header in headers]
    sums = running_sums(lengths)
    entries = [one.last_entry_id - one.first_entry_id + 1 for one in facts.assigned.values()]
    held = [one.bytes_upto - one.bytes_before for one in facts.assigned.values()]
    whole = SegmentRow(
        ledger_id=facts.number,
        part=0,
        index_magic=raw[:4].hex(),
        index_length=read_number(_INT32, raw, 4),
        data_length=read_number(_INT64, raw, 8),
        data_header_length=read_number(_INT64, raw, 16),
        index_bytes=len(raw),
        index_size=facts.index_size,
        data_size=facts.data_size,
        groups_end=groups[-1].end if groups else 0,
        groups=len(groups),
        assigned_groups=len(facts.assigned),
        blocks_end=sums[-1] if parts else None,
        least_data_size=HEADER_BYTES * parts + FRAME_BYTES * sum(entries) + sum(held),
    )
    rows: list[SegmentRow] = []
    before = -1
    for group in groups:
        of_ledger = _of_ledger(whole, group, facts.assigned.get(group.ledger_id), before)
        before = group.ledger_id
        previous: int | None = -1
        for n, (first_entry_id, part_number, offset) in enumerate(group.blocks):
            at = len(rows)
            after = (
                group.blocks[n + 1][0] if n + 1 < len(group.blocks) else of_ledger.assigned_entries
            )
            rows.append(
                of_ledger._replace(
                    part=at + 1,
                    part_number=part_number,
                    first_entry_id=first_entry_id,
                    offset=offset,
                    previous_first_entry_id=previous,
                    expected_offset=sums[at],
                    header_magic=headers[at][:4].hex(),
                    header_length=read_number(_INT64, headers[at], 4),
                    header_block_length=lengths[at],
                    header_first_entry_id=read_number(_INT64, headers[at], 20),
                    header_ledger_id=read_number(_INT64, headers[at], 28),
                    least_block_length=None
                    if after is None
                    else HEADER_BYTES + FRAME_BYTES * (after - first_entry_id),
                )
            )
            previous = first_entry_id
    return rows or [whole]


def segment_frame(facts: SegmentFacts) -> pd.DataFrame:
    """The frame of a segment; see SegmentRow for its columns."""
    import pandas as pd

    return pd.DataFrame(read_rows(facts), columns=list(SegmentRow._fields), dtype=object)


def _of_ledger(
    whole: SegmentRow, group: _Group, assigned: AssignedLedger | None, before: int
) -> SegmentRow:
    message = ManagedLedgerInfo.LedgerInfo()
    try:
        message.ParseFromString(group.info)
    except DecodeError:
        message.Clear()
    row = whole._replace(
        group_ledger_id=group.ledger_id,
        ledger_before=before,
        info_ledger_id=message.ledgerId if message.HasField("ledgerId") else None,
        info_entries=message.entries if message.HasField("entries") else None,
        info_size=message.size if message.HasField("size") else None,
        start_entry_id=group.blocks[0][0] if group.blocks else None,
    )
    if assigned is None:
        return row
    return row._replace(
        assigned_first=assigned.first_entry_id,
        assigned_last=assigned.last_entry_id,
        assigned_entries=assigned.last_entry_id + 1,
        assigned_bytes=assigned.bytes_upto,
    )


def _groups(raw: bytes) -> Iterator[_Group]:
    """Every whole group, up to the first that is none."""
    at = _HEAD_BYTES
    while at + _GROUP.size <= len(raw):
        ledger_id, count, info_length = _GROUP.unpack_from(raw, at)
        blocks_at = at + _GROUP.size + info_length
        end = blocks_at + INDEX_ENTRY_BYTES * count
        if count < 1 or info_length < 0 or end > len(raw):
            return
        blocks = [*_BLOCK.iter_unpack(raw[blocks_at:end])]
        yield _Group(ledger_id, raw[at + _GROUP.size : blocks_at], blocks, end)
        at = end
