"""How many messages entries hold, and when they were published, one sort of entry at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.layouts import plan_layout_from_sizes
from tests.support.pulsar_entries import (
    CHUNK_ID,
    CHUNKS,
    MARKER_TYPE,
    MESSAGES_IN_BATCH,
    PRODUCER_NAME,
    PUBLISH_TIME,
    SEQUENCE_ID,
    encoded,
    entry,
    message,
)
from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.offload_format.message_facts import MessageCount, MessageFacts
from tiering_assets.resources.native.core import Core, Walked
from tiering_assets.resources.native.loader import this_loop

NOTHING = (None, None, None)
CURSOR = b"\x08\x2a\x10\x07\x1a\x04\x08\x2a\x10\x02"  # a PositionInfo in a cursor's ledger
TIME = 1_795_247_080_670


def by_python(*entries):
    count = MessageCount()
    for one in entries:
        count.add(memoryview(one))
    found = count.facts()
    return found.messages, found.publish_min_ms, found.publish_max_ms


def by_the_library(*entries):
    core = this_loop().core
    assert isinstance(core, Core)
    [plan] = plan_layout_from_sizes([len(one) for one in entries], block_bytes_max=1 << 20)
    encoder = BlockEncoder(plan.block_length)
    encoder.begin(plan)
    encoder.add_many(0, list(entries))
    walked = core.walk(
        memoryview(bytearray(encoder.finish())), first_entry_id=0, count=len(entries)
    )
    assert isinstance(walked, Walked)
    return tuple(walked[1:])


both = pytest.mark.parametrize("facts_of", [by_python, by_the_library])


def chunk(number, of, published=TIME):
    return message(published, (CHUNKS, of), (CHUNK_ID, number))


@both
@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([message(TIME)], (1, TIME, TIME)),
        ([message(7), message(5), message(6)], (3, 5, 7)),
        ([message(0), message(2**63 - 1)], (2, 0, 2**63 - 1)),
        ([message(5, checksum=False)], (1, 5, 5)),
        ([message(5, broker=b"\x08\x01\x10\x02")], (1, 5, 5)),
        ([message(5, broker=b"", checksum=False)], (1, 5, 5)),
        ([message(5, payload=b"")], (1, 5, 5)),
        ([message(5, (MESSAGES_IN_BATCH, 300)), message(9)], (301, 5, 9)),
        ([message(5, (MESSAGES_IN_BATCH, 1))], (1, 5, 5)),
        ([message(5, (MESSAGES_IN_BATCH, 0))], (0, 5, 5)),
        ([message(5, (MESSAGES_IN_BATCH, 3), (MESSAGES_IN_BATCH, 4))], (4, 5, 5)),
        ([message(5, (MESSAGES_IN_BATCH, 3), (CHUNKS, 2))], (3, 5, 5)),
        ([message(5), message(1, (MARKER_TYPE, 21)), message(7)], (2, 5, 7)),
        ([message(1, (MARKER_TYPE, 0)), message(1, (MARKER_TYPE, -1))], (0, None, None)),
        ([message(9, (MARKER_TYPE, 22), (MESSAGES_IN_BATCH, 5))], (0, None, None)),
        ([chunk(0, 3, 1), chunk(1, 3, 2), chunk(2, 3, 3)], (1, 1, 3)),
        ([chunk(0, 2)], (0, TIME, TIME)),
        ([chunk(0, 1)], (1, TIME, TIME)),
        ([chunk(1, 3), chunk(0, 2), chunk(2, 3), chunk(1, 2)], (2, TIME, TIME)),
    ],
)
def test_an_entry_tells_its_messages_and_their_time(facts_of, entries, expected):
    assert facts_of(*entries) == expected


@both
@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"\x0e",
        b"\x0e\x01",
        b"\x0e\x02\x00\x00",
        bytes(300),
        CURSOR,
        b"a log line of somebody else",
        entry(b""),
        entry(encoded([(PRODUCER_NAME, b"p"), (SEQUENCE_ID, 1)])),
        entry(encoded([(PRODUCER_NAME, b"p"), (PUBLISH_TIME, 1)])),
        entry(encoded([(SEQUENCE_ID, 1), (PUBLISH_TIME, 1)])),
        entry(encoded([(PRODUCER_NAME, b"p"), (SEQUENCE_ID, b"1"), (PUBLISH_TIME, 1)])),
        message(2**63),
        message(5, (MESSAGES_IN_BATCH, -1)),
        message(2**63, (MARKER_TYPE, 21)),
        message(5)[:-2],
    ],
)
def test_one_entry_of_another_sort_leaves_all_three_unknown(facts_of, other):
    assert facts_of(message(5), other, message(7)) == NOTHING
    assert facts_of(other) == NOTHING


@both
@pytest.mark.parametrize("size", [1, 9, 11])
def test_a_varint_without_an_end_is_no_field(facts_of, size):
    metadata = encoded([(PRODUCER_NAME, b"p"), (SEQUENCE_ID, 1), (PUBLISH_TIME, 1)])
    assert facts_of(entry(metadata + b"\x18" + b"\x80" * size, b"\x00" * 9)) == NOTHING


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(data):
    count = MessageCount()
    count.add(data)
    assert isinstance(count.facts(), MessageFacts)


@given(st.binary(max_size=60))
def test_any_metadata_is_the_same_for_both(data):
    required = encoded([(PRODUCER_NAME, b"p"), (SEQUENCE_ID, 1), (PUBLISH_TIME, 1)])
    entries = entry(data), entry(required + data), entry(data + required)
    for one in entries:
        assert by_python(one) == by_the_library(one)
