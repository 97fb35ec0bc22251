"""The simulator's plain judge says what the expectation library says."""

from dataclasses import replace

import pytest

from tests.support.golden_objects import golden_ledgers
from tests.support.index_facts import golden_index_facts
from tests.support.sim_judge import judge
from tiering_assets.quality.suites import validate_indexes

BASE = golden_index_facts(golden_ledgers()[0])


def damaged():
    yield BASE
    for at in range(0, len(BASE.index), 7):
        flipped = bytearray(BASE.index)
        flipped[at] ^= 0x41
        yield replace(BASE, index=bytes(flipped))
    yield replace(BASE, index=b"")
    yield replace(BASE, headers={})
    yield replace(BASE, data_size=BASE.data_size + 1)
    yield replace(BASE, topic_entries=None, topic_bytes=None)
    yield replace(BASE, last_entry_id=BASE.last_entry_id + 1)


@pytest.mark.parametrize("batch", [list(damaged())])
def test_it_agrees_with_the_library_on_sound_and_damaged_indexes(batch):
    facts = [replace(one, ledger_id=number) for number, one in enumerate(batch)]
    by_library, by_rule = validate_indexes(facts), judge(facts)
    assert by_library == by_rule
    assert {result.success for result in by_rule.values()} == {True, False}
