"""A minimal ledger writer for tests and the demo: it creates, adds and closes, and recovers
nothing.

Owns: metadata is created before the first add (a bookie's garbage collection removes a ledger that
metadata does not list), and a ledger is closed at an entry that every replica has acknowledged.
The ack quorum goes into metadata only: this writer waits for the whole write quorum.
Refuses to go on after any failure; the ledger then stays OPEN.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tiering_assets.resources.bookkeeper.connection import Connection
from tiering_assets.resources.bookkeeper.digest import master_key
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.placement import write_set_of
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.bookkeeper.wire_v2 import AddEntry

SaveMetadata = Callable[[LedgerMetadata], None]


class LedgerWriter:
    """Writes one ledger; `create` and `close` get the metadata to store, OPEN and CLOSED."""

    def __init__(
        self,
        pool: BookiePool,
        *,
        ledger_id: int,
        ensemble: Sequence[str],
        write_quorum: int,
        ack_quorum: int,
        create: SaveMetadata,
        close: SaveMetadata,
        digest_type: DigestType = DigestType.CRC32C,
        password: bytes = b"",
        custom: Mapping[str, bytes] | None = None,
        in_flight_max: int = 64,
    ) -> None:
        if not 0 < ack_quorum <= write_quorum <= len(ensemble):
            raise ValueError(f"quorums {len(ensemble)}/{write_quorum}/{ack_quorum}")
        self._pool = pool
        self._close = close
        self._metadata = LedgerMetadata(
            ledger_id=ledger_id,
            state=BookKeeperState.OPEN,
            last_entry_id=-1,
            length=0,
            ensemble_size=len(ensemble),
            write_quorum=write_quorum,
            ack_quorum=ack_quorum,
            segments=(EnsembleFragment(0, tuple(ensemble)),),
            digest_type=digest_type,
            password=password,
            custom=dict(custom or {}),
        )
        self._codec = EntryCodec(ledger_id=ledger_id, digest_type=digest_type, password=password)
        self._master_key = master_key(password)
        self._in_flight_max = in_flight_max
        self._in_flight: deque[tuple[AddEntry, list[Connection]]] = deque()
        self._next_entry_id = 0
        self._length = 0
        self._confirmed = -1
        create(self._metadata)

    @property
    def metadata(self) -> LedgerMetadata:
        """As it would be stored now; CLOSED after `close`."""
        return self._metadata

    def add(self, payload: bytes) -> int:
        """Add one entry and return its id; acknowledged at the latest by `close`.

        Raises:
            BookieError: a bookie of the write set refused it or fell silent.
        """
        if self._metadata.state is not BookKeeperState.OPEN:
            raise ValueError(f"ledger {self._metadata.ledger_id} is closed")
        self._settle(self._in_flight_max - 1)
        entry_id = self._next_entry_id
        length = self._length + len(payload)
        stored = self._codec.encode(
            entry_id=entry_id,
            last_add_confirmed=self._confirmed,
            cumulative_length=length,
            payload=payload,
        )
        request = AddEntry(
            ledger_id=self._metadata.ledger_id,
            entry_id=entry_id,
            master_key=self._master_key,
            stored=stored,
        )
        bookies = write_set_of(
            self._metadata.segments[-1].bookies,
            write_quorum=self._metadata.write_quorum,
            entry_id=entry_id,
        )
        connections = [self._pool.connection(bookie_id) for bookie_id in bookies]
        for connection in connections:
            connection.submit(request)
        self._in_flight.append((request, connections))
        self._next_entry_id, self._length = entry_id + 1, length
        return entry_id

    def change_ensemble(self, ensemble: Sequence[str]) -> None:
        """Begin a new segment at the next entry, as a broker does when a bookie fails."""
        if len(ensemble) != self._metadata.ensemble_size:
            raise ValueError(f"an ensemble of {len(ensemble)}, not the ledger's size")
        self._settle(0)
        kept = tuple(s for s in self._metadata.segments if s.first_entry_id < self._next_entry_id)
        changed = EnsembleFragment(self._next_entry_id, tuple(ensemble))
        self._metadata = replace(self._metadata, segments=(*kept, changed))

    def close(self) -> LedgerMetadata:
        """Wait for every acknowledgement, store the CLOSED metadata and return it."""
        self._settle(0)
        self._metadata = replace(
            self._metadata,
            state=BookKeeperState.CLOSED,
            last_entry_id=self._next_entry_id - 1,
            length=self._length,
        )
        self._close(self._metadata)
        return self._metadata

    def _settle(self, in_flight_max: int) -> None:
        while len(self._in_flight) > in_flight_max:
            request, connections = self._in_flight.popleft()
            for connection in connections:
                connection.receive(request)
            self._confirmed = request.entry_id
