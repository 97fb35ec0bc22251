from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.bookkeeper.frames import FrameBuffer
from tiering_assets.resources.errors import FormatError


def feed(buffer, chunk):
    """Receive one chunk as a socket would, in as many pieces as the buffer has room for."""
    frames = []
    while chunk:
        space = buffer.writable()
        count = min(len(space), len(chunk))
        space[:count] = chunk[:count]
        chunk = chunk[count:]
        buffer.wrote(count)
        while (frame := buffer.next_frame()) is not None:
            frames.append(bytes(frame))
    return frames


def framed(bodies):
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


@given(
    bodies=st.lists(st.binary(max_size=300), max_size=12),
    cuts=st.lists(st.integers(min_value=1, max_value=97), min_size=1),
    held=st.sets(st.integers(min_value=0, max_value=40)),
)
def test_frames_come_out_whole_however_the_stream_is_cut(bodies, cuts, held):
    buffer = FrameBuffer(frame_bytes_max=300, initial_bytes=16)
    stream, frames, step = framed(bodies), [], 0
    while stream:
        cut = cuts[step % len(cuts)]
        if step in held:
            buffer.hold()
        frames += feed(buffer, stream[:cut])
        stream, step = stream[cut:], step + 1
    assert frames == bodies
    assert buffer.pending_bytes == 0
    assert buffer.capacity_bytes <= 2 * (300 + 4)


def test_one_byte_at_a_time():
    bodies = [b"", b"a", b"bc" * 40]
    buffer = FrameBuffer(frame_bytes_max=100, initial_bytes=8)
    assert [f for byte in framed(bodies) for f in feed(buffer, bytes([byte]))] == bodies


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_an_impossible_length_is_a_format_error_and_grows_nothing(length):
    buffer = FrameBuffer(frame_bytes_max=100, initial_bytes=16)
    with pytest.raises(FormatError, match=str(length)):
        feed(buffer, struct.pack(">i", length) + b"x")
    assert buffer.capacity_bytes == 16


def test_the_longest_frame_allowed_fits_exactly():
    buffer = FrameBuffer(frame_bytes_max=5000, initial_bytes=16)
    assert feed(buffer, framed([b"z" * 5000])) == [b"z" * 5000]
    assert buffer.capacity_bytes == 5004


def test_a_held_frame_survives_the_next_one():
    buffer = FrameBuffer(frame_bytes_max=64, initial_bytes=32)

    def receive(body):
        data = framed([body])
        space = buffer.writable()
        space[: len(data)] = data
        buffer.wrote(len(data))
        return buffer.next_frame()

    first = receive(b"first frame")
    buffer.hold()
    second = receive(b"other bytes")
    assert (bytes(first), bytes(second)) == (b"first frame", b"other bytes")
    buffer.hold()
    receive(b"THIRD FRAME")
    assert bytes(second) == b"other bytes"
    assert buffer.capacity_bytes == 2 * 32


def test_receiving_over_frames_not_taken_is_a_callers_mistake():
    buffer = FrameBuffer(frame_bytes_max=64, initial_bytes=8)
    space = buffer.writable()
    space[:8] = framed([b"four"])
    buffer.wrote(8)
    with pytest.raises(ValueError, match="take the whole frames"):
        buffer.writable()


@pytest.mark.parametrize("initial", [3, 0, 4 + 17])
def test_a_first_buffer_that_holds_no_length_or_more_than_a_frame_is_a_callers_mistake(initial):
    with pytest.raises(ValueError, match=f"a first buffer of {initial} bytes for 16"):
        FrameBuffer(frame_bytes_max=16, initial_bytes=initial)


@pytest.mark.parametrize("count", [-1, 9])
def test_more_than_there_was_room_for_was_not_received(count):
    buffer = FrameBuffer(frame_bytes_max=16, initial_bytes=8)
    assert len(buffer.writable()) == 8
    with pytest.raises(ValueError, match=f"{count} bytes written into 8"):
        buffer.wrote(count)
    assert buffer.pending_bytes == 0
