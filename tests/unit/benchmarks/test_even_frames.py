"""Taken together or one by one, the messages of a block are the same, and damage is refused."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.content import ContentHash, even_singles, single_payload
from benchmarks.even_frames import FRAMES_MIN, EvenWalker, even_frames
from tests.unit.benchmarks.test_content import METADATA
from tiering_assets.offload_format.walker import BlockWalker
from tiering_assets.resources.errors import FormatError

LONGER = METADATA + b"\x40\x07"


def entry(payload, metadata=METADATA):
    return b"\x0e\x01\xde\xad\xbe\xef" + struct.pack(">I", len(metadata)) + metadata + payload


def block_of(entries, first=7, padding=b""):
    frames = b"".join(struct.pack(">iq", len(e), first + n) + e for n, e in enumerate(entries))
    length = 128 + len(frames) + len(padding)
    header = struct.pack(">Iqqq", 0xFBDBABCB, 128, length, first)
    return header.ljust(128, b"\0") + frames + padding


def read(block, *, even, step=1 << 20, expected=None):
    found = ContentHash()
    feed, pieces = found.feeder(batched=False), []

    def take(rows):
        pieces.append(len(rows))
        return found.add_even(rows)

    of_block = {"block_length": len(block), "first_entry_id": 7, "entries_expected": expected}
    walker = EvenWalker(take, **of_block) if even else BlockWalker(**of_block)
    view = memoryview(block)
    for at in range(0, len(view), step):
        for _id, payload in walker.feed(view[at : at + step]):
            feed(payload)
    walker.finish()
    return found.content(), walker.entries, pieces


RUNS = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(1, 3 * FRAMES_MIN), st.sampled_from([METADATA, LONGER])
    ),
    min_size=1,
    max_size=4,
)


@given(RUNS, st.sampled_from([100, 4096, 1 << 20]), st.booleans(), st.booleans())
def test_runs_of_any_lengths_give_what_the_decoder_gives(runs, step, known, padded):
    entries = [
        entry(bytes([n % 251]) * size, metadata)
        for size, count, metadata in runs
        for n in range(count)
    ]
    block = block_of(entries, padding=b"\xfe\xdc\xde\xad" * 9 if padded else b"")
    expected = len(entries) if known else None
    plain = read(block, even=False, step=step, expected=expected)
    even = read(block, even=True, step=step, expected=expected)
    assert even[:2] == plain[:2]


def test_a_long_run_is_taken_at_once():
    block = block_of([entry(bytes(100))] * 1000)
    assert read(block, even=True)[2] == [1000]


@given(st.data())
def test_damage_is_refused_where_the_decoder_refuses_it(data):
    block = bytearray(block_of([entry(bytes([n] * 9)) for n in range(3 * FRAMES_MIN)]))
    at = data.draw(st.integers(0, len(block) - 1))
    block[at] ^= data.draw(st.integers(1, 255))

    def outcome(even):
        try:
            return read(bytes(block), even=even)[:2]
        except FormatError as error:
            return str(error)

    assert outcome(True) == outcome(False)


@given(st.lists(st.tuples(st.binary(max_size=3), st.booleans()), min_size=1, max_size=6))
def test_entries_taken_together_are_those_taken_one_by_one(messages):
    whole = [entry(p.ljust(3), METADATA) if even else p.ljust(31) for p, even in messages]
    rows = np.frombuffer(b"".join(e[:24].ljust(24) for e in whole), dtype=np.uint8).reshape(-1, 24)
    found = even_singles(rows)
    if found is not None:
        singles = [single_payload(memoryview(row.tobytes())) for row in rows]
        assert found == (len(singles), len(singles[0]), b"".join(singles))
    assert (found is not None) == all(even for _p, even in messages)


@pytest.mark.parametrize("view", [b"", b"\xff" * 5000, struct.pack(">iq", 1, 7) + b"x"])
def test_few_or_none_are_left_to_the_decoder(view):
    assert even_frames(memoryview(view), 7, None) is None


def test_empty_messages_are_taken_too():
    assert read(block_of([entry(b"")] * FRAMES_MIN), even=True)[2] == [FRAMES_MIN]
