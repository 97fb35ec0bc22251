"""For each check of segments, a damage to a sound one that no other check should report.

A segment is spelled out field by field as PIP-76 has it, without the encoder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from struct import pack

from tests.support.made_segments import plan_from_entries
from tiering_assets.offload_format.segments.encoder import encode_segment_index, held_ledger_info
from tiering_assets.quality.segment_frame import AssignedLedger, SegmentFacts
from tiering_assets.resources._proto.MLDataFormats_pb2 import ManagedLedgerInfo

LedgerInfo = ManagedLedgerInfo.LedgerInfo
ENTRIES = {(ledger, n): bytes(100) for ledger in (7, 9) for n in range(40)}
SLICES, BLOCKS = plan_from_entries(ENTRIES, [(7, 5, 24), (9, 0, 9)], block_bytes_max=1000)
DATA_BYTES = BLOCKS[-1].offset + BLOCKS[-1].block_length


@dataclass
class Spelled:
    """All that a segment says; blocks are [first entry, part number, offset], headers [magic,
    header length, block length, first entry, ledger].
    """

    magic: int = 0x3D1FB0BC
    header_length: int = 128
    data_length: int = DATA_BYTES
    data_size: int = DATA_BYTES
    index_size: int = 0  # beyond what it is
    index_length: int = 0
    tail: bytes = b""
    ledgers: list[int] = field(default_factory=lambda: [7, 9])
    infos: list[LedgerInfo] = field(
        default_factory=lambda: [
            LedgerInfo.FromString(held_ledger_info(one, closed_at_ms=None)) for one in SLICES
        ]
    )
    blocks: list[list[list[int]]] = field(
        default_factory=lambda: [
            [[b.first_entry_id, b.part_number, b.offset] for b in BLOCKS if b.ledger_id == ledger]
            for ledger in (7, 9)
        ]
    )
    headers: list[list[int]] = field(
        default_factory=lambda: [
            [0x26A66D32, 128, b.block_length, b.first_entry_id, b.ledger_id] for b in BLOCKS
        ]
    )
    assigned: dict[int, AssignedLedger] = field(
        default_factory=lambda: {
            one.ledger_id: AssignedLedger(
                first_entry_id=one.first_entry_id,
                last_entry_id=one.last_entry_id,
                bytes_before=one.bytes_before,
                bytes_upto=one.bytes_upto,
            )
            for one in SLICES
        }
    )

    def facts(self) -> SegmentFacts:
        groups = b""
        for ledger_id, info, blocks in zip(self.ledgers, self.infos, self.blocks, strict=True):
            written = info.SerializeToString(deterministic=True)
            groups += pack(">qii", ledger_id, len(blocks), len(written)) + written
            groups += b"".join(pack(">qiq", *block) for block in blocks)
        groups += self.tail
        length = 24 + len(groups)
        head = pack(
            ">Iiqq", self.magic, length + self.index_length, self.data_length, self.header_length
        )
        return SegmentFacts(
            number=3,
            index=head + groups,
            index_size=length + self.index_size,
            data_size=self.data_size,
            headers={n: pack(">Iqqqq92x", *one) for n, one in enumerate(self.headers, start=1)},
            assigned=self.assigned,
        )


def encoded() -> bytes:
    """The same index by the encoder."""
    infos = {one.ledger_id: held_ledger_info(one, closed_at_ms=None) for one in SLICES}
    return encode_segment_index(BLOCKS, infos, DATA_BYTES)


def change(**fields: int | bytes) -> Callable[[Spelled], object]:
    def damage(one: Spelled) -> None:
        for name, value in fields.items():
            now = getattr(one, name)
            setattr(one, name, value if isinstance(value, bytes) else now + value)

    return damage


def in_block(of: int, which: int, place: int, by: int) -> Callable[[Spelled], object]:
    def damage(one: Spelled) -> None:
        one.blocks[of][which][place] += by

    return damage


def in_header(part: int, place: int, by: int) -> Callable[[Spelled], object]:
    def damage(one: Spelled) -> None:
        one.headers[part - 1][place] += by

    return damage


def in_info(of: int, name: str, by: int) -> Callable[[Spelled], object]:
    return lambda one: setattr(one.infos[of], name, getattr(one.infos[of], name) + by)


def in_assigned(ledger_id: int, **by: int) -> Callable[[Spelled], object]:
    def damage(one: Spelled) -> None:
        now = one.assigned[ledger_id]
        changed = {name: getattr(now, name) + value for name, value in by.items()}
        one.assigned[ledger_id] = replace(now, **changed)

    return damage


def every(*damages: Callable[[Spelled], object]) -> Callable[[Spelled], object]:
    return lambda one: [damage(one) for damage in damages]


def _renamed(one: Spelled) -> None:
    """Ledger 9 is 6 wherever it is named, and still comes behind ledger 7."""
    one.ledgers[1] = one.infos[1].ledgerId = 6
    one.assigned[6] = one.assigned.pop(9)
    for header in one.headers:
        header[4] = 6 if header[4] == 9 else header[4]


def _one_more(one: Spelled) -> None:
    one.assigned[99] = AssignedLedger(
        first_entry_id=0, last_entry_id=0, bytes_before=0, bytes_upto=0
    )


ROOM = 4 * len(BLOCKS)  # padding
SHORT_BY = BLOCKS[0].block_length - (128 + 12 * BLOCKS[0].entries - 1)
LAST = BLOCKS[-1]
BEYOND = LAST.last_entry_id - LAST.first_entry_id + 1

# fmt: off
DAMAGES: list[tuple[str, Callable[[Spelled], object]]] = [
    ("index_magic", change(magic=1)),
    ("index_length", change(index_length=1)),
    ("index_size", change(index_size=1)),
    ("index_end", change(tail=bytes(7))),
    ("data_header_length", change(header_length=-1)),
    ("data_length", change(data_length=1)),
    ("blocks_end", in_header(len(BLOCKS), 2, -1)),
    ("data_holds_entries", in_assigned(7, bytes_before=-ROOM - 1)),
    ("groups", _one_more),
    ("group_order", _renamed),
    ("start_entry_id", every(in_block(0, 0, 0, 1), in_header(1, 3, 1))),
    ("info_ledger_id", in_info(1, "ledgerId", 1)),
    ("info_entries", in_info(1, "entries", 1)),
    ("info_entries", lambda one: one.infos[0].ClearField("entries")),
    ("info_size", in_info(0, "size", -1)),
    ("part_number", in_block(0, 1, 1, 5)),
    ("first_entry_id_order", every(in_block(0, 1, 0, -7), in_header(2, 3, -7))),
    ("first_entry_id_assigned", every(in_assigned(9, last_entry_id=-BEYOND), in_info(1, "entries", -BEYOND))),
    ("block_offset", in_block(1, 0, 2, 1)),
    ("header_magic", in_header(2, 0, 1)),
    ("header_length", in_header(2, 1, 1)),
    ("header_first_entry_id", in_header(2, 3, 1)),
    ("header_ledger_id", in_header(2, 4, 1)),
    ("block_holds_entries", every(in_header(1, 2, -SHORT_BY), in_block(0, 1, 2, -SHORT_BY), in_header(2, 2, SHORT_BY))),
]
# fmt: on
