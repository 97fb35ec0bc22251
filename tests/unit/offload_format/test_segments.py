"""Segments of any shape come back; an index that says something else is refused."""

from functools import cache
from struct import pack_into

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.golden_segments import decoded_entries
from tests.support.made_segments import data_of, plan_from_entries
from tiering_assets.offload_format.block import HEADER_BYTES, PARTS_MAX
from tiering_assets.offload_format.segments import layout
from tiering_assets.offload_format.segments.block import TAIL_BYTES, SegmentBlock
from tiering_assets.offload_format.segments.decoder import decode_segment_index, walker_of
from tiering_assets.offload_format.segments.encoder import encode_segment_index, held_ledger_info
from tiering_assets.offload_format.segments.layout import LedgerSlice, plan_segment
from tiering_assets.offload_format.walker import BlockWalker
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import FormatError, IntegrityError, RefusedError

sizes_lists = st.lists(st.one_of(st.just(0), st.integers(0, 900)), min_size=1, max_size=60)
ledgers = st.lists(st.tuples(st.integers(0, 300), sizes_lists), min_size=1, max_size=4)


def entries_of(some):
    """Payloads of (first entry, sizes) of each ledger."""
    return {
        (3 * number, first + i): bytes([i % 256]) * size
        for number, (first, sizes) in enumerate(some)
        for i, size in enumerate(sizes)
    }


def planned(some, block_bytes_max=1024):
    """Slices and blocks of these."""
    ranges = [(3 * n, first, first + len(sizes) - 1) for n, (first, sizes) in enumerate(some)]
    return plan_from_entries(entries_of(some), ranges, block_bytes_max=block_bytes_max)


def written(some, block_bytes_max=1024):
    """Entries, data object and index."""
    slices, blocks = planned(some, block_bytes_max)
    entries = entries_of(some)
    data = data_of(blocks, entries)
    infos = {one.ledger_id: held_ledger_info(one, closed_at_ms=7) for one in slices}
    return entries, data, encode_segment_index(blocks, infos, len(data))


SOME = [(0, [10, 900, 5]), (128, [0, 0, 300, 900])]


@cache
def sound():
    """Entries, data object and index of SOME."""
    return written(SOME)


@given(ledgers, st.integers(200, 2000))
def test_a_segment_comes_back_entry_by_entry(some, block_bytes_max):
    entries, data, index = written(some, block_bytes_max)
    assert dict(decoded_entries(index, data)) == entries
    found = decode_segment_index(index)
    assert (found.data_object_length, found.prefix_bytes) == (len(data), 0)
    for ledger, (first, sizes) in zip(found.ledgers, some, strict=True):
        assert ledger.entries == first + len(sizes)
        assert ledger.size == 10 * first + sum(sizes)


@given(ledgers, st.integers(200, 2000))
def test_blocks_are_full_and_end_with_padding(some, block_bytes_max):
    _slices, blocks = planned(some, block_bytes_max)
    sizes = {
        (3 * n, first + i): size for n, (first, of) in enumerate(some) for i, size in enumerate(of)
    }
    assert [block.part_number for block in blocks] == list(range(1, len(blocks) + 1))
    for block in blocks:
        assert block.padding_bytes == TAIL_BYTES
        assert block.block_length <= block_bytes_max or block.entries == 1
        behind = sizes.get((block.ledger_id, block.last_entry_id + 1))
        assert behind is None or block.block_length + 12 + behind > block_bytes_max


@given(st.integers(0), st.integers(1, 255))
def test_a_changed_index_is_refused_or_says_nothing_else_of_blocks(at, by):
    entries, data, index = sound()
    damaged = bytearray(index)
    damaged[at % len(index)] ^= by
    try:
        found = dict(decoded_entries(bytes(damaged), data))
    except FormatError:
        return
    assert found == entries  # of LedgerInfo entries, bytes and time may be others


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_by_name(data):
    with pytest.raises(FormatError, match="expected"):
        decode_segment_index(data)


def test_an_index_that_is_cut_off_is_refused_wherever():
    _entries, _data, index = sound()
    for cut in range(len(index)):
        with pytest.raises(FormatError, match="expected"):
            decode_segment_index(index[:cut])


def group_at(index, number):
    """Where a group begins."""
    at = 24
    for _ in range(number):
        at += (
            16
            + int.from_bytes(index[at + 12 : at + 16])
            + 20 * int.from_bytes(index[at + 8 : at + 12])
        )
    return at


