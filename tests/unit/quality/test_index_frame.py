"""The lenient reader agrees with what another decoder found in a broker's index, and never
rounds.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.golden_objects import golden_ledger, golden_ledgers
from tests.support.index_facts import golden_index_facts
from tiering_assets.quality.index_frame import IndexRow, index_frame, read_rows

BASE = golden_index_facts(golden_ledger("multi-block", 20))


@pytest.mark.parametrize("ledger", golden_ledgers(), ids=str)
def test_the_columns_hold_what_the_manifest_says(ledger):
    rows = read_rows(golden_index_facts(ledger))
    index, blocks = ledger.facts["index"], ledger.facts["blocks"]
    assert [[r.first_entry_id, r.part_number, r.offset] for r in rows] == index["entries"]
    assert [(r.header_first_entry_id, r.header_block_length) for r in rows] == [
        (block["first"], block["length"]) for block in blocks
    ]
    first = rows[0]
    assert f"0x{first.index_magic}" == index["magic"]
    assert (first.index_length, first.data_length) == (index["index_len"], index["data_len"])
    assert (first.data_header_length, first.entry_count) == (index["header_len"], index["count"])
    metadata = index["metadata"]
    assert (first.metadata_length, first.metadata_last_entry_id, first.metadata_state) == (
        metadata["length"],
        metadata["lastEntryId"],
        "CLOSED",
    )


def test_the_frame_has_ledgers_in_order_and_one_row_per_block():
    frame = index_frame([replace(BASE, ledger_id=9), replace(BASE, ledger_id=3)])
    assert list(frame.columns) == list(IndexRow._fields)
    assert list(zip(frame["ledger_id"], frame["part"], strict=True)) == [
        (ledger_id, part) for ledger_id in (9, 3) for part in (1, 2, 3, 4)
    ]
    assert {str(dtype) for dtype in frame.dtypes} == {"object"}


def test_large_values_beside_missing_ones_are_not_rounded():
    whole, cut = replace(BASE, data_size=2**63 - 1), replace(BASE, ledger_id=21, index=b"")
    column = index_frame([replace(whole, topic_bytes=2**53 + 1), cut])["topic_bytes"]
    assert column.iloc[0] == 2**53 + 1


@given(st.binary(max_size=400), st.lists(st.binary(max_size=130), max_size=3))
def test_any_bytes_give_at_least_one_row(index, headers):
    facts = replace(BASE, index=index, headers=dict(enumerate(headers, start=1)))
    rows = read_rows(facts)
    assert rows
    assert [row.part for row in rows] in ([0], list(range(1, len(rows) + 1)))
    assert {row.index_bytes for row in rows} == {len(index)}
