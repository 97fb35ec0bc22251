"""Cumulative payload lengths of a ledger's entries, by point reads from the bookies.

What the layout of a copy is searched with (offload_format/layout.py): a stored entry's header
carries the payload bytes of the ledger up to and including it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tiering_assets.resources.bookkeeper.meter import ReadMeter
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.settings import BookieSettings
from tiering_assets.tasks.descriptors import LedgerSource

CumulativeLength = Callable[[int], int]
OpenLengths = Callable[[BookieSettings, LedgerSource], AbstractContextManager[CumulativeLength]]


@contextmanager
def stored_lengths(
    settings: BookieSettings, source: LedgerSource, *, meter: ReadMeter | None = None
) -> Iterator[CumulativeLength]:
    """Payload bytes of entries 0 to a given one; its calls may raise as LedgerReader does."""
    with BookiePool(settings, source.addresses, meter=meter) as pool:
        reader = LedgerReader(
            source.metadata(settings.password.encode()),
            pool,
            settings,
            first_bookie_hint=source.ledger_id,
        )
        yield reader.cumulative_length