def changed(place, form, value):
    index = bytearray(sound()[2])
    pack_into(form, index, place, value)
    return bytes(index)


def block_at(index, group, number):
    at = group_at(index, group)
    return at + 16 + int.from_bytes(index[at + 12 : at + 16]) + 20 * number


DAMAGE = {
    "segment index at byte 0: expected a streaming": lambda: changed(0, ">I", 0xDE47DE47),
    "segment index magic": lambda: changed(0, ">I", 1),
    "index length": lambda: changed(4, ">i", 1),
    "data object length": lambda: changed(8, ">q", 1),
    "block header length": lambda: changed(16, ">q", 1),
    "ledger id at byte": lambda: changed(group_at(sound()[2], 1), ">q", 0),
    "number of blocks": lambda: changed(group_at(sound()[2], 0) + 8, ">i", 0),
    "length of LedgerInfo": lambda: changed(group_at(sound()[2], 0) + 12, ">i", -1),
    "group of ledger 3 with": lambda: changed(group_at(sound()[2], 1) + 8, ">i", 9),
    "group of a ledger at byte": lambda: changed(4, ">i", len(sound()[2]) + 3) + bytes(3),
    "at least one ledger": lambda: changed(4, ">i", 24)[:24],
    "first block": lambda: changed(block_at(sound()[2], 0, 0) + 12, ">q", 1),
    "part number": lambda: changed(block_at(sound()[2], 1, 0) + 8, ">i", 9),
    "first entry id at byte": lambda: changed(block_at(sound()[2], 0, 1), ">q", 0),
    "offset of part": lambda: changed(block_at(sound()[2], 0, 1) + 12, ">q", 1),
    "LedgerInfo at byte": lambda: changed(group_at(sound()[2], 0) + 16, ">B", 0xFF),
    "ledger id of LedgerInfo": lambda: changed(group_at(sound()[2], 0) + 17, ">B", 1),
    "entries of ledger 0": lambda: changed(group_at(sound()[2], 0) + 19, ">B", 0),
}


@pytest.mark.parametrize("said", DAMAGE)
def test_what_is_wrong_with_an_index_is_said(said):
    with pytest.raises(FormatError, match=said):
        decode_segment_index(DAMAGE[said]())


def renumbered(by):
    """Each block has another part number."""
    index = bytearray(sound()[2])
    for group, count in ((0, 2), (1, 2)):
        for number in range(count):
            at = block_at(index, group, number) + 8
            pack_into(">i", index, at, int.from_bytes(index[at : at + 4]) + by)
    return bytes(index)


def test_parts_are_counted_from_one():
    assert decode_segment_index(renumbered(0)).blocks
    with pytest.raises(FormatError, match=r"first block .* expected an entry, 1, 0 or 4, found"):
        decode_segment_index(renumbered(1))


@pytest.mark.parametrize(("group", "said"), [(0, "first block"), (1, "first entry id at byte")])
def test_no_entry_comes_before_the_first(group, said):
    with pytest.raises(FormatError, match=said):
        decode_segment_index(changed(block_at(sound()[2], group, 0), ">q", -1))


def test_padding_before_the_first_block_is_four_bytes_or_none():
    with pytest.raises(FormatError, match="first block"):
        decode_segment_index(changed(block_at(sound()[2], 0, 0) + 12, ">q", 3))


@pytest.mark.parametrize(
    ("at", "said"),
    [(0, "block magic"), (28, "ledger id"), (36, "reserved bytes"), (127, "reserved")],
)
def test_what_is_wrong_with_a_block_is_said(at, said):
    _entries, data, index = sound()
    damaged = bytearray(data)
    damaged[at] ^= 1
    with pytest.raises(FormatError, match=said):
        dict(decoded_entries(index, bytes(damaged)))


def test_a_block_of_v1_is_refused_by_name_and_the_other_way_round():
    _entries, data, index = sound()
    [first, *_] = decode_segment_index(index).blocks
    v1 = BlockWalker(block_length=first.length, first_entry_id=0)
    with pytest.raises(FormatError, match=r"expected a V1 one, found a streaming \(PIP-76\) one"):
        [*v1.feed(data[: first.length])]
    block = bytearray(data[: first.length])
    pack_into(">I", block, 0, 0xFBDBABCB)
    with pytest.raises(FormatError, match=r"expected a streaming \(PIP-76\) one, found a V1 one"):
        [*walker_of(first).feed(bytes(block))]


