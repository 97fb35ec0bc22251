"""Two receive buffers, however large the ledger is."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.support.bookie_sim import BookieSim
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.settings import BookieSettings

MIB = 1024 * 1024
BATCH = 1 * MIB


def held_bytes():
    """Memory that modules of the client allocated and still hold."""
    ours = tracemalloc.Filter(inclusive=True, filename_pattern="*/resources/bookkeeper/*")
    snapshot = tracemalloc.take_snapshot().filter_traces([ours])
    return sum(s.size for s in snapshot.statistics("filename"))


@pytest.mark.parametrize("batches", [True, False])
def test_memory_does_not_grow_with_the_ledger(batches):
    codec = EntryCodec(ledger_id=3, digest_type=DigestType.CRC32C, password=b"")
    sizes = [10_000, 100_000, 200_000, 0, 700_000]  # some windows turn out larger than expected
    bodies = [bytes(size) for size in sizes]

    def stored(ledger_id, entry_id):
        size = sizes[entry_id % 5]
        del ledger_id
        return codec.encode(
            entry_id=entry_id,
            last_add_confirmed=entry_id - 1,
            cumulative_length=size,
            payload=bodies[entry_id % 5],
        )

    entries = 300  # 60 MB
    metadata = LedgerMetadata(
        ledger_id=3,
        state=BookKeeperState.CLOSED,
        last_entry_id=entries - 1,
        length=sum(sizes) * entries // 5,
        ensemble_size=1,
        write_quorum=1,
        ack_quorum=1,
        segments=(EnsembleFragment(0, ("bk",)),),
        digest_type=DigestType.CRC32C,
        password=b"",
    )
    settings = BookieSettings(batch_bytes_max=BATCH)
    with BookieSim("bk", stored=stored) as sim, BookiePool(settings, {"bk": sim.address}) as pool:
        sim.faults.reset_on_batch = not batches
        reader = LedgerReader(metadata, pool, settings)
        tracemalloc.start()
        try:
            peak_buffers = peak_held = total = 0
            for number, batch in enumerate(
                reader.iter_batches(first_entry_id=0, last_entry_id=entries - 1)
            ):
                total += sum(len(payload) for _, payload, _ in batch)
                peak_buffers = max(peak_buffers, pool.buffer_bytes)
                if number % 10 == 0:
                    peak_held = max(peak_held, held_bytes())
        finally:
            tracemalloc.stop()
    assert total == metadata.length
    assert peak_buffers <= 2 * BATCH
    # Single reads keep up to one batch of copies beside the receive buffer.
    assert 0 < peak_held <= 3 * BATCH
