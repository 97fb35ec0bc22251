"""One simulated Pulsar cluster's storage: its metadata tree, its bookies, and what was ever
written.

Owns the truth that invariants are judged by: `written` keeps every entry that a producer got
acknowledged, whatever becomes of its copies. Bookies keep a ledger's entries until a collection
finds that its metadata node is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.support.metastore_sim import Cluster
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.ledger_metadata import (
    decode_ledger_metadata,
    encode_ledger_metadata,
)

BOOKIE = "10.0.0.1:3181"
LAYOUT = b"2\norg.apache.bookkeeper.meta.FlatLedgerManagerFactory:1"
ROOT = "/ledgers"


class SimCluster:
    """Ledger nodes, bookies and their instance id. `clock_ms` is the metadata store's clock."""

    def __init__(self, instance: str, clock_ms: Callable[[], int]) -> None:
        self.instance = instance
        self.metadata = Cluster(clock_ms)
        self.metadata.put(f"{ROOT}/INSTANCEID", instance.encode())
        self.metadata.put(f"{ROOT}/LAYOUT", LAYOUT)
        self.metadata.put(f"{ROOT}/available/{BOOKIE}", b"")
        self.bookies: dict[int, list[bytes]] = {}
        self.written: dict[int, list[bytes]] = {}
        self.owner: dict[int, str] = {}
        # Ledgers that a broker took from their topic: when, and the node that listed them last.
        self.taken: dict[int, tuple[int, bytes]] = {}
        self.unconfirmed = 0  # entries that lie above the last add confirmed of an open ledger
        self._next_id = 0

    @property
    def is_short(self) -> bool:
        """Fewer writable bookies than a new ledger needs; those that are there still answer
        reads.
        """
        return f"{ROOT}/available/{BOOKIE}" not in self.metadata.nodes

    def be_short(self, short: bool) -> None:
        """Let the bookie turn read-only, or writable again."""
        writable, readonly = (f"{ROOT}/available/{sub}{BOOKIE}" for sub in ("", "readonly/"))
        gone, there = (writable, readonly) if short else (readonly, writable)
        self.metadata.nodes.pop(gone, None)
        if there not in self.metadata.nodes:
            self.metadata.put(there, b"")

    @staticmethod
    def path(ledger_id: int) -> str:
        return f"{ROOT}/L{ledger_id:010d}"

    def has_node(self, ledger_id: int) -> bool:
        return self.path(ledger_id) in self.metadata.nodes

    def has_copy(self, ledger_id: int) -> bool:
        """Node and entries: a node from a backup may have outlived them."""
        return self.has_node(ledger_id) and ledger_id in self.bookies

    def create_ledger(self, ml_name: str) -> int:
        """An OPEN ledger that belongs to a managed ledger."""
        ledger_id = self._next_id
        self._next_id += 1
        self.bookies[ledger_id], self.written[ledger_id] = [], []
        self.owner[ledger_id] = ml_name
        self._write(ledger_id, self._metadata(ledger_id, closed=False))
        return ledger_id

    def append(self, ledger_id: int, payloads: Sequence[bytes]) -> None:
        self.bookies[ledger_id] += payloads
        self.written[ledger_id] += payloads

    def close_ledger(self, ledger_id: int) -> None:
        """CLOSED, with the last entry that a producer wrote; again is no change."""
        stored = self.metadata.nodes.get(self.path(ledger_id))
        if stored is None:
            return
        if decode_ledger_metadata(ledger_id, stored.data).state is not BookKeeperState.CLOSED:
            self._write(ledger_id, self._metadata(ledger_id, closed=True))

    def delete_ledger(self, ledger_id: int) -> None:
        """What a broker does: no version is expected, and gone is gone."""
        self.metadata.nodes.pop(self.path(ledger_id), None)

    def collect(self) -> None:
        """The bookies' garbage collection."""
        for ledger_id in [i for i in self.bookies if not self.has_node(i)]:
            del self.bookies[ledger_id]

    def _write(self, ledger_id: int, metadata: LedgerMetadata) -> None:
        path, data = self.path(ledger_id), encode_ledger_metadata(metadata)
        stored = self.metadata.nodes.get(path)
        if stored is None:
            self.metadata.put(path, data)
        else:
            self.metadata.client().set(path, data, expected_version=stored.stat.version)

    def _metadata(self, ledger_id: int, *, closed: bool) -> LedgerMetadata:
        entries = self.written[ledger_id]
        return LedgerMetadata(
            ledger_id=ledger_id,
            state=BookKeeperState.CLOSED if closed else BookKeeperState.OPEN,
            last_entry_id=len(entries) - 1 if closed else -1,
            length=sum(map(len, entries)) if closed else 0,
            ensemble_size=1,
            write_quorum=1,
            ack_quorum=1,
            digest_type=DigestType.CRC32C,
            password=b"",
            segments=(EnsembleFragment(0, (BOOKIE,)),),
            ctime_ms=self.metadata.clock_ms() if not closed else self._ctime_ms(ledger_id),
            custom={"pulsar/managed-ledger": self.owner[ledger_id].encode()},
        )

    def _ctime_ms(self, ledger_id: int) -> int | None:
        stored = self.metadata.nodes[self.path(ledger_id)]
        return decode_ledger_metadata(ledger_id, stored.data).ctime_ms
