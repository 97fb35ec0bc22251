"""Memory of a block is as long as was asked for, its holder's alone, and used again after that."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiering_assets.tasks.block_memory import BlockMemory, block_memory

MIB = 1024 * 1024


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 4097])
def test_it_is_as_long_as_asked_for_and_holds_what_is_written(size):
    view = block_memory(size)
    assert (view.nbytes, view.readonly, view.itemsize, view.format) == (size, False, 1, "B")
    view[:] = b"x" * size
    assert bytes(view) == b"x" * size


def test_a_view_of_a_part_keeps_it_and_after_the_last_one_it_is_used_again():
    memory = BlockMemory()
    view = memory.lend(2 * MIB)
    view[MIB] = 7
    part = view[MIB:]
    del view
    other = memory.lend(2 * MIB)
    other[:] = bytes(2 * MIB)
    assert part[0] == 7
    del part
    again = memory.lend(MIB + 1)
    assert again[MIB] == 7
    del again, other


def test_what_came_back_stays_where_no_more_is_in_use_than_before():
    memory = BlockMemory()
    first, second, third = (memory.lend(4 * MIB) for _ in range(3))
    del first
    fourth = memory.lend(6 * MIB)  # 14 MiB in use, and what the first left has gone
    assert memory._kept_bytes() == 0
    del second, third, fourth
    larger = memory.lend(8 * MIB)
    assert memory._kept_bytes() == 4 * MIB
    del larger


def test_a_failure_that_is_still_told_keeps_what_it_saw():
    """A traceback holds frames, and these hold views: nobody else writes there meanwhile."""
    memory = BlockMemory()

    def failing():
        view = memory.lend(MIB)
        view[0] = 7
        raise ValueError

    with pytest.raises(ValueError) as caught:  # noqa: PT011
        failing()
    other = memory.lend(MIB)
    other[0] = 8
    assert caught.traceback[-1].frame.f_locals["view"][0] == 7


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(MIB, 9 * MIB), st.integers(0, 5)), max_size=30))
def test_each_holder_finds_its_own_bytes_and_no_more_is_kept_than_was_in_use_at_once(steps):
    memory, held, most = BlockMemory(), [], 0
    for number, (size, keep) in enumerate(steps):
        view = memory.lend(size)
        view[0] = view[size - 1] = number
        held.append((number, view))
        del view
        most = max(most, memory._lent_bytes)
        held = held[-keep:] if keep else []
        assert all(view[0] == view[-1] == number % 256 for number, view in held)
        assert memory._kept_bytes() + memory._lent_bytes <= most
    del held
    memory.lend(1)
    assert memory._kept_bytes() <= most


def test_threads_that_take_and_leave_at_once_never_share_any():
    memory, wrong = BlockMemory(), []

    def work(name):
        for _ in range(300):
            view = memory.lend(MIB)
            view[:16] = bytes([name]) * 16
            if bytes(view[:16]) != bytes([name]) * 16:
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert memory._most_bytes <= 8 * 2 * MIB


@pytest.mark.parametrize("advice", [None, -1], ids=["no such advice", "a kernel that refuses it"])
def test_without_large_pages_there_is_memory_all_the_same(monkeypatch, advice):
    monkeypatch.setattr("tiering_assets.tasks.block_memory._HUGE", advice)
    view = BlockMemory().lend(2 * MIB)
    view[:] = b"x" * (2 * MIB)
    assert bytes(view) == b"x" * (2 * MIB)
