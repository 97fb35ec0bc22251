"""Places of a block: close enough to each other, the same however they are noted, and files of
which nothing else is believed.
"""

import random
from dataclasses import replace
from hashlib import sha256
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cached_blocks import MIB, placed
from tiering_assets.lineage.places import (
    BEGINNING,
    STEP,
    FramePlace,
    NotedPlaces,
    Places,
    block_name,
    decode_places,
    encode_places,
    places_of_frames,
)
from tiering_assets.resources.errors import FormatError

GIB = 1024 * MIB
SIZES = st.lists(
    st.one_of(
        st.integers(0, 9),
        st.integers(0, 3 * STEP),
        st.sampled_from((STEP - 12, STEP - 11, 5 * MIB)),
    ),
    min_size=1,
    max_size=60,
)


def ends_of(sizes):
    return [128 + one for one in accumulate(12 + size for size in sizes)]


def block_of(entries, length=64 * MIB, **changes):
    block = placed(b"", part=1, offset=7, length=length, first=5, last=4 + entries, payload_bytes=1)
    return replace(block, **changes)


def noted(ends, length, known=None):
    found = NotedPlaces(length, known)
    for end in ends:
        found.note(end)
    return found.places()


@given(SIZES)
def test_between_two_places_lies_a_step_or_a_single_frame(sizes):
    ends = ends_of(sizes)
    found = noted(ends, 64 * MIB)
    starts = [128, *ends]
    assert found.places[0] == BEGINNING
    assert found.end == FramePlace(len(sizes), ends[-1])
    for one, other in pairwise(found.places):
        assert (one.byte, other.byte) == (starts[one.entry], starts[other.entry])
        assert other.byte - one.byte <= STEP or other.entry == one.entry + 1
    assert len(found.places) <= 2 * (ends[-1] // STEP) + 3


@given(SIZES)
def test_frames_of_a_whole_block_have_the_places_that_are_noted_one_by_one(sizes):
    ends = ends_of(sizes)
    assert places_of_frames(np.array(ends, np.int64), 64 * MIB) == noted(ends, 64 * MIB)


@given(SIZES, st.data())
def test_what_is_noted_in_pieces_has_the_places_of_a_single_walk(sizes, data):
    ends = ends_of(sizes)
    cut = data.draw(st.integers(0, len(ends)))
    first = noted(ends[:cut], 64 * MIB)
    assert noted(ends[cut:], 64 * MIB, first) == noted(ends, 64 * MIB)
    assert (first is None) == (cut == 0)


@given(SIZES)
def test_each_entry_and_each_byte_of_a_frame_lies_in_one_stretch(sizes):
    ends, found = ends_of(sizes), noted(ends_of(sizes), 64 * MIB)
    begin = 128
    for entry, end in enumerate(ends):
        stretch = found.of_entry(entry)
        assert stretch.first.entry <= entry < stretch.end.entry
        assert {found.of_byte(byte) for byte in (begin, end - 1)} == {stretch}
        begin = end
    assert found.of_entry(len(ends)) is None
    assert found.of_byte(ends[-1]) is None
    assert (found.of_entry(-1), found.of_byte(127)) == (None, None)


@pytest.mark.parametrize(
    ("length", "size", "bytes_max"), [(64 * MIB, 1024, 4096), (2 * GIB - 1, 1024, 20_000)]
)
def test_the_file_of_a_block_is_small_whatever_its_size(length, size, bytes_max):
    ends = np.arange(128 + 12 + size, length, 12 + size)
    found = places_of_frames(ends, length)
    assert len(encode_places(found, block_of(len(ends), length))) <= bytes_max
    widest = max(other.byte - one.byte for one, other in pairwise(found.places))
    assert widest <= max(STEP, 2 * MIB if length > 64 * MIB else STEP)


def test_steps_and_large_frames_in_turns_are_the_most_that_a_file_may_have():
    """And a file of ours is never larger than those that are read."""
    length = 2 * GIB - 1
    step = length // 1024
    ends = np.cumsum(np.tile(np.array([12, step], np.int64), 1024)) + 128
    found = places_of_frames(ends, length)
    assert len(found.places) > 2000
    assert len(encode_places(found, block_of(len(ends), length))) < 20_000


SOME = noted(ends_of([1, STEP, 5, STEP // 2, STEP // 2, 9]), 64 * MIB)
BLOCK = block_of(6)
FILE = encode_places(SOME, BLOCK)


def test_a_file_says_what_was_written():
    assert decode_places(FILE, BLOCK) == SOME
    assert len(SOME.places) == 5


def test_no_file_with_a_changed_byte_or_length_is_believed():
    for at in range(len(FILE)):
        for bit in (1, 0x80):
            damaged = bytearray(FILE)
            damaged[at] ^= bit
            with pytest.raises(FormatError):
                decode_places(bytes(damaged), BLOCK)
        with pytest.raises(FormatError):
            decode_places(FILE[:at], BLOCK)
    with pytest.raises(FormatError):
        decode_places(FILE + b"\0", BLOCK)


@given(st.binary(max_size=200))
def test_no_other_bytes_are_believed(data):
    with pytest.raises(FormatError):
        decode_places(data, BLOCK)


@pytest.mark.parametrize(
    "changes",
    [
        {"sha256": "0" * 64},
        {"bucket": "other"},
        {"data_key": "other"},
        {"version_id": "v"},
        {"offset": 8},
        {"length": 64 * MIB - 1},
        {"first_entry_id": 4},
        {"last_entry_id": 11},
    ],
)
def test_a_file_of_another_block_is_not_believed(changes):
    other = replace(BLOCK, **changes)
    assert block_name(other) != block_name(BLOCK)
    with pytest.raises(FormatError, match="of another block"):
        decode_places(FILE, other)
    assert block_name(replace(BLOCK, state="released")) == block_name(BLOCK)


@pytest.mark.parametrize(
    "places",
    [
        (),
        (BEGINNING,),
        (FramePlace(0, 127), FramePlace(1, 200)),
        (BEGINNING, FramePlace(1, 139)),  # no room for a frame
        (BEGINNING, FramePlace(2, 200), FramePlace(2, 300)),
        (BEGINNING, FramePlace(2, 200), FramePlace(1, 300)),
        (BEGINNING, FramePlace(2, 200), FramePlace(3, 150)),
        (BEGINNING, FramePlace(7, 300)),  # of six entries
        (BEGINNING, FramePlace(6, 1001)),  # behind the block
        (BEGINNING, FramePlace(1, 990)),  # no room for the others
    ],
)
def test_places_that_no_block_has_are_not_believed(places):
    block = block_of(6, 1000)
    with pytest.raises(FormatError, match="places: "):
        decode_places(encode_places(Places(places), block), block)
    sound = Places((BEGINNING, FramePlace(1, 140), FramePlace(6, 1000)))
    assert decode_places(encode_places(sound, block), block) == sound


def test_half_a_place_is_not_believed():
    """Even with a digest that fits."""
    body = FILE[:-36]
    with pytest.raises(FormatError, match="no whole number of them"):
        decode_places(body + sha256(body).digest(), BLOCK)


def test_random_blocks_survive_their_file():
    source = random.Random(8)
    for _ in range(50):
        sizes = [source.choice((0, 1, 100, STEP, 3 * STEP)) for _ in range(source.randrange(1, 40))]
        ends = ends_of(sizes)
        block = block_of(len(sizes), ends[-1] + source.choice((0, 1, 500)))
        found = places_of_frames(np.array(ends, np.int64), block.length)
        assert decode_places(encode_places(found, block), block) == found
