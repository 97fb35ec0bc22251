"""Entries of a ledger from its bookies: what they hold, and how much lies before them.

What the layout of a copy is searched with (offload_format/layout.py): a stored entry's header
carries the payload bytes of the ledger up to and including it. No read fences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.meter import ReadMeter
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.tail import TailLook, look_at_tail
from tiering_assets.resources.settings import BookieSettings
from tiering_assets.tasks.descriptors import LedgerSource


class PointReads(Protocol):
    """All raise as LedgerReader does."""

    def payload(self, entry_id: int) -> bytes: ...

    def payloads(self, first_entry_id: int, last_entry_id: int) -> Iterator[bytes]:
        """Of all entries from one to another, both included; where entries carry no digest, as
        replicas agree.
        """

    def cumulative_length(self, entry_id: int) -> int:
        """Payload bytes of entries 0 to this one."""


LookAtTail = Callable[[BookieSettings, LedgerSource], TailLook]
OpenPoints = Callable[[BookieSettings, LedgerSource], AbstractContextManager[PointReads]]


class _Stored:
    def __init__(self, reader: LedgerReader) -> None:
        self._reader = reader

    def payload(self, entry_id: int) -> bytes:
        return bytes(self._reader.read_entry(entry_id).payload)

    def payloads(self, first_entry_id: int, last_entry_id: int) -> Iterator[bytes]:
        is_unchecked = self._reader.metadata.digest_type is DigestType.DUMMY
        read = self._reader.iter_agreed if is_unchecked else self._reader.iter_runs
        for run in read(first_entry_id=first_entry_id, last_entry_id=last_entry_id):
            yield from (bytes(payload) for _id, payload, _length in run.entries())

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
                readable_to=source.readable_to(),
            )
        )


def stored_tail(
    settings: BookieSettings, source: LedgerSource, *, meter: ReadMeter | None = None
) -> TailLook:
    """What the newest ensemble of a ledger that is open confirms; see look_at_tail."""
    password = settings.password.encode()
    with BookiePool(settings, source.addresses, meter=meter) as pool:
        return look_at_tail(source.metadata(password), pool, password=password)
