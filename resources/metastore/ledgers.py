"""BookKeeper's own metadata: ledgers, bookies, under-replication.

Owns: every question that is answered from below the ledgers root. It only reads: a ledger node is
deleted by the release step through the store's guarded delete. Absence is answered only when the
store said so; a store that cannot be asked raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tiering_assets.resources.bookkeeper.ledger import LedgerMetadata
from tiering_assets.resources.bookkeeper.ledger_metadata import decode_ledger_metadata
from tiering_assets.resources.errors import BookieError, MetadataError
from tiering_assets.resources.metastore.bookie_registration import (
    Address,
    BookieRegistration,
    address_in_id,
    decode_registration,
)
from tiering_assets.resources.metastore.ledger_paths import (
    LedgerLayout,
    decode_layout,
    ledger_id_at,
    ledger_path,
)
from tiering_assets.resources.metastore.store import MetadataStore, NodeStat

_READONLY = "readonly"
_NAMED_MAX = 8  # of the nodes that an error names
# First path levels that hold ledgers, by their width, with the levels that follow.
_LEVELS = ((re.compile(r"[0-9]{2}", re.ASCII), 2), (re.compile(r"[0-9]{3}", re.ASCII), 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerNode:
    """One read of a ledger's node; `data` may hold the ledger password and is not printed."""

    path: str
    metadata: LedgerMetadata
    stat: NodeStat
    data: bytes = field(repr=False)

    @property
    def ctime_ms(self) -> int:
        """Creation time as Pulsar puts it into an index: the node's, where the value has none."""
        return self.stat.ctime_ms if self.metadata.ctime_ms is None else self.metadata.ctime_ms


@dataclass(frozen=True, slots=True)
class AvailableBookies:
    writable: tuple[str, ...]
    readonly: tuple[str, ...]


class LedgerDirectory:
    """Reads BookKeeper's metadata. Every method may raise MetadataError; bad bytes FormatError."""

    def __init__(self, store: MetadataStore, ledgers_root: str = "/ledgers") -> None:
        self._store = store
        self._root = ledgers_root.rstrip("/")
        self._layout: LedgerLayout | None = None

    @property
    def layout(self) -> LedgerLayout:
        """How ledger ids map to paths; it never changes in the life of a cluster."""
        if self._layout is None:
            self._layout = decode_layout(self._required("LAYOUT", "is BookKeeper initialised?"))
        return self._layout

    def instance_id(self) -> str:
        """BookKeeper's INSTANCEID. MetadataError if the cluster has none."""
        data = self._required("INSTANCEID", "initialise the cluster's metadata with one")
        text = data.decode("ascii", errors="replace").strip()
        if not text or "/" in text or not text.isprintable() or "\ufffd" in text:
            raise MetadataError(f"{self._root}/INSTANCEID: expected an id, found {data[:60]!r}")
        return text

    def path(self, ledger_id: int) -> str:
        return ledger_path(self._root, ledger_id, self.layout)

    def read(self, ledger_id: int) -> LedgerNode | None:
        """One ledger, or None when the store says that it does not exist."""
        node = self._store.get(self.path(ledger_id))
        if node is None:
            return None
        return LedgerNode(
            path=node.path,
            metadata=decode_ledger_metadata(ledger_id, node.data),
            stat=node.stat,
            data=node.data,
        )

    def existing(self, ledger_ids: Iterable[int]) -> set[int]:
        """Those of these ledgers that have a node, by questions that overlap; no data is sent."""
        ids = [*ledger_ids]
        stats = self._store.stat_many(self.path(one) for one in ids)
        return {one for one, stat in zip(ids, stats, strict=True) if stat is not None}

    def list_ledger_ids(self) -> list[int]:
        """Ids of all ledgers, ascending; one that goes meanwhile may be missing."""
        self._store.sync(self._root)
        found = (ledger_id_at(self._root, path, self.layout) for path in self._leaf_paths())
        return sorted(ledger_id for ledger_id in found if ledger_id is not None)

    def under_replicated(self, ledger_id: int) -> bool:
        """Whether autorecovery has an entry for the ledger."""
        digits = f"{ledger_id:016x}"
        parts = "/".join(digits[start : start + 4] for start in range(0, 16, 4))
        base = f"{self._root}/underreplication/ledgers"
        return self._store.get(f"{base}/{parts}/urL{ledger_id:010d}") is not None

    def available_bookies(self) -> AvailableBookies:
        names = self._store.children(f"{self._root}/available")
        readonly = self._store.children(f"{self._root}/available/{_READONLY}")
        writable = tuple(name for name in names if name != _READONLY)
        return AvailableBookies(writable, tuple(readonly))

    def known_bookies(self) -> tuple[str, ...]:
        """Every bookie that ever started here, by its cookie; decommissioning takes that away."""
        return tuple(self._store.children(f"{self._root}/cookies"))

    def registrations(self) -> list[BookieRegistration]:
        """Addresses of every registered bookie."""
        bookies = self.available_bookies()
        found = (self._registration(bookie) for bookie in bookies.writable + bookies.readonly)
        return [item for item in found if item is not None]

    def bookie_addresses(self) -> dict[str, Address]:
        """RPC address of every registered bookie, by bookie id."""
        return {item.bookie_id: item.rpc for item in self.registrations()}

    def resolve(self, bookie_id: str) -> Address:
        """RPC address of one ensemble member; see `bookie`."""
        return self.bookie(bookie_id).rpc

    def bookie(self, bookie_id: str) -> BookieRegistration:
        """Addresses of one ensemble member. One that is down has no HTTP server.

        Raises:
            BookieError: not registered, so it is down, and its id is not an address to try anyway.
        """
        registration = self._registration(bookie_id)
        if registration is not None:
            return registration
        address = address_in_id(bookie_id)
        if address is None:
            raise BookieError(f"bookie {bookie_id}: not registered below {self._root}/available")
        return BookieRegistration(bookie_id=bookie_id, rpc=address, http=None)

    def _registration(self, bookie_id: str) -> BookieRegistration | None:
        for parent in ("available", f"available/{_READONLY}"):
            node = self._store.get(f"{self._root}/{parent}/{bookie_id}")
            if node is not None:
                return decode_registration(bookie_id, node.data)
        return None

    def _required(self, name: str, advice: str) -> bytes:
        node = self._store.get(f"{self._root}/{name}")
        if node is None:
            raise MetadataError(
                f"{self._root}/{name} does not exist: {self._elsewhere() or advice}"
            )
        return node.data

    def _elsewhere(self) -> str | None:
        """Where there is no tree of ledgers at all: what is there, and which settings say where."""
        if self._store.children(self._root):
            return None
        top = self._store.children("/")
        there = f"what is there is {', '.join(top[:_NAMED_MAX])}" if top else "nothing is there"
        return (
            f"the metadata store has no ledgers below {self._root}, {there}; correct the chroot of "
            f"metadata.store (zk:host:port/chroot), or metadata.ledgers_root"
        )

    def _leaf_paths(self) -> Iterator[str]:
        for name in self._store.children(self._root):
            if self.layout is LedgerLayout.FLAT:
                yield f"{self._root}/{name}"
                continue
            for pattern, levels in _LEVELS:
                if pattern.fullmatch(name):
                    yield from self._descend(f"{self._root}/{name}", levels)

    def _descend(self, path: str, levels: int) -> Iterator[str]:
        for name in self._store.children(path):
            child = f"{path}/{name}"
            if levels == 1:
                yield child
            else:
                yield from self._descend(child, levels - 1)
