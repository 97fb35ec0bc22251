"""Messages of a block as its entries tell them, against what a consumer of the topic received."""

import json

import pytest

from tests.support.golden_objects import GOLDEN, golden_ledger, golden_ledgers
from tiering_assets.offload_format.message_facts import MessageCount, MessageFacts
from tiering_assets.offload_format.walker import iter_block_entries
from tiering_assets.resources.native.loader import this_loop

CONSUMED = json.loads((GOLDEN / "consumed.json").read_text())
HAVE_DATA = {str(ledger) for ledger in golden_ledgers() if ledger.has_data}

every_block = pytest.mark.parametrize(
    ("case", "ledger_id", "part", "consumed"),
    [
        (case, ledger_id, part, tuple(consumed))
        for case, ledger_id, part, *consumed in CONSUMED
        if f"{case}-{ledger_id}" in HAVE_DATA
    ],
)


def block_of(case, ledger_id, part):
    ledger = golden_ledger(case, ledger_id)
    [row] = [one for one in ledger.facts["blocks"] if one["part"] == part]
    data = bytearray(ledger.data()[row["offset"] : row["offset"] + row["length"]])
    return memoryview(data), row["first"], row["entries"]


def test_every_ledger_was_consumed():
    """A parametrised test over nothing would pass."""
    told = {f"{case}-{ledger_id}" for case, ledger_id, *_ in CONSUMED}
    assert told == {str(ledger) for ledger in golden_ledgers()}
    assert sum(messages for _case, _ledger, _part, messages, *_ in CONSUMED) == 37_304


@every_block
def test_python_counts_what_a_consumer_received(case, ledger_id, part, consumed):
    block, first, count = block_of(case, ledger_id, part)
    messages = MessageCount()
    for _id, payload in iter_block_entries(block, first_entry_id=first, entries_expected=count):
        messages.add(payload)
    least, greatest = consumed[1:]
    assert messages.facts() == MessageFacts(
        messages=consumed[0], publish_min_ms=least, publish_max_ms=greatest
    )


@every_block
def test_the_library_counts_what_a_consumer_received(case, ledger_id, part, consumed):
    core = this_loop().core
    assert core is not None
    block, first, count = block_of(case, ledger_id, part)
    walked = core.walk(block, first_entry_id=first, count=count)
    assert walked is not None
    assert tuple(walked[1:]) == consumed
