"""Exactly the entries are named that nobody can read any more, no more and no fewer."""

import struct

import pytest

from tests.support.copies import BLOCK_BYTES, BROKERS, OURS, Copy
from tiering_assets.offload_format.block import HEADER_BYTES
from tiering_assets.records.models import EntryRange
from tiering_assets.verify.entry_loss import lost_entries
from tiering_assets.verify.object_check import look_at_object

ALL = (EntryRange(0, 5),)


@pytest.fixture(params=[OURS, BROKERS])
def copy(request):
    return Copy(request.param)


def lost(copy, *, last_entry_id=5):
    stack = copy.scene.process()
    return lost_entries(stack, look_at_object(stack, copy.data_key), last_entry_id=last_entry_id)


def rot(copy, at, *bytes_):
    copy.excused()
    body = bytearray(copy.body(copy.data_key))
    body[at : at + len(bytes_)] = bytes_
    copy.scene.world.objects.rot(copy.data_key, bytes(body))


def cut(copy, to):
    copy.excused()
    body = copy.body(copy.data_key)
    copy.scene.world.objects.rot(copy.data_key, body[:to])


def test_a_sound_copy_has_lost_nothing(copy):
    assert lost(copy) == ()


@pytest.mark.parametrize("block", [0, 3, 5])
def test_a_certified_digest_tells_which_block_changed(block):
    """No payload has a checksum of its own, so none of that block's can be trusted."""
    copy = Copy(OURS)
    copy.flip(block)
    assert lost(copy) == (EntryRange(block, block),)


def test_without_a_digest_and_a_checksum_nothing_tells_that_a_payload_changed():
    copy = Copy(BROKERS)
    copy.flip(3)
    assert lost(copy) == ()


def test_behind_a_broken_frame_the_rest_of_its_block_is_lost():
    """Of one certified block: what can be reached is not given up for what cannot."""
    copy = Copy(OURS, payloads=[b"a" * 50, b"b" * 50, b"c" * 50])
    rot(copy, HEADER_BYTES + 12 + 50 + 4, 0x7F)  # the id in the second frame
    assert lost(copy, last_entry_id=2) == (EntryRange(1, 2),)


@pytest.mark.parametrize(
    ("to", "first"), [(2 * BLOCK_BYTES, 2), (2 * BLOCK_BYTES + 5, 2), (5 * BLOCK_BYTES - 1, 4)]
)
def test_what_lies_behind_the_end_of_the_object_is_lost(copy, to, first):
    cut(copy, to)
    assert lost(copy) == (EntryRange(first, 5),)


def test_blocks_of_entries_that_the_ledger_does_not_have_are_not_asked_for(copy):
    assert lost(copy, last_entry_id=2) == ()


def test_a_block_before_the_first_byte_is_lost_with_the_one_that_it_should_end():
    copy = Copy(BROKERS)
    copy.excused()
    index = bytearray(copy.body(copy.index_key))
    struct.pack_into(">q", index, len(index) - 8, -400)  # the offset of the last one
    copy.scene.world.objects.overwrite(copy.index_key, bytes(index))
    assert lost(copy) == (EntryRange(4, 5),)


def test_the_version_that_was_looked_at_is_the_one_that_is_read():
    copy = Copy(OURS, versions=True)
    stack = copy.scene.process()
    sight = look_at_object(stack, copy.data_key)
    copy.excused()
    copy.scene.world.objects.put(copy.data_key, b"x" * len(copy.body(copy.data_key)))
    assert lost_entries(stack, sight, last_entry_id=5) == ()


@pytest.mark.parametrize("gone", ["data_key", "index_key"])
def test_without_one_of_both_objects_all_is_lost(copy, gone):
    uid_key = copy.data_key
    copy.lose(getattr(copy, gone))
    stack = copy.scene.process()
    assert lost_entries(stack, look_at_object(stack, uid_key), last_entry_id=5) == ALL
    assert lost_entries(stack, None, last_entry_id=5) == ALL