def test_of_the_last_block_the_number_of_entries_is_asked_for():
    _entries, data, index = sound()
    *_, last = decode_segment_index(index).blocks
    assert last.last_entry_id is None
    walker = walker_of(last, entries_expected=2)
    with pytest.raises(FormatError, match="expected entries 131 to 132, found 1 of them"):
        [*walker.feed(data[last.offset :])]


def test_ledger_info_says_what_is_here():
    held = LedgerSlice(
        ledger_id=5, first_entry_id=10, last_entry_id=19, bytes_before=100, bytes_upto=250
    )
    found = ml_pb2.ManagedLedgerInfo.LedgerInfo.FromString(
        held_ledger_info(held, closed_at_ms=None)
    )
    assert (found.ledgerId, found.entries, found.size, found.timestamp) == (5, 20, 250, 0)
    assert found.HasField("timestamp")


def test_a_segment_that_cannot_be_is_not_planned(monkeypatch):
    with pytest.raises(IntegrityError, match=r"expected some, ascending, found \[\]"):
        planned([])
    one = {"first_entry_id": 0, "last_entry_id": 0, "bytes_before": 0, "bytes_upto": 5}
    twice = [LedgerSlice(ledger_id=4, **one), LedgerSlice(ledger_id=4, **one)]
    with pytest.raises(IntegrityError, match=r"found \[4, 4\]"):
        plan_segment(twice, block_bytes_max=1024, cumulative_length=lambda *_: 5)
    for impossible in (144, 2**31):
        with pytest.raises(ValueError, match=f"impossible block size {impossible}"):
            planned(SOME, block_bytes_max=impossible)
    with pytest.raises(ValueError, match="impossible entries"):
        LedgerSlice(ledger_id=4, **one | {"first_entry_id": 1})
    less = LedgerSlice(ledger_id=4, **one | {"bytes_before": 6})
    with pytest.raises(IntegrityError, match="up to entry 0: 5, but up to entry -1: 6"):
        plan_segment([less], block_bytes_max=1024, cumulative_length=lambda *_: 5)
    assert PARTS_MAX == 10_000
    monkeypatch.setattr(layout, "PARTS_MAX", 3)
    with pytest.raises(RefusedError, match="ledger 0 has more than 3 blocks of 1024 bytes"):
        planned([(0, [900] * 4)])


def test_an_entry_that_no_block_can_hold_is_not_planned():
    huge = LedgerSlice(
        ledger_id=4, first_entry_id=0, last_entry_id=0, bytes_before=0, bytes_upto=2**31
    )
    with pytest.raises(IntegrityError, match="ledger 4: entries 0 to 0 would hold 2147483648"):
        plan_segment([huge], block_bytes_max=1024, cumulative_length=lambda *_: 2**31)


def test_an_impossible_block_is_none():
    sound = {"ledger_id": 1, "part_number": 1, "first_entry_id": 0, "last_entry_id": 0, "offset": 0}
    assert SegmentBlock(**sound, block_length=145, payload_bytes=5).padding_bytes == 0
    for wrong in (
        {"ledger_id": -1},
        {"part_number": 0},
        {"first_entry_id": 1},
        {"offset": -1},
        {"payload_bytes": -1},
        {"payload_bytes": 6},
    ):
        with pytest.raises(ValueError, match="impossible block"):
            SegmentBlock(**{**sound, "block_length": 145, "payload_bytes": 5} | wrong)


def test_an_index_of_other_blocks_is_not_written():
    slices, blocks = planned(SOME)
    infos = {one.ledger_id: held_ledger_info(one, closed_at_ms=7) for one in slices}
    end = blocks[-1].offset + blocks[-1].block_length
    assert blocks[-1].offset > HEADER_BYTES
    for wrong, said in (
        ([], "expected some, found none"),
        (blocks[1:], "expected"),
        ([blocks[0], *blocks[2:]], "expected"),
        (blocks[:-1], "its data object at"),
    ):
        with pytest.raises(IntegrityError, match=said):
            encode_segment_index(wrong, infos, end)
    with pytest.raises(IntegrityError, match=r"expected \[0, 3\], found \[0\]"):
        encode_segment_index(blocks, {0: infos[0]}, end)
    again = [*blocks, *(b for b in planned(SOME)[1] if b.ledger_id == 0)]
    with pytest.raises(IntegrityError, match="block of ledger 0"):
        encode_segment_index(again, infos, end)
