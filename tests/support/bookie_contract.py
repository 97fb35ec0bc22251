"""What any bookie must do for our client: the same round trips against the simulator and real ones.

Each function writes a ledger through `LedgerWriter`, reads it back through `LedgerReader`, and
raises AssertionError where the two differ. `next_ledger_id`, `create` and `close` come from the
caller: with a real cluster they store the metadata, with simulators they may do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support.ledger_writer import LedgerWriter
from tiering_assets.resources.bookkeeper.ledger import DigestType, LedgerMetadata
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.settings import BookieSettings

PASSWORD = b"contract"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Three bookies or more, a pool that reaches them, and where metadata goes."""

    pool: BookiePool
    bookies: Sequence[str]
    next_ledger_id: Callable[[], int]
    create: Callable[[LedgerMetadata], None]
    close: Callable[[LedgerMetadata], None]
    settings: BookieSettings


def payload_of(entry_id: int) -> bytes:
    """Sizes from empty to some KiB, different bytes in each."""
    size = (entry_id * 37) % 3000
    return (entry_id.to_bytes(4, "big") * (size // 4 + 1))[:size]


def write_ledger(
    cluster: Cluster,
    *,
    entries: int,
    digest_type: DigestType = DigestType.CRC32C,
    ensemble_size: int = 3,
    write_quorum: int = 3,
    ack_quorum: int = 2,
    password: bytes = PASSWORD,
    change_ensemble_at: int | None = None,
) -> LedgerMetadata:
    """Write a ledger of `payload_of` entries; the other ensemble is the first one rotated."""
    ensemble = list(cluster.bookies[:ensemble_size])
    writer = LedgerWriter(
        cluster.pool,
        ledger_id=cluster.next_ledger_id(),
        ensemble=ensemble,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        create=cluster.create,
        close=cluster.close,
        digest_type=digest_type,
        password=password,
    )
    for entry_id in range(entries):
        if entry_id == change_ensemble_at:
            others = [b for b in cluster.bookies if b not in ensemble]
            writer.change_ensemble([*ensemble[1:], *(others or ensemble)[:1]])
        writer.add(payload_of(entry_id))
    return writer.close()


def check_reads_back(cluster: Cluster, metadata: LedgerMetadata, *, replica: int = 0) -> None:
    """Every entry once, in order, with its bytes and cumulative length."""
    reader = LedgerReader(metadata, cluster.pool, cluster.settings)
    expected_id, length = 0, 0
    if metadata.last_entry_id >= 0:
        for batch in reader.iter_batches(
            first_entry_id=0, last_entry_id=metadata.last_entry_id, replica=replica
        ):
            for entry_id, payload, cumulative_length in batch:
                expected = payload_of(expected_id)
                length += len(expected)
                assert (entry_id, cumulative_length) == (expected_id, length)
                assert payload == expected
                expected_id += 1
        last = reader.read_entry(metadata.last_entry_id)
        assert last.payload == payload_of(metadata.last_entry_id)
        assert reader.cumulative_length(metadata.last_entry_id) == metadata.length
    assert expected_id == metadata.last_entry_id + 1
    assert length == metadata.length


def check_digest_round_trip(cluster: Cluster, digest_type: DigestType) -> None:
    check_reads_back(cluster, write_ledger(cluster, entries=200, digest_type=digest_type))


def check_striping(cluster: Cluster) -> None:
    """Ensemble 3, write quorum 2: single reads, each bookie lacks every third entry."""
    metadata = write_ledger(cluster, entries=200, ensemble_size=3, write_quorum=2)
    check_reads_back(cluster, metadata)
    check_reads_back(cluster, metadata, replica=1)


def check_ensemble_change(cluster: Cluster) -> None:
    metadata = write_ledger(
        cluster, entries=120, ensemble_size=2, write_quorum=2, change_ensemble_at=50
    )
    assert [s.first_entry_id for s in metadata.segments] == [0, 50]
    check_reads_back(cluster, metadata)


def check_empty_ledger(cluster: Cluster) -> None:
    metadata = write_ledger(cluster, entries=0)
    assert (metadata.last_entry_id, metadata.length) == (-1, 0)
    check_reads_back(cluster, metadata)


def check_other_replica(cluster: Cluster) -> None:
    """An independent read comes from another bookie and gives the same bytes."""
    metadata = write_ledger(cluster, entries=60)
    check_reads_back(cluster, metadata, replica=0)
    check_reads_back(cluster, metadata, replica=1)


ALL_CHECKS: tuple[Callable[[Cluster], None], ...] = (
    check_striping,
    check_ensemble_change,
    check_empty_ledger,
    check_other_replica,
)
