"""What a damaged block still gives, against damage made on purpose."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fault_lab import framed
from tiering_assets.offload_format.salvage import (
    BlockSight,
    look_into_block,
    payload_checksum_holds,
    ranges_of,
)

FIRST = 7


def castagnoli(data):
    """CRC32C bit by bit (RFC 3720: reflected 0x1edc6f41)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_checksum_is_castagnoli():
    assert castagnoli(b"123456789") == 0xE3069283


def message(body, *, broker_metadata=b""):
    """A Pulsar payload: its checksum is over all that follows it."""
    head = struct.pack(">HI", 0x0E02, len(broker_metadata)) + broker_metadata
    summed = struct.pack(">HI", 0x0E01, castagnoli(body)) + body
    return (head if broker_metadata else b"") + summed


PAYLOADS = [message(b"a" * 50), message(b"b" * 9, broker_metadata=b"when"), message(b"c" * 70)]
BLOCK = framed(FIRST, PAYLOADS, 1024)


def look(block):
    return look_into_block(block, first_entry_id=FIRST, last_entry_id=FIRST + 2)


def test_a_whole_block_gives_every_entry():
    assert look(BLOCK) == BlockSight((7, 8, 9), (), ())


def test_a_flipped_payload_byte_is_located_to_its_entry():
    at = BLOCK.index(b"b" * 9)
    for bit in range(8):
        block = bytearray(BLOCK)
        block[at] ^= 1 << bit
        assert look(block) == BlockSight((7, 9), (8,), ())


def test_a_damaged_frame_hides_what_comes_behind_it():
    block = bytearray(BLOCK)
    block[BLOCK.index(struct.pack(">q", 8)) - 4] ^= 0x80  # top bit of its length
    sight = look(block)
    assert sight == BlockSight((7,), (), ())
    assert sight.missing(7, 9) == [8, 9]


def test_a_damaged_block_header_hides_nothing():
    assert look(b"\xff" * 128 + BLOCK[128:]) == look(BLOCK)


def test_payloads_without_a_checksum_are_not_judged():
    assert look(framed(FIRST, [b"", b"plain", b"\x0e"], 512)) == BlockSight((), (), (7, 8, 9))


@given(st.binary(max_size=300))
def test_no_bytes_raise(block):
    sight = look(block)
    assert len(sight.missing(7, 9)) + sum(map(len, (sight.sound, sight.wrong, sight.unjudged))) == 3
    assert payload_checksum_holds(block) in (True, False, None)


@given(st.sets(st.integers(0, 60)))
def test_ranges_hold_exactly_the_ids(ids):
    runs = ranges_of(ids)
    assert {i for first, last in runs for i in range(first, last + 1)} == ids
    assert all(a[1] + 1 < b[0] for a, b in pairwise(runs))


@pytest.mark.parametrize("ids", [[], [3, 3, 4]])
def test_ranges_of_few(ids):
    assert ranges_of(ids) == ([(3, 4)] if ids else [])


def test_entries_behind_the_blocks_last_are_not_its_own():
    assert look_into_block(BLOCK, first_entry_id=FIRST, last_entry_id=FIRST) == BlockSight(
        (FIRST,), (), ()
    )


def test_an_entry_that_was_cut_off_is_missing_and_not_judged():
    cut = BLOCK[: BLOCK.index(b"c" * 70) + 69]
    assert look(cut) == BlockSight((7, 8), (), ())


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"short",
        b"ten bytes.",
        struct.pack(">HI", 0x0E03, 0) + message(b"behind what is no metadata of a broker"),
        struct.pack(">HI", 0x0E02, 10**6) + message(b"behind more metadata than there is"),
    ],
)
def test_what_carries_no_checksum_is_not_judged(payload):
    assert payload_checksum_holds(payload) is None
