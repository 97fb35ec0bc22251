"""Single entries of a ledger from its bookies: what they hold, and how much lies before them.

What the layout of a copy is searched with (offload_format/layout.py): a stored entry's header
carries the payload bytes of the ledger up to and including it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from tiering_assets.resources.bookkeeper.meter import ReadMeter
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.settings import BookieSettings
from tiering_assets.tasks.descriptors import LedgerSource


class PointReads(Protocol):
    """Both raise as LedgerReader does."""

    def payload(self, entry_id: int) -> bytes: ...

    def cumulative_length(self, entry_id: int) -> int:
        """Payload bytes of entries 0 to this one."""


OpenPoints = Callable[[BookieSettings, LedgerSource], AbstractContextManager[PointReads]]


class _Stored:
    def __init__(self, reader: LedgerReader) -> None:
        self._reader = reader

    def payload(self, entry_id: int) -> bytes:
        return bytes(self._reader.read_entry(entry_id).payload)

    def cumulative_length(self, entry_id: int) -> int:
        return self._reader.cumulative_length(entry_id)


@contextmanager
def stored_points(
    settings: BookieSettings, source: LedgerSource, *, meter: ReadMeter | None = None
) -> Iterator[PointReads]:
    """Entries as replicas have them, digest-verified."""
    with BookiePool(settings, source.addresses, meter=meter) as pool:
        yield _Stored(
            LedgerReader(
                source.metadata(settings.password.encode()),
                pool,
                settings,
                first_bookie_hint=source.ledger_id,
            )
        )
