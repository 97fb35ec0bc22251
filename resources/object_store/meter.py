"""How a store client asks before it sends.

Owns: every try of a request asks anew, retries of the client library included. What the answers are
is the business of whoever gives the meter; without one nothing is asked.
"""

from __future__ import annotations

from typing import Protocol


class StoreMeter(Protocol):
    """Calls block until what they were asked for is within the budget."""

    def request(self) -> None:
        """Wait until one more request may be sent."""

    def upload(self, size: int) -> int:
        """Wait until some of `size` bytes may be sent now; how many, at least one."""

    def bounds_uploads(self) -> bool:
        """Whether `upload` has to be asked at all."""
