"""A block is asked for whole and once, by ranges that begin short and grow; the payloads of golden
objects, smaller or larger than the first of them, come as the broker's client had sent them.
"""

from hashlib import sha256
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.object_reads import FIRST_BYTES, iter_payloads_of, ranges_of
from tests.support.golden_objects import golden_ledgers
from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.ground.stack import Stack

MIB = 1024 * 1024


@given(
    start=st.integers(0, 2**40),
    length=st.integers(1, 80 * MIB),
    longest=st.integers(1024, 16 * MIB),
    first=st.booleans(),
)
def test_ranges_follow_each_other_from_the_first_byte_to_the_last(start, length, longest, first):
    found = ranges_of(start, length, longest=longest, first=first)
    assert found[0][0] == start
    assert [at + size for at, size in found[:-1]] == [at for at, _size in found[1:]]
    assert sum(found[-1]) == start + length
    assert all(0 < size <= longest for _at, size in found)


def test_the_first_block_begins_with_short_ranges_and_the_others_do_not():
    first = ranges_of(0, 20 * MIB, longest=8 * MIB, first=True)
    assert [size // MIB for _at, size in first] == [1, 2, 4, 8, 5]
    assert ranges_of(7, 9 * MIB, longest=8 * MIB, first=False) == [(7, 8 * MIB), (7 + 8 * MIB, MIB)]
    assert FIRST_BYTES == MIB


@pytest.mark.parametrize("longest", [4096, 8 * MIB])
@pytest.mark.parametrize("ledger", [one for one in golden_ledgers() if one.has_data], ids=str)
def test_payloads_are_the_ledgers_however_short_its_object_is(ledger, longest):
    objects = SimulatedObjectStore()
    objects.put("data", ledger.data())
    objects.put("data-index", ledger.index())
    settings = SimpleNamespace(offload=SimpleNamespace(read_range_bytes=longest))
    stack = cast(Stack, SimpleNamespace(objects=objects, settings=settings))
    found = [sha256(payload).hexdigest() for payload in iter_payloads_of(stack, "data")]
    assert found == [digest for _entry_id, _length, digest in ledger.entries()]

    def take(rows):
        together.extend(sha256(row).hexdigest() for row in rows)
        return True

    together: list[str] = []
    for payload in iter_payloads_of(stack, "data", take):
        together.append(sha256(payload).hexdigest())
    assert together == found
