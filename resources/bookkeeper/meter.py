"""How reads from bookies ask before they are sent.

Owns nothing but the contract: a read's answer is not known before it comes, so the most that it can
be is taken for it, and what it was is told when it has come, or that this will never be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TakenRead(Protocol):
    """What was taken for one read. Bytes are those that come off the socket, prefix included."""

    @property
    def bytes_max(self) -> int: ...

    def settle(self, spent: int) -> None:
        """Tell what the answer was, once; `bytes_max` where it is not known."""


class ReadMeter(Protocol):
    """Bounds what bookies send to this side."""

    def take_reads(self, count: int) -> Sequence[TakenRead]:
        """Wait until so many answers may come; empty where nothing is bounded."""

    def reads_at_once(self) -> int | None:
        """How many reads may be on their way together; None where nothing is bounded."""
