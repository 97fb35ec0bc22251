"""Splitting and packing lose no block and double none, whatever the sizes are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.tasks.descriptors import (
    BlockTask,
    LedgerSource,
    TaskKind,
    decode_task,
    encode_task,
)
from tiering_assets.tasks.runner import join_tasks, pack_tasks, split_task


def task_of(ledger_id, lengths):
    source = LedgerSource(
        ledger_id=ledger_id,
        last_entry_id=len(lengths) - 1,
        length=0,
        ensemble_size=1,
        write_quorum=1,
        ack_quorum=1,
        digest_type="CRC32C",
        segments=((0, ("bk0:3181",)),),
        addresses={"bk0:3181": ("127.0.0.1", 3181)},
    )
    blocks, offset = [], 0
    for number, length in enumerate(lengths):
        blocks.append(
            BlockPlan(
                part_number=number + 1,
                first_entry_id=number,
                last_entry_id=number,
                offset=offset,
                block_length=length,
                payload_bytes=0,
            )
        )
        offset += length
    return BlockTask(
        kind=TaskKind.COPY,
        attempt=f"a{ledger_id}",
        source=source,
        data_key=f"k{ledger_id}",
        blocks=tuple(blocks),
        upload_id="u",
    )


lengths = st.lists(st.integers(140, 100_000), min_size=1, max_size=40)
tasks = st.lists(lengths, max_size=12).map(
    lambda many: [task_of(number, one) for number, one in enumerate(many)]
)


@given(lengths, st.integers(1, 400_000))
def test_pieces_are_the_task_in_order_and_within_the_limit(sizes, bytes_max):
    task = task_of(1, sizes)
    pieces = split_task(task, bytes_max=bytes_max)
    assert tuple(block for piece in pieces for block in piece.blocks) == task.blocks
    assert all(piece.blocks for piece in pieces)
    assert all(piece.bytes <= bytes_max or len(piece.blocks) == 1 for piece in pieces)
    for piece, after in pairwise(pieces):
        assert piece.bytes + after.blocks[0].block_length > bytes_max, "a piece ended too early"


@given(tasks, st.integers(1, 400_000), st.integers(1, 5))
def test_joined_pieces_are_the_same_blocks_in_order_and_no_more_than_a_share(
    many, bytes_max, slots
):
    pieces = [piece for task in many for piece in split_task(task, bytes_max=bytes_max)]
    joined = join_tasks(pieces, slots)
    for task in many:
        own = [one for one in joined if one.attempt == task.attempt]
        assert tuple(block for one in own for block in one.blocks) == task.blocks
        assert all(replace(one, blocks=task.blocks) == task for one in own)
    if pieces:
        share = sum(piece.bytes for piece in pieces) / slots
        assert max(one.bytes for one in joined) <= share + max(piece.bytes for piece in pieces)
    assert len(joined) <= len(many) + slots - 1, "one cut a share, and none else"


def test_slots_that_share_three_equal_ledgers_end_together():
    pieces = [p for i in range(3) for p in split_task(task_of(i, [1000] * 8), bytes_max=1000)]
    assert [task.bytes for task in join_tasks(pieces, 2)] == [8000, 4000, 4000, 8000]
    assert [task.bytes for task in join_tasks(pieces[:8], 2)] == [4000, 4000]
    assert len(join_tasks(pieces, 100)) == 24


def test_pieces_of_other_kinds_or_with_a_gap_stay_apart():
    first, second, third = split_task(task_of(1, [1000] * 3), bytes_max=1000)
    other = replace(second, kind=TaskKind.READ_BACK)
    assert join_tasks([first, third], 1) == [first, third]
    assert join_tasks([first, other], 1) == [first, other]
    assert join_tasks([], 2) == []


@given(tasks, st.integers(-1, 20))
def test_every_task_is_in_one_slot(many, slots):
    packed = pack_tasks(many, slots)
    found = Counter(task.attempt for slot in packed for task in slot)
    assert found == Counter(task.attempt for task in many)
    assert len(packed) == max(1, min(slots, len(many)))
    if many:
        assert all(packed), "an empty slot is a Spark task for nothing"


@given(tasks.filter(bool), st.integers(1, 8))
def test_no_slot_has_more_than_its_share_and_one_task(many, slots):
    packed = pack_tasks(many, slots)
    work = [sum(task.bytes for task in slot) for slot in packed]
    assert max(work) <= sum(work) / len(work) + max(task.bytes for task in many)


@given(lengths)
def test_a_descriptor_is_the_same_after_its_journey(sizes):
    task = task_of(3, sizes)
    assert decode_task(encode_task(task)) == task
