"""Entries of blocks, of sealed ledgers as well that lie on bookies alone.

Owns: one ledger is open at a time. Reads spend from the budgets of their topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

import numpy as np

from tiering_assets.cold.decode import Entries
from tiering_assets.cold.lockstep import PADDING
from tiering_assets.lineage.messages.block_entries import GetBytes, entries_in_object
from tiering_assets.lineage.messages.earlier_pieces import Read
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.resources.native.loader import core
from tiering_assets.tasks.descriptors import LedgerSource
from tiering_assets.tasks.point_reads import PointReads

OpenSource = Callable[[LedgerSource], AbstractContextManager[PointReads]]
Spending = Callable[[str], AbstractContextManager[object]]


@contextmanager
def reads_of_blocks(
    get: GetBytes,
    sources: Mapping[int, LedgerSource],
    open_source: OpenSource,
    spending: Spending,
) -> Iterator[Read]:
    """How blocks are read, each from where it lies.

    `get` reads bytes of objects, within budgets. Of ledgers on bookies `sources` tell where their
    entries are; `spending` is for a managed ledger. EntryUnavailableError where too few replicas
    have an entry.
    """
    with ExitStack() as opened:
        points: dict[int, PointReads] = {}

        def read(block: PlacedBlock) -> Entries:
            if not block.on_bookies:
                return entries_in_object(get, block)
            with spending(block.topic):
                if block.ledger_id not in points:
                    opened.close()
                    points.clear()
                    source = open_source(sources[block.ledger_id])
                    points[block.ledger_id] = opened.enter_context(source)
                found = points[block.ledger_id].payloads(block.first_entry_id, block.last_entry_id)
                return entries_of(block.ledger_id, block.first_entry_id, [*found])

        yield read


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
        core=core(),
    )
