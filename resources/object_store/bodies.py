"""How the bytes of an object leave and arrive: in large pieces, into and out of our own buffers.

Owns: a body arrives whole or BrokenBodyError is raised, and its connection is not used again. The
client library sends a file by 16 KiB at a time, and copies what arrives twice, into fresh memory;
that is 0.1 and 0.35 CPU s/GB, of 0.5 and 0.9. Its own way is kept for a body that is not as known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import Any, Final

from botocore import exceptions as boto_errors
from botocore.response import StreamingBody

from tiering_assets.resources.object_store.meter import StoreMeter
from tiering_assets.resources.object_store.store import Buffer

_SENT_BYTES: Final = 512 * 1024  # a send has the read timeout for all of it
_READ_BYTES: Final = 256 * 1024  # small: fresh memory for a whole range costs more than copying it


class BrokenBodyError(Exception):
    """The headers came, the body broke off."""


class ViewBody:
    """Part of a buffer as the file that the client library wants: it takes no view."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self._at = 0

    def __len__(self) -> int:
        return self.view.nbytes

    def read(self, size: int = -1) -> memoryview:
        end = len(self) if size < 0 else self._at + size
        piece = self.view[self._at : end]
        self._at += len(piece)
        return piece

    def seek(self, offset: int, whence: int = 0) -> int:
        """Back to the start, which is all that a new try needs. ValueError for any other place."""
        if offset != 0 or whence != 0:
            raise ValueError(f"a body only seeks to its start, not ({offset}, {whence})")
        self._at = 0
        return 0

    def tell(self) -> int:
        return self._at


class SentBody:
    """A request's body as it is sent: pieces of it, none larger than its meter allowed."""

    def __init__(self, body: Buffer, meter: StoreMeter | None) -> None:
        self._view = memoryview(body)
        self._meter = meter

    def __len__(self) -> int:
        return self._view.nbytes

    def __iter__(self) -> Iterator[memoryview]:
        at = allowed = 0
        while left := len(self) - at:
            if allowed == 0:
                allowed = left if self._meter is None else self._meter.upload(left)
            count = min(left, allowed, _SENT_BYTES)
            yield self._view[at : at + count]
            at += count
            allowed -= count

    def seek(self, offset: int) -> int:
        """What the client library calls before a new try, which begins at the start anyway."""
        return offset


def read_body(stream: StreamingBody) -> bytes:
    """The whole body, inside S3Connection.downloaded, which tries again when it breaks off."""
    with _body(stream):
        return stream.read()


def read_body_into(stream: StreamingBody, view: memoryview) -> int:
    """The same into a buffer, as much as it takes; how many bytes came."""
    came = 0
    with _body(stream):
        response = response_below(stream)
        while came < len(view):
            left = len(view) - came
            if response is not None:
                count = response.readinto(view[came:])
            else:
                piece = stream.read(min(_READ_BYTES, left))
                count = len(piece)
                view[came : came + count] = piece
            if count == 0:
                break
            came += count
        if response is not None:
            _end(stream, response)
    return came


def response_below(stream: StreamingBody) -> HTTPResponse | None:
    """What the standard library received; it alone reads into a buffer, and nothing leads to it.

    None where the layers are not the known ones, or one of them has read of the body.
    """
    pooled: Any = getattr(stream, "_raw_stream", None)
    response = getattr(pooled, "_fp", None)
    if not isinstance(response, HTTPResponse) or not hasattr(pooled, "release_conn"):
        return None
    return response if pooled.tell() == 0 and response.length else None


def _end(stream: StreamingBody, response: HTTPResponse) -> None:
    """Give a connection back whose body was read to its end; the stream does not know."""
    if response.isclosed() and not response.length:
        pooled: Any = stream._raw_stream  # type: ignore[attr-defined]
        pooled.release_conn()
    elif response.isclosed():
        raise BrokenBodyError(boto_errors.IncompleteReadError.__name__)


@contextmanager
def _body(stream: StreamingBody) -> Iterator[None]:
    try:
        with stream:
            yield
    except (
        boto_errors.IncompleteReadError,
        boto_errors.ReadTimeoutError,
        boto_errors.ResponseStreamingError,
        HTTPException,
        OSError,
    ) as error:
        raise BrokenBodyError(type(error).__name__) from None
