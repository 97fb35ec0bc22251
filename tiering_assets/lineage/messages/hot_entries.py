"""Entries of sealed ledgers that lie on bookies alone.

Owns: one ledger is open at a time. Reads spend from the budgets of their topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Self

import numpy as np

from tiering_assets.cold.decode import Entries
from tiering_assets.cold.lockstep import PADDING
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.tasks.descriptors import LedgerSource
from tiering_assets.tasks.point_reads import PointReads

OpenSource = Callable[[LedgerSource], AbstractContextManager[PointReads]]
Spending = Callable[[str], AbstractContextManager[object]]


class HotReads:
    """`sources` tell of each ledger where its entries are; `spending` is for a managed ledger."""

    def __init__(
        self, sources: Mapping[int, LedgerSource], open_source: OpenSource, spending: Spending
    ) -> None:
        self._sources, self._open, self._spending = sources, open_source, spending
        self._exits = ExitStack()
        self._ledger_id: int | None = None
        self._points: PointReads | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exits.close()

    def entries(self, block: PlacedBlock) -> Entries:
        """Those of a block on bookies. EntryUnavailableError where too few replicas have one."""
        with self._spending(block.topic):
            points = self._points_of(block.ledger_id)
            payloads = [*points.payloads(block.first_entry_id, block.last_entry_id)]
        return entries_of(block.ledger_id, block.first_entry_id, payloads)

    def _points_of(self, ledger_id: int) -> PointReads:
        if self._points is None or self._ledger_id != ledger_id:
            self._exits.close()
            self._points = self._exits.enter_context(self._open(self._sources[ledger_id]))
            self._ledger_id = ledger_id
        return self._points


def entries_of(ledger_id: int, first_entry_id: int, payloads: Sequence[bytes]) -> Entries:
    """Entries that follow one another."""
    lengths = np.array([len(one) for one in payloads], np.int64)
    ends = np.cumsum(lengths)
    return Entries(
        ledger_id=ledger_id,
        data=np.frombuffer(b"".join([*payloads, PADDING]), np.uint8),
        ids=np.arange(first_entry_id, first_entry_id + len(payloads)),
        starts=ends - lengths,
        ends=ends,
    )
