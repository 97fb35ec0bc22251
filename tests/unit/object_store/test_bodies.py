"""Bodies as they are sent and received: all bytes once, in pieces, and never half of one."""

from __future__ import annotations

import io
import socket
import threading
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.object_store import bodies
from tiering_assets.resources.object_store.bodies import SentBody, ViewBody
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import StoreSettings

BODY = bytes(range(251)) * 4_000  # a megabyte


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


@given(st.binary(max_size=300), st.lists(st.integers(1, 50), min_size=1))
def test_every_byte_is_sent_once_and_only_after_it_was_allowed(content, steps):
    allowance, allowed, sent = Allowance(*steps), 0, b""
    body = SentBody(content, allowance)
    assert len(body) == len(content)
    for piece in body:
        sent += piece
        allowed = sum(steps[(n + 1) % len(steps)] for n in range(len(allowance.asked)))
        assert 0 < len(sent) <= allowed
    assert sent == content


def test_a_new_try_asks_for_all_of_it_again():
    allowance = Allowance(4)
    body = SentBody(bytearray(b"0123456789"), allowance)
    first = iter(body)
    assert bytes(next(first)) == b"0123"
    assert body.seek(0) == 0
    assert b"".join(body) == b"0123456789"
    assert allowance.asked == [10, 10, 6, 2]


def test_a_large_body_leaves_in_pieces_that_a_slow_line_sends_in_time():
    pieces = [len(piece) for piece in SentBody(BODY, None)]
    assert sum(pieces) == len(BODY)
    assert 64 * 1024 < max(pieces) <= 1024 * 1024


@given(st.binary(max_size=60), st.lists(st.integers(-1, 20), min_size=1))
def test_a_view_is_a_file(content, sizes):
    ours, real = ViewBody(memoryview(content)), io.BytesIO(content)
    for size in sizes:
        assert bytes(ours.read(size)) == real.read(size)
        assert ours.tell() == real.tell()
    assert ours.seek(0) == 0
    assert bytes(ours.read()) == content


@pytest.mark.parametrize(("offset", "whence"), [(1, 0), (0, 1), (0, io.SEEK_END)])
def test_no_other_place_of_a_view_can_be_sought(offset, whence):
    with pytest.raises(ValueError, match="seeks to its start"):
        ViewBody(memoryview(b"abc")).seek(offset, whence)


# ----- what arrives, by both ways of reading


@contextmanager
def serving(*answers, chunked=False):
    """A server whose n-th answer has that many of the bytes it announces; None: it stalls then.

    Yields a store, and the connections that were made.
    """
    listener, made, left = socket.create_server(("127.0.0.1", 0)), [], list(answers)

    def answer(connection):
        lines = connection.makefile("rb")
        with connection, lines:
            while lines.readline():
                while lines.readline().strip():
                    pass
                count = left.pop(0) if len(left) > 1 else left[0]
                framed = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d"
                head = b"HTTP/1.1 206 P\r\nContent-Range: bytes 0-%d/%d\r\n" + framed + b"\r\n\r\n"
                sizes = (len(BODY) - 1, len(BODY)) + (() if chunked else (len(BODY),))
                connection.sendall(head % sizes)
                sent = BODY[: len(BODY) // 2 if count is None else count]
                connection.sendall(
                    b"%x\r\n%s\r\n0\r\n\r\n" % (len(sent), sent) if chunked else sent
                )
                if count is None:
                    stalled.wait(10)
                if len(sent) < len(BODY):
                    return

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            made.append(connection)
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    stalled = threading.Event()
    thread = threading.Thread(target=accept)
    thread.start()
    settings = StoreSettings(
        endpoint=f"http://127.0.0.1:{listener.getsockname()[1]}",
        bucket="b",
        access_key="k",
        secret_key="s",
        attempts_max=3,
        read_timeout_s=0.5,
    )
    try:
        yield S3ObjectStore(settings), made
    finally:
        stalled.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


@pytest.fixture(params=["into the buffer", "the library's own way"])
def way(request, monkeypatch):
    """Both ways; a version of the library whose layers are others fails the first."""
    real = bodies.response_below

    def below(stream):
        response = real(stream)
        assert response is not None
        return response if request.param == "into the buffer" else None

    monkeypatch.setattr(bodies, "response_below", below)
    return request.param


def fetched(store):
    into = memoryview(bytearray(len(BODY)))
    assert store.get_range("k", start=0, length=len(BODY), into=into) == b""
    return into


@pytest.mark.usefixtures("way")
def test_a_body_that_came_whole_leaves_its_connection_to_the_next():
    with serving(len(BODY)) as (store, made):
        assert [fetched(store) == BODY for _ in range(3)] == [True] * 3
        assert len(made) == 1


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("came", [0, 1, len(BODY) // 2, len(BODY) - 1, None])
def test_a_body_that_breaks_off_is_asked_for_again_over_a_new_connection(came):
    with serving(came, came, len(BODY)) as (store, made):
        assert fetched(store) == BODY
        assert len(made) == 3


@pytest.mark.parametrize("came", [len(BODY) // 2, None])
def test_a_body_that_breaks_off_each_time_is_an_error_that_says_how(way, came):
    with serving(came) as (store, made), pytest.raises(ObjectStoreError) as raised:
        fetched(store)
    reason = str(raised.value)
    assert "the body broke off 3 times (" in reason
    if came is None:
        assert ("TimeoutError" if way == "into the buffer" else "ReadTimeoutError") in reason
    else:
        assert "Incomplete" in reason or "ResponseStreamingError" in reason
    assert len(made) == 3


def test_a_body_of_unknown_length_arrives_by_the_librarys_way():
    with serving(len(BODY), chunked=True) as (store, _made):
        assert fetched(store) == BODY
