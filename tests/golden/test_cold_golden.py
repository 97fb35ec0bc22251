"""Blocks that brokers and we wrote, as columns: what a consumer received, and the plain decoder's
rows.
"""

import pytest

from tests.golden.test_messages_golden import block_of, every_block
from tests.support.cold_entries import LOOPS
from tests.unit.cold.test_decode import plainly, told
from tiering_assets.cold.columns import COLUMNS
from tiering_assets.cold.decode import decode_entries
from tiering_assets.cold.frames import entries_of_block
from tiering_assets.offload_format.walker import iter_block_entries
from tiering_assets.resources.errors import FormatError


@every_block
def test_messages_are_those_that_a_consumer_received(case, ledger_id, part, consumed):
    block, first, count = block_of(case, ledger_id, part)
    for core in LOOPS.values():
        entries = entries_of_block(
            block, ledger_id=ledger_id, first_entry_id=first, count=count, core=core
        )
        found = decode_entries(entries, COLUMNS.names, verify=True)
        seen = [row for row in told(found) if row["chunk"] in (None, (row["chunks"] or 0) - 1)]
        times = [row["publish_time"] for row in seen]
        assert (len(seen), min(times, default=None), max(times, default=None)) == consumed


@every_block
def test_rows_are_those_of_the_plain_decoder(case, ledger_id, part, consumed):
    block, first, count = block_of(case, ledger_id, part)
    made = [
        bytes(one)
        for _, one in iter_block_entries(block, first_entry_id=first, entries_expected=count)
    ]
    expected = told(plainly(made, markers=True))
    for row in expected:
        row["entry_id"] += first
    for core in LOOPS.values():
        entries = entries_of_block(block, ledger_id=7, first_entry_id=first, count=count, core=core)
        assert told(decode_entries(entries, COLUMNS.names, markers=True)) == expected


def test_a_block_that_is_damaged_is_refused():
    block, first, count = block_of("small-batch-lz4", *_one_of("small-batch-lz4"))
    for at in (0, 25, 130, 138):
        damaged = bytearray(block)
        damaged[at] ^= 0x40
        for core in LOOPS.values():
            how = {"ledger_id": 7, "first_entry_id": first, "core": core}
            with pytest.raises(FormatError):
                entries_of_block(memoryview(damaged), count=count, **how)
            with pytest.raises(FormatError):
                entries_of_block(block, count=count + 1, **how)


def _one_of(case):
    from tests.golden.test_messages_golden import CONSUMED

    return next((ledger_id, part) for name, ledger_id, part, *_ in CONSUMED if name == case)
