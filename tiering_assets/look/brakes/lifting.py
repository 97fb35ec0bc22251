"""Take a hold or a pause away: first the record of who did so and why, then the delete.

Owns: that order, by the digest of what lies there, so one that cannot be read is lifted like any
other.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from hashlib import sha256

from tiering_assets.ground.stack import Stack
from tiering_assets.resources.errors import ObjectNotFoundError


class Taken(Enum):
    """What became of a brake that was to be taken away."""

    AWAY = "away"
    BY_ANOTHER = "somebody else lifted it at the same time"
    NOT_THERE = "there was no such brake"


def take_away(stack: Stack, key: str, note: Callable[[str], None]) -> Taken:
    """Delete a brake's record; `note` writes down, by its digest, that this is about to be done."""
    found = stack.objects.get(stack.book.prefix + key)
    if found is None:
        return Taken.NOT_THERE
    note(sha256(found.body).hexdigest())
    try:
        stack.book.delete(key)
    except ObjectNotFoundError:
        return Taken.BY_ANOTHER
    return Taken.AWAY
