"""Splitting and packing lose no block and double none, whatever the sizes are."""

from __future__ import annotations

from collections import Counter
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
from tiering_assets.tasks.runner import pack_tasks, split_task


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
