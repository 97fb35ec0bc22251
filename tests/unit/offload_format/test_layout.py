"""The plan against a literal sequential writer, which asks for every entry's length."""

from itertools import accumulate
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.offload_format.layout import BlockPlan, block_bytes_for, plan_layout
from tiering_assets.resources.errors import IntegrityError, RefusedError

MIB = 1024 * 1024

sizes_lists = st.lists(
    st.one_of(st.just(0), st.integers(0, 60), st.integers(0, 900)), min_size=1, max_size=120
)
block_sizes = st.integers(141, 1200)


def written_in_sequence(sizes: list[int], block_bytes_max: int) -> list[tuple[int, int, int, int]]:
    """(first entry, last entry, offset, length) of each block, one entry after the other."""
    blocks = []
    entry_id = offset = done = 0
    while entry_id < len(sizes):
        first = entry_id
        left = len(sizes) - first
        length = min(block_bytes_max, left * 12 + (sum(sizes) - done) + 128)
        if 128 + 12 + sizes[first] > length:
            length = 128 + 12 + sizes[first]
        position = 128
        while entry_id < len(sizes) and position + 12 + sizes[entry_id] <= length:
            position += 12 + sizes[entry_id]
            done += sizes[entry_id]
            entry_id += 1
        blocks.append((first, entry_id - 1, offset, length))
        offset += length
    return blocks


def shape(plans: tuple[BlockPlan, ...]) -> list[tuple[int, int, int, int]]:
    return [(p.first_entry_id, p.last_entry_id, p.offset, p.block_length) for p in plans]


@given(sizes_lists, block_sizes)
def test_plan_is_what_a_sequential_writer_writes(sizes, block_bytes_max):
    plans = plan_layout_from_sizes(sizes, block_bytes_max=block_bytes_max)
    assert shape(plans) == written_in_sequence(sizes, block_bytes_max)
    assert [p.part_number for p in plans] == list(range(1, len(plans) + 1))
    assert [p.payload_bytes for p in plans] == [
        sum(sizes[p.first_entry_id : p.last_entry_id + 1]) for p in plans
    ]
    assert plans[-1].padding_bytes == 0  # the last block is exactly as long as needed


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([60], [(0, 0, 0, 200)]),  # fits exactly
        ([61], [(0, 0, 0, 201)]),  # one byte over: grows
        ([0, 500, 0], [(0, 0, 0, 200), (1, 1, 200, 640), (2, 2, 840, 140)]),
        ([500, 500], [(0, 0, 0, 640), (1, 1, 640, 640)]),
        ([24, 24], [(0, 1, 0, 200)]),
        ([24, 25], [(0, 0, 0, 200), (1, 1, 200, 165)]),
        ([0] * 7, [(0, 5, 0, 200), (6, 6, 200, 140)]),
    ],
)
def test_blocks_of_200_bytes(sizes, expected):
    assert shape(plan_layout_from_sizes(sizes, block_bytes_max=200)) == expected


