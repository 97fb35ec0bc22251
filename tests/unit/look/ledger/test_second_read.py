"""Entries read from a second replica: which blocks, and that every difference is told."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.look.ledger.verification import second_read_differences, second_read_parts
from tiering_assets.resources.errors import SettingsError
from tiering_assets.tasks.descriptors import BlockRow, TaskKind


def blocks(count):
    return plan_layout_from_sizes([10] * count, block_bytes_max=128 + 12 + 10)


@given(st.integers(1, 60))
def test_a_sample_is_every_tenth_block_and_the_last(count):
    layout = blocks(count)
    assert second_read_parts(layout, "off") == frozenset()
    assert second_read_parts(layout, "all") == set(range(1, count + 1))
    sample = second_read_parts(layout, "sample")
    assert sample == {*range(1, count + 1, 10), count}


def test_another_word_is_refused_with_the_words_there_are():
    with pytest.raises(SettingsError, match="'some', expected off, sample or all"):
        second_read_parts(blocks(1), "some")


def row(part, **changes):
    return replace(
        BlockRow(
            kind=TaskKind.READ_SOURCE,
            attempt="a",
            ledger_id=1,
            part_number=part,
            entries=3,
            payload_bytes=30,
            block_length=200,
            sha256="",
            entries_sha256="d" * 64,
            seconds=0.1,
        ),
        **changes,
    )


@pytest.mark.parametrize(
    "change", [{"entries": 2}, {"payload_bytes": 29}, {"entries_sha256": "e" * 64}]
)
def test_every_difference_between_replicas_is_told(change):
    copied = {1: row(1, sha256="f" * 64), 2: row(2)}  # a copy also digests the block's bytes
    assert second_read_differences(copied, {1: row(1), 2: row(2)}) == []
    [said] = second_read_differences(copied, {1: row(1), 2: row(2, **change)})
    assert said.startswith("block 2: replicas differ")
    assert f"copied (3, 30) {'d' * 64}, another replica serves" in said
    [missing] = second_read_differences({}, {1: row(1)})
    assert "copied None None, another replica serves (3, 30)" in missing
