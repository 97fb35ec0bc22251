"""Many things, so many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def lots_of(things: Sequence[T], most: int) -> list[Sequence[T]]:
    """In their order; none where there is nothing."""
    return [things[at : at + most] for at in range(0, len(things), most)]
