"""Memory of a block is as much as was asked for, writable, zero, and gone with its last view."""

import weakref

import pytest

from tiering_assets.tasks.block_memory import block_memory

MIB = 1024 * 1024


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 4097])
def test_it_is_as_long_as_asked_for_and_zero_and_holds_what_is_written(size):
    view = block_memory(size)
    assert (view.nbytes, view.readonly, view.itemsize) == (size, False, 1)
    assert bytes(view) == bytes(size)
    view[:] = b"x" * size
    assert bytes(view) == b"x" * size


def test_a_view_of_a_part_keeps_it_and_the_last_one_frees_it():
    view = block_memory(2 * MIB)
    mapping = weakref.ref(view.obj)
    part = view[MIB:]
    del view
    assert mapping() is not None
    part[:] = b"x" * MIB
    del part
    assert mapping() is None


@pytest.mark.parametrize("advice", [None, -1], ids=["no such advice", "a kernel that refuses it"])
def test_without_large_pages_there_is_memory_all_the_same(monkeypatch, advice):
    monkeypatch.setattr("tiering_assets.tasks.block_memory._HUGE", advice)
    assert bytes(block_memory(2 * MIB)) == bytes(2 * MIB)
