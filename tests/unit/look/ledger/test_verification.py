from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.look.ledger.verification import find_differences, rows_by_part
from tiering_assets.offload_format.digests import object_digest
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.tasks.descriptors import BlockRow, TaskKind

PLAN = (
    BlockPlan(
        part_number=1,
        first_entry_id=0,
        last_entry_id=5,
        offset=0,
        block_length=1000,
        payload_bytes=600,
    ),
    BlockPlan(
        part_number=2,
        first_entry_id=6,
        last_entry_id=9,
        offset=1000,
        block_length=600,
        payload_bytes=400,
    ),
)


def row(part, kind, **change):
    block = PLAN[part - 1]
    good = BlockRow(
        kind=kind,
        attempt="a",
        ledger_id=42,
        part_number=part,
        entries=block.entries,
        payload_bytes=block.payload_bytes,
        block_length=block.block_length,
        sha256="" if kind is TaskKind.READ_SOURCE else f"{part}b" * 32,
        entries_sha256=f"{part}e" * 32,
        seconds=0.1,
    )
    return replace(good, **change)


SOURCE = {part: row(part, TaskKind.COPY) for part in (1, 2)}
STORED = {part: row(part, TaskKind.READ_BACK) for part in (1, 2)}


def differences(source=SOURCE, stored=STORED, *, plan=PLAN, last_entry_id=9):
    return find_differences(
        plan=plan,
        source=source,
        stored=stored,
        last_entry_id=last_entry_id,
    )


def changed(rows, part, **change):
    return {**rows, part: replace(rows[part], **change)}


def test_equal_rows_are_the_proof():
    assert differences() == []


def test_rows_read_from_the_bookies_again_prove_it_too():
    again = {part: row(part, TaskKind.READ_SOURCE) for part in (1, 2)}
    assert differences(again) == []


@pytest.mark.parametrize(
    ("source", "stored", "said"),
    [
        (
            SOURCE,
            changed(STORED, 2, entries=3),
            ["block 2: entries: expected 4, found 3", "entries: expected 10, found 9"],
        ),
        (
            changed(SOURCE, 2, entries=5),
            STORED,
            ["block 2: entries served by bookies: expected 4, found 5"],
        ),
        (
            SOURCE,
            changed(STORED, 1, payload_bytes=599),
            [
                "block 1: payload bytes: expected 600, found 599",
                "payload bytes: expected 1000, found 999",
            ],
        ),
        (
            SOURCE,
            changed(STORED, 1, entries_sha256="f" * 64),
            [f"block 1: entries digest: expected {'1e' * 32}, found {'f' * 64}"],
        ),
        (
            SOURCE,
            changed(STORED, 2, sha256="f" * 64),
            [f"block 2: bytes sent {'2b' * 32}, bytes stored {'f' * 64}"],
        ),
        (
            SOURCE,
            {1: STORED[1]},
            [
                "block 2: object not read",
                "entries: expected 10, found 6",
                "payload bytes: expected 1000, found 600",
            ],
        ),
        ({2: SOURCE[2]}, STORED, ["block 1: bookies not read"]),
        (
            SOURCE,
            {},
            [
                "block 1: object not read",
                "block 2: object not read",
                "entries: expected 10, found 0",
                "payload bytes: expected 1000, found 0",
            ],
        ),
    ],
)
def test_each_kind_of_difference_is_named(source, stored, said):
    assert differences(source, stored) == said


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"last_entry_id": 10}, "entries: expected 11, found 10"),
        ({"last_entry_id": 8}, "entries: expected 9, found 10"),
        (
            {"plan": (PLAN[0], replace(PLAN[1], payload_bytes=PLAN[1].payload_bytes + 1))},
            "payload bytes: expected 1001, found 1000",
        ),
    ],
)
def test_the_whole_is_compared_with_metadata_and_plan(facts, said):
    assert differences(**facts) == [said]


def test_a_plan_that_forgets_a_block_is_no_proof():
    assert differences({1: SOURCE[1]}, {1: STORED[1]}, plan=PLAN[:1]) == [
        "entries: expected 10, found 6"
    ]


def test_a_block_nobody_planned_is_a_difference():
    extra = replace(STORED[2], part_number=3)
    assert differences(stored={**STORED, 3: extra}) == [
        "entries: expected 10, found 14",
        "payload bytes: expected 1000, found 1400",
    ]


def test_the_rows_of_a_task_that_ran_twice_count_once():
    twice = [row(part, TaskKind.READ_BACK, seconds=s) for s in (0.1, 0.2) for part in (1, 2)]
    kept = rows_by_part(twice)
    assert list(kept) == [1, 2]
    assert [kept[part].seconds for part in kept] == [0.1, 0.1]
    assert differences(stored=kept) == []


def test_two_answers_may_tell_other_messages():
    told = row(1, TaskKind.READ_BACK, messages=6, publish_min_ms=1, publish_max_ms=2)
    assert rows_by_part([told, row(1, TaskKind.READ_BACK)]) == {1: told}


def test_two_different_answers_for_one_block_are_refused():
    rows = [row(1, TaskKind.READ_BACK), row(1, TaskKind.READ_BACK, sha256="ff" * 32)]
    with pytest.raises(IntegrityError, match="block 1: read twice with different results"):
        rows_by_part(rows)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_failure_row_never_counts_whichever_came_first(order):
    rows = [row(1, TaskKind.READ_BACK, error="timed out", entries=0), row(1, TaskKind.READ_BACK)]
    assert rows_by_part(rows[i] for i in order) == {1: rows[1]}


def test_a_block_with_failures_alone_has_no_row():
    assert rows_by_part([row(1, TaskKind.COPY, error="x"), row(2, TaskKind.COPY)]).keys() == {2}


@given(
    part=st.sampled_from([1, 2]),
    name=st.sampled_from(["entries", "payload_bytes", "entries_sha256", "sha256"]),
    value=st.integers(0, 10**6),
)
def test_any_changed_fact_of_a_stored_block_is_found(part, name, value):
    text = f"{value:064x}"
    stored = changed(STORED, part, **{name: text if name.endswith("sha256") else value})
    assert (differences(stored=stored) == []) is (stored == STORED)


def test_the_object_digest_is_over_the_blocks_digests_in_order():
    one, two = sha256(b"1"), sha256(b"2")
    expected = sha256(one.digest() + two.digest()).hexdigest()
    assert object_digest([one.hexdigest(), two.hexdigest()]) == expected
    assert object_digest([two.hexdigest(), one.hexdigest()]) != expected