def test_a_chunked_message_that_a_broker_truncates_grows_its_blocks():
    """Entries of 5 MiB and a little at 5 MiB blocks; a broker left such an object short."""
    sizes = [128, 2028, 3028, 5242914, 5242914, 1514328, 528, 38, 5242828, 48, 5242739]
    plans = plan_layout_from_sizes(sizes, block_bytes_max=5 * MIB)
    assert len(plans) == 7
    assert [p.block_length > 5 * MIB for p in plans] == [
        False,
        True,
        True,
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("kind", ["even", "longer first", "uneven", "heavy tail", "huge last"])
def test_probes_are_logarithmic_in_the_number_of_entries(kind):
    random, entries = Random(7), 200_000
    sizes = {
        "even": [1024] * entries,
        "longer first": [2024] + [1024] * (entries - 1),  # the first guess is one too far
        "uneven": [random.randrange(4096) for _ in range(entries)],
        "heavy tail": [int(100 * random.paretovariate(1.1)) % (8 * MIB) for _ in range(entries)],
        "huge last": [0] * (entries - 1) + [100 * MIB],
    }[kind]
    sums = list(accumulate(sizes))
    asked: list[int] = []

    def probe(entry_id: int) -> int:
        asked.append(entry_id)
        return sums[entry_id]

    plans = plan_layout(
        last_entry_id=entries - 1,
        ledger_length=sums[-1],
        block_bytes_max=5 * MIB,
        cumulative_length=probe,
    )
    assert shape(plans) == shape(plan_layout_from_sizes(sizes, block_bytes_max=5 * MIB))
    assert sum(p.entries for p in plans) == entries
    assert len(asked) <= 1 + 2 * (entries.bit_length() + 1) * len(plans)
    if kind in ("even", "longer first"):
        assert len(asked) <= 1 + 2 * (len(plans) - 1)  # the last block ends with the ledger
    assert len(asked) == len(set(asked))


def plan_of(lengths: dict[int, int], **change: int) -> tuple[BlockPlan, ...]:
    arguments = {"last_entry_id": 9, "ledger_length": 1000, "block_bytes_max": 400} | change
    return plan_layout(
        last_entry_id=arguments["last_entry_id"],
        ledger_length=arguments["ledger_length"],
        block_bytes_max=arguments["block_bytes_max"],
        cumulative_length=lambda entry_id: lengths.get(entry_id, 100 * (entry_id + 1)),
    )


def test_a_ledger_without_entries_is_refused():
    with pytest.raises(IntegrityError, match="no entries"):
        plan_of({}, last_entry_id=-1)


@pytest.mark.parametrize("ledger_length", [0, 999])
def test_a_ledger_length_below_the_last_entrys_is_refused_with_both(ledger_length):
    with pytest.raises(IntegrityError, match=rf"says {ledger_length} .* says 1000"):
        plan_of({}, ledger_length=ledger_length)


@pytest.mark.parametrize(("beyond", "padding"), [(0, 0), (1, 1), (40, 40), (10_000, 48)])
def test_a_ledger_length_beyond_the_last_entrys_is_padding_of_the_last_block(beyond, padding):
    """As Pulsar's writer lays out what recovery closed; a block ends at its size all the same."""
    exact, plans = plan_of({}), plan_of({}, ledger_length=1000 + beyond)
    assert sum(p.payload_bytes for p in plans) == 1000
    assert plans[:-1] == exact[:-1]
    assert plans[-1].padding_bytes == exact[-1].padding_bytes + padding


@pytest.mark.parametrize("entry_id", range(9))
@pytest.mark.parametrize("value", [-1, 1001])
def test_lengths_that_go_backwards_are_refused_or_never_asked_for(entry_id, value):
    asked = []

    def probe(wanted: int) -> int:
        asked.append(wanted)
        return value if wanted == entry_id else 100 * (wanted + 1)

    try:
        plan_layout(
            last_entry_id=9, ledger_length=1000, block_bytes_max=400, cumulative_length=probe
        )
    except IntegrityError as error:
        assert f"entry {entry_id}: {value}" in str(error)  # noqa: PT017  either way is right
    else:
        assert entry_id not in asked


def test_a_negative_ledger_length_is_refused():
    with pytest.raises(IntegrityError, match="up to entry 9: -1, but up to entry -1: 0"):
        plan_of({9: -1}, ledger_length=-1)


def test_an_entry_longer_than_a_frame_can_say_is_refused():
    with pytest.raises(IntegrityError, match="payload bytes"):
        plan_of({0: 0, 1: 2**31}, last_entry_id=1, ledger_length=2**31)


@pytest.mark.parametrize("block_bytes_max", [0, 140, 2**31])
def test_a_block_size_no_block_can_have_is_a_callers_mistake(block_bytes_max):
    with pytest.raises(ValueError, match="block size"):
        plan_of({}, block_bytes_max=block_bytes_max)


def test_more_than_10000_parts_are_refused_with_the_size_that_does():
    sizes = [50] * 10_001
    with pytest.raises(RefusedError, match="253 bytes does"):
        plan_layout_from_sizes(sizes, block_bytes_max=200)
    assert block_bytes_for(sum(sizes), len(sizes), 200) == 253
    assert len(plan_layout_from_sizes(sizes[:-1], block_bytes_max=200)) == 10_000


@settings(max_examples=20)  # 15,000 entries each
@given(
    st.lists(st.sampled_from([0, 1, 50, 400, 3000]), min_size=1, max_size=60), st.integers(141, 300)
)
def test_a_raised_block_size_keeps_any_sizes_within_10000_parts(pattern, block_bytes_max):
    sizes = (pattern * 15_000)[:15_000]
    raised = block_bytes_for(sum(sizes), len(sizes), block_bytes_max)
    assert raised >= block_bytes_max
    assert len(plan_layout_from_sizes(sizes, block_bytes_max=raised)) <= 10_000


def test_a_block_size_that_does_is_left_alone():
    assert block_bytes_for(64 * MIB, 10, 5 * MIB) == 5 * MIB


def test_a_ledger_too_large_for_any_block_size_is_refused():
    with pytest.raises(RefusedError, match="10000 parts"):
        block_bytes_for(2**45, 1, 64 * MIB)


@pytest.mark.parametrize(
    "change",
    [
        {"part_number": 0},
        {"first_entry_id": 2},
        {"first_entry_id": -1},
        {"offset": -1},
        {"payload_bytes": -1},
        {"payload_bytes": 11},
    ],
)
def test_a_plan_that_describes_no_block_cannot_be_made(change):
    good = {"part_number": 1, "first_entry_id": 0, "last_entry_id": 1, "offset": 0}
    good |= {"block_length": 162, "payload_bytes": 10}
    assert BlockPlan(**good).padding_bytes == 0
    with pytest.raises(ValueError, match="impossible block"):
        BlockPlan(**good | change)
