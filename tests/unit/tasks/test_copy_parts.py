"""Blocks of several ledgers in parts that a store takes, from bookies, closed ledgers and open."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256

import pytest

from tests.support.made_segments import data_of, plan_from_entries
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_ledger import SimBookies, SimLedger
from tiering_assets.resources.bookkeeper.readable import BoundBy
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.settings import BookieSettings, OffloadSettings, Settings
from tiering_assets.stream.segment_copy import parts_of
from tiering_assets.tasks.descriptors import (
    BlockTask,
    OpenEnd,
    TaskKind,
    TaskPart,
    decode_task,
    encode_task,
)
from tiering_assets.tasks.runner import LocalRunner
from tiering_assets.tasks.worker import Worker

SETTINGS = Settings(
    bookies=BookieSettings(
        request_timeout_s=1.5, connect_timeout_s=1.5, batch_bytes_max=1500, password="pw"
    ),
    offload=OffloadSettings(read_range_bytes=1000),
)
LEAST = 2000
PAYLOADS = {7: [bytes([n]) * 90 for n in range(60)], 9: [b"x"] * 3, 11: [b"y" * 400] * 9}


@pytest.fixture
def objects():
    return SimulatedObjectStore(part_bytes_min=LEAST)


@pytest.fixture
def run(objects):
    runner = LocalRunner(SETTINGS, make_worker=lambda: Worker(SETTINGS, store=objects))
    return lambda task: runner.run([decode_task(encode_task(task))])


@pytest.fixture
def segment():
    """Sources of three ledgers, their blocks, and the bytes of the data object."""
    with ExitStack() as stack:
        bookies = SimBookies(stack)
        ledgers = [
            SimLedger.store(bookies, ledger_id, payloads, block_bytes=4096)
            for ledger_id, payloads in PAYLOADS.items()
        ]
        entries = {(i, n): one for i, some in PAYLOADS.items() for n, one in enumerate(some)}
        ranges = [(i, 0, len(some) - 1) for i, some in PAYLOADS.items()]
        _slices, blocks = plan_from_entries(entries, ranges, block_bytes_max=1200)
        yield [one.source for one in ledgers], blocks, data_of(blocks, entries)


def task_of(segment, upload_id, parts, *, first=0):
    sources, _blocks, _data = segment
    blocks = tuple(block for part in parts for block in part)
    used = {block.ledger_id for block in blocks}
    source, *others = [one for one in sources if one.ledger_id in used]
    return BlockTask(
        kind=TaskKind.COPY,
        attempt="attempt",
        source=source,
        others=tuple(others),
        data_key="data",
        blocks=blocks,
        parts=tuple(TaskPart(first + n, len(part)) for n, part in enumerate(parts, start=1)),
        upload_id=upload_id,
        user_metadata={"role": "data"},
    )


def test_parts_hold_whole_blocks_and_are_large_enough_but_the_last(segment):
    _sources, blocks, _data = segment
    parts = parts_of(blocks, least=LEAST)
    assert [block for part in parts for block in part] == [*blocks]
    sizes = [sum(block.block_length for block in part) for part in parts]
    assert min(sizes[:-1]) >= LEAST
    assert max(sizes) < LEAST + max(block.block_length for block in blocks)


def test_a_store_that_refuses_small_parts_takes_the_segment(segment, objects, run):
    _sources, blocks, data = segment
    parts = parts_of(blocks, least=LEAST)
    upload_id = objects.create_upload("data", metadata={})
    half = len(parts) // 2
    rows = run(task_of(segment, upload_id, parts[:half]))
    rows += run(task_of(segment, upload_id, parts[half:], first=half))
    assert [row.error for row in rows if row.error] == []
    objects.complete_upload("data", upload_id, objects.list_parts("data", upload_id))
    assert objects.get("data").body == data
    for row, block in zip(sorted(rows, key=lambda row: row.part_number), blocks, strict=True):
        own = data[block.offset : block.offset + block.block_length]
        assert (row.part_number, row.ledger_id) == (block.part_number, block.ledger_id)
        assert (row.entries, row.sha256) == (block.entries, sha256(own).hexdigest())
        part = parts[row.part - 1]
        start, size = part[0].offset, sum(one.block_length for one in part)
        assert (row.part_bytes, row.part_sha256) == (
            size,
            sha256(data[start : start + size]).hexdigest(),
        )


def test_a_small_segment_is_one_object_put_once(segment, objects, run):
    _sources, blocks, data = segment
    task = task_of(segment, None, [[*blocks]])
    assert [row.error for row in run(task) if row.error] == []
    assert [row.error for row in run(task) if row.error] == []  # a task may run twice
    assert objects.get("data").body == data


def test_its_blocks_are_read_back_with_their_ledger(segment, objects, run):
    _sources, blocks, _data = segment
    copied = run(task_of(segment, None, [[*blocks]]))
    by_part = {row.part_number: row for row in copied}
    for source in segment[0]:
        own = tuple(block for block in blocks if block.ledger_id == source.ledger_id)
        task = replace(
            task_of(segment, None, [own]), kind=TaskKind.READ_BACK, parts=(), source=source
        )
        for row in run(task):
            assert row.error == ""
            copy = by_part[row.part_number]
            assert (row.sha256, row.entries_sha256) == (copy.sha256, copy.entries_sha256)
    other = replace(blocks[0], ledger_id=blocks[0].ledger_id + 1)
    [row] = run(
        replace(
            task_of(segment, None, [[*blocks]]), kind=TaskKind.READ_BACK, blocks=(other,), parts=()
        )
    )
    assert (row.error_class, row.retryable) == (FormatError.__name__, False)


def test_parts_that_are_not_those_of_the_blocks_are_refused(segment, run):
    _sources, blocks, _data = segment
    task = task_of(segment, None, [[*blocks]])
    with pytest.raises(ValueError, match="are not the parts of"):
        run(replace(task, parts=(TaskPart(1, len(blocks) - 1),)))


def test_an_open_ledger_is_read_as_far_as_was_proven_and_no_further(segment, objects, run):
    sources, blocks, _data = segment
    source = sources[0]
    own = tuple(block for block in blocks if block.ledger_id == source.ledger_id)
    for confirmed, error in (
        (own[-1].last_entry_id, ""),
        (own[-1].last_entry_id - 1, "ValueError"),
    ):
        is_open = replace(source, open_end=OpenEnd(confirmed={"bk0": confirmed}))
        bound = is_open.readable_to()
        assert (bound.entry_id, bound.by) == (confirmed, BoundBy.LAC)
        task = replace(task_of(segment, None, [own]), source=is_open, data_key=f"to-{confirmed}")
        if error:
            with pytest.raises(ValueError, match="may be read up to"):
                run(task)
        else:
            assert [row.error for row in run(task)] == [""] * len(own)


def test_what_a_broker_acknowledged_proves_as_far_as_it_says(segment):
    source = replace(segment[0][0], open_end=OpenEnd(confirmed={"bk0": 3}, acknowledged=5))
    bound = source.readable_to()
    assert (bound.entry_id, bound.by) == (5, BoundBy.BROKER)
