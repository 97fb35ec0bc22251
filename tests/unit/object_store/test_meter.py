"""A body that waits as it is read: all bytes once, no piece larger than what was allowed."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.object_store.meter import SlicedBody


class Allowance:
    """Allows so many bytes at a time, and notes what it was asked."""

    def __init__(self, *steps):
        self.steps, self.asked = list(steps), []

    def request(self):
        raise AssertionError("a body is part of a request that was asked for")

    def upload(self, size):
        self.asked.append(size)
        return min(size, self.steps[len(self.asked) % len(self.steps)])

    def bounds_uploads(self):
        return True


@given(
    st.binary(max_size=300),
    st.lists(st.integers(1, 50), min_size=1),
    st.lists(st.integers(-1, 40), min_size=1),
)
def test_every_byte_comes_once_and_only_after_it_was_allowed(content, steps, sizes):
    allowance = Allowance(*steps)
    body = SlicedBody(content, allowance)
    assert len(body) == len(content)
    read = b""
    for n in range(1000):
        piece = body.read(sizes[n % len(sizes)] or 1)
        read += piece
        assert body.tell() == len(read)
        if not piece:
            break
    assert read == content
    assert sum(steps) * len(allowance.asked) >= len(content)


def test_a_new_try_asks_for_all_of_it_again():
    allowance = Allowance(4)
    body = SlicedBody(bytearray(b"0123456789"), allowance)
    assert bytes(body.read(3)) == b"012"
    assert body.seek(0) == 0
    assert b"".join(iter(lambda: bytes(body.read(3)), b"")) == b"0123456789"
    assert allowance.asked == [10, 10, 6, 2]


@pytest.mark.parametrize(("offset", "whence"), [(1, 0), (0, 1), (0, io.SEEK_END)])
def test_no_other_place_can_be_sought(offset, whence):
    with pytest.raises(ValueError, match="seeks to its start"):
        SlicedBody(b"abc", Allowance(1)).seek(offset, whence)
