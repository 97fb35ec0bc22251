"""The layout of a copy that a broker wrote, read from whatever of it is left."""

import struct
from types import SimpleNamespace
from uuid import UUID

import pytest

from tests.support.copies import BLOCK_BYTES, Copy
from tests.support.fault_lab import framed
from tests.support.layouts import plan_layout_from_sizes
from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.copy.old_layout import OldLayout, find_old_layout
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.offload_format.encoder import encode_index
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys

UID = UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a")
LEDGER = 42
BLOCK = 400
SIZES = [100, 100, 100, 90, 5]  # two full blocks of two entries, and the rest
USUAL = 4096


@pytest.fixture
def stack():
    objects = SimulatedObjectStore()
    settings = SimpleNamespace(offload=SimpleNamespace(block_bytes=USUAL))
    return SimpleNamespace(
        objects=objects, book=RecordBook(objects, "an-instance"), settings=settings
    )


def blocks_of(sizes, block_bytes=BLOCK):
    return plan_layout_from_sizes(sizes, block_bytes_max=block_bytes)


def data_of(blocks, sizes):
    return b"".join(
        framed(
            b.first_entry_id,
            [bytes(sizes[i]) for i in range(b.first_entry_id, b.last_entry_id + 1)],
            b.block_length,
        )
        for b in blocks
    )


def places(blocks):
    return tuple((b.first_entry_id, b.offset) for b in blocks)


def put(stack, *, data=None, index=None):
    if data is not None:
        stack.objects.put(data_key(UID, LEDGER), data)
    if index is not None:
        stack.objects.put(index_key(UID, LEDGER), index)


def test_the_index_tells_the_layout_and_the_block_size(stack):
    blocks = blocks_of(SIZES)
    data = data_of(blocks, SIZES)
    put(stack, data=data, index=encode_index(blocks, b"m", len(data)))
    found = find_old_layout(stack, LEDGER, UID)
    assert found == OldLayout(places(blocks), BLOCK)
    assert found.kept_by(blocks_of(SIZES, found.block_bytes))
    assert not found.kept_by(blocks_of(SIZES, BLOCK + 200))


@pytest.mark.parametrize("index", [None, b"no index at all"])
def test_without_an_index_the_block_headers_do(stack, index):
    blocks = blocks_of(SIZES)
    put(stack, data=data_of(blocks, SIZES), index=index)
    assert find_old_layout(stack, LEDGER, UID) == OldLayout(places(blocks), BLOCK)


def test_a_truncated_copy_keeps_what_could_be_read(stack):
    """A broker stopped before entry 2: an index entry for it, but no bytes that the index
    counts.
    """
    sizes = [100, 100, 1000, 5]
    blocks = blocks_of(sizes)
    truncated = bytearray(encode_index(blocks[:2], b"m", blocks[2].offset))
    struct.pack_into(">q", truncated, 8, BLOCK)  # the data object's length as the broker tells it
    put(stack, data=bytes(2 * BLOCK), index=bytes(truncated))
    found = find_old_layout(stack, LEDGER, UID)
    assert found.places == ((0, 0),)
    assert found.kept_by(blocks_of(sizes, BLOCK))


def test_a_copy_of_which_no_entry_could_be_read_has_no_offsets_to_keep(stack):
    blocks = blocks_of([1000, 5])
    truncated = bytearray(encode_index(blocks[:1], b"m", blocks[1].offset))
    struct.pack_into(">q", truncated, 8, 0)
    put(stack, data=bytes(BLOCK), index=bytes(truncated))
    found = find_old_layout(stack, LEDGER, UID)
    assert found == OldLayout((), None)
    assert found.kept_by(blocks)


def test_one_block_has_the_usual_size_unless_it_is_larger(stack):
    small = blocks_of([10, 10], USUAL)
    put(stack, data=data_of(small, [10, 10]), index=encode_index(small, b"m", 172))
    assert find_old_layout(stack, LEDGER, UID).block_bytes == USUAL


def test_with_nothing_left_nothing_is_known(stack):
    found = find_old_layout(stack, LEDGER, UID)
    assert found == OldLayout((), None, known=False)
    assert not found.kept_by(blocks_of(SIZES))


def test_one_block_larger_than_usual_is_as_large_as_its_object_without_an_index_too(stack):
    sizes = [5000]
    large = blocks_of(sizes, USUAL)
    data = data_of(large, sizes)
    put(stack, data=data)
    found = find_old_layout(stack, LEDGER, UID)
    assert (found.places, found.block_bytes) == (places(large), len(data))
    assert len(data) > USUAL


@pytest.mark.parametrize("change", [(0, b"none"), (12, bytes(8)), (12, (128).to_bytes(8, "big"))])
def test_headers_are_followed_as_far_as_they_are_headers(stack, change):
    """Another magic, or a block that has no room for an entry."""
    blocks = blocks_of(SIZES)
    data = bytearray(data_of(blocks, SIZES))
    at, broken = change
    data[BLOCK + at : BLOCK + at + len(broken)] = broken
    put(stack, data=bytes(data))
    assert find_old_layout(stack, LEDGER, UID).places == places(blocks)[:1]


@pytest.mark.parametrize("with_attempt", [True, False])
def test_our_own_records_come_first(with_attempt):
    """They know more than what is left of the objects."""
    copy = Copy()
    copy.lose(copy.data_key, copy.index_key)
    if not with_attempt:
        key = keys.attempt(copy.ledger_id, copy.uid)
        copy.scene.world.objects.delete(copy.scene.stack.book.prefix + key)
    found = find_old_layout(copy.scene.stack, copy.ledger_id, copy.uid)
    assert found.places == tuple((i, i * BLOCK_BYTES) for i in range(6))
    assert found.block_bytes == (BLOCK_BYTES if with_attempt else None)
    assert found.known
