"""Ledgers that need no partition any more: released long enough ago, or gone without us.

Reads only. Owns: what cannot be known keeps its partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys


def find_retirable(stack: Stack, ledger_ids: Iterable[int], *, seconds: float) -> Iterator[int]:
    """Of these, the ones whose release was recorded so long ago, and those nobody has any more."""
    now = stack.objects.server_time()
    for ledger_id in ledger_ids:
        released = [
            stored_at
            for key, stored_at in stack.book.stored_at(keys.releases_of(ledger_id)).items()
            if keys.is_release(key)
        ]
        if released:
            if now - max(released) >= timedelta(seconds=seconds):
                yield ledger_id
        elif stack.ledgers.read(ledger_id) is None:
            yield ledger_id
