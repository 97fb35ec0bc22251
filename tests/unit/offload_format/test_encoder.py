from dataclasses import replace

import pytest

from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.offload_format.block import encode_block_header
from tiering_assets.offload_format.decoder import iter_block_entries
from tiering_assets.offload_format.encoder import BlockEncoder, encode_index
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.errors import IntegrityError

ENTRIES = [b"first", b"", b"third entry"]
PLAN = BlockPlan(
    part_number=1,
    first_entry_id=7,
    last_entry_id=9,
    offset=0,
    block_length=200,
    payload_bytes=16,
)


def begun(plan: BlockPlan = PLAN) -> BlockEncoder:
    encoder = BlockEncoder(256)
    encoder.begin(plan)
    return encoder


def test_entries_in_one_batch_or_one_by_one_give_the_same_bytes():
    one_by_one, batch = begun(), begun()
    for entry_id, payload in enumerate(ENTRIES, start=7):
        one_by_one.add(entry_id, bytearray(payload))
    batch.add_many(7, [memoryview(payload) for payload in ENTRIES])
    block = batch.finish()
    assert block == one_by_one.finish()
    assert [bytes(p) for _, p in iter_block_entries(block, first_entry_id=7)] == ENTRIES
    assert block.readonly


@pytest.mark.parametrize(
    ("first_entry_id", "payloads"),
    [
        (6, [b"first"]),
        (8, [b""]),
        (7, [b"", b"", b"", b"x"]),
        (7, [b"x" * 61]),
        (7, [b"x" * 30] * 3),
    ],
    ids=["before", "gap", "one too many", "too long", "together too long"],
)
def test_entries_that_are_not_the_plans_are_refused_and_leave_no_trace(first_entry_id, payloads):
    encoder = begun()
    with pytest.raises(IntegrityError, match="part 1"):
        encoder.add_many(first_entry_id, payloads)
    encoder.add_many(7, ENTRIES)
    assert bytes(encoder.finish()[128 + 12 : 128 + 17]) == b"first"


def test_the_same_entry_twice_is_refused():
    encoder = begun()
    encoder.add(7, b"first")
    with pytest.raises(IntegrityError, match="expected entries 8 to 9, found 7 to 7"):
        encoder.add(7, b"first")


def test_a_block_with_missing_entries_is_refused():
    encoder = begun()
    encoder.add_many(7, ENTRIES[:2])
    with pytest.raises(IntegrityError, match="up to 9, found up to 8"):
        encoder.finish()


@pytest.mark.parametrize("payload_bytes", [15, 17])
def test_other_payload_bytes_than_planned_are_refused(payload_bytes):
    encoder = begun(replace(PLAN, payload_bytes=payload_bytes))
    encoder.add_many(7, ENTRIES)
    with pytest.raises(IntegrityError, match=f"expected {payload_bytes} payload bytes .* found 16"):
        encoder.finish()


def test_a_grown_block_gets_a_larger_buffer_and_later_ones_reuse_it():
    plans = plan_layout_from_sizes([1000, 3], block_bytes_max=200)
    encoder = BlockEncoder(200)
    for plan, payload in zip(plans, [b"g" * 1000, b"end"], strict=True):
        encoder.begin(plan)
        encoder.add(plan.first_entry_id, payload)
        block = encoder.finish()
        assert len(block) == plan.block_length
        entries = iter_block_entries(block, first_entry_id=plan.first_entry_id)
        assert [bytes(p) for _, p in entries] == [payload]


def test_a_block_begun_again_forgets_what_it_held():
    encoder = begun()
    encoder.add(7, b"wrong")
    encoder.begin(PLAN)
    encoder.add_many(7, ENTRIES)
    assert bytes(encoder.finish()[140:145]) == b"first"


def test_padding_longer_than_the_ready_made_pattern_keeps_its_phase():
    plan = replace(PLAN, block_length=3 * 1024 * 1024 + 5)
    encoder = begun(plan)
    encoder.add_many(7, ENTRIES)
    padding = bytes(encoder.finish()[-plan.padding_bytes :])
    assert padding == (b"\xfe\xdc\xde\xad" * (len(padding) // 4 + 1))[: len(padding)]


@pytest.mark.parametrize("call", [lambda e: e.finish(), lambda e: e.add(0, b"")])
def test_nothing_can_be_done_before_begin_or_after_finish(call):
    with pytest.raises(ValueError, match="no block begun"):
        call(BlockEncoder(256))


@pytest.mark.parametrize("change", [{"part_number": 3}, {"first_entry_id": 3}, {"offset": 0}])
def test_an_index_of_blocks_that_do_not_follow_each_other_is_refused(change):
    first, second, *rest = plan_layout_from_sizes([50] * 5, block_bytes_max=256)
    assert rest
    with pytest.raises(IntegrityError, match=r"expected \(2, 2, 256\)"):
        encode_index([first, replace(second, **change), *rest], b"", 702)


@pytest.mark.parametrize("data_object_length", [701, 703, 0])
def test_an_index_of_another_objects_length_is_refused(data_object_length):
    plans = plan_layout_from_sizes([50] * 5, block_bytes_max=256)
    with pytest.raises(
        IntegrityError, match=f"hold 702 bytes, the data object {data_object_length}"
    ):
        encode_index(plans, b"", data_object_length)


def test_an_index_of_no_blocks_is_refused():
    with pytest.raises(IntegrityError, match="0 blocks"):
        encode_index([], b"", 0)


def test_a_buffer_that_is_given_is_written_to_as_long_as_it_is_large_enough():
    buffer = bytearray(256)
    encoder = BlockEncoder(buffer)
    encoder.begin(PLAN)
    encoder.add_many(7, ENTRIES)
    block = bytes(encoder.finish())
    assert bytes(buffer[: len(block)]) == block
    encoder.begin(replace(PLAN, block_length=300))
    encoder.add_many(7, ENTRIES)
    assert len(encoder.finish()) == 300
    assert len(buffer) == 256


@pytest.mark.parametrize(("length", "first"), [(128, 0), (0, 0), (129, -1)])
def test_a_header_of_no_block_is_not_written(length, first):
    with pytest.raises(ValueError, match=f"impossible block: length {length}, first entry id"):
        encode_block_header(block_length=length, first_entry_id=first)


def test_a_block_of_one_byte_behind_its_header_is_one():
    assert len(encode_block_header(block_length=129, first_entry_id=0)) == 128
