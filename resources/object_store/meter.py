"""How a store client asks before it sends, and a body that leaves in the slices it was allowed.

A body that is part of a buffer leaves so without a meter, too: the client library takes no view.

Owns: every try of a request asks anew, retries of the client library included. What the answers are
is the business of whoever gives the meter; without one nothing is asked.
"""

from __future__ import annotations

from typing import Protocol

from tiering_assets.resources.object_store.store import Buffer


class StoreMeter(Protocol):
    """Calls block until what they were asked for is within the budget."""

    def request(self) -> None:
        """Wait until one more request may be sent."""

    def upload(self, size: int) -> int:
        """Wait until some of `size` bytes may be sent now; how many, at least one."""

    def bounds_uploads(self) -> bool:
        """Whether `upload` has to be asked at all."""


class SlicedBody:
    """A request body as a file, which waits as it is read where it has a meter.

    A new try seeks to 0 and asks again.
    """

    def __init__(self, body: Buffer, meter: StoreMeter | None = None) -> None:
        self._view = memoryview(body)
        self._meter = meter
        self._at = 0
        self._allowed = 0

    def metered(self, meter: StoreMeter) -> SlicedBody:
        """The same bytes under a meter."""
        return SlicedBody(self._view, meter)

    def __len__(self) -> int:
        return self._view.nbytes

    def read(self, size: int = -1) -> memoryview:
        """The next bytes, never more than were allowed; empty at the end."""
        left = len(self) - self._at
        if left == 0:
            return self._view[:0]
        if self._allowed == 0:
            self._allowed = left if self._meter is None else self._meter.upload(left)
        count = min(left, self._allowed, left if size < 0 else size)
        piece = self._view[self._at : self._at + count]
        self._at += count
        self._allowed -= count
        return piece

    def seek(self, offset: int, whence: int = 0) -> int:
        """Back to the start, which is all that a new try needs. ValueError for any other place."""
        if offset != 0 or whence != 0:
            raise ValueError(f"a metered body only seeks to its start, not ({offset}, {whence})")
        self._at = self._allowed = 0
        return 0

    def tell(self) -> int:
        return self._at
