"""The topics of a cluster as the metadata store has them.

Owns: which managed ledgers belong to topics. They are found by a parent named `persistent`, not by
depth: legacy names are one level deeper. It only reads; changes go through cas.edit_node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import tee

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.cursors import CursorInfo, decode_cursor
from tiering_assets.resources.metastore.ledger_info import ManagedLedger, decode_managed_ledger
from tiering_assets.resources.metastore.store import MetadataStore, Node
from tiering_assets.resources.metastore.topic_names import (
    MANAGED_LEDGERS_ROOT,
    PERSISTENT,
    decode_name,
    managed_ledger_path,
)


def decode_topic(node: Node) -> ManagedLedger:
    """What a managed ledger's node says. FormatError, with the node's path, when that is
    nothing.
    """
    try:
        return decode_managed_ledger(node.data)
    except FormatError as error:
        raise FormatError(f"metadata node {node.path}: {error}") from error


class TopicDirectory:
    """Reads managed ledgers and cursors. Any method may raise MetadataError or FormatError."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def read(self, ml_name: str) -> tuple[ManagedLedger, Node] | None:
        """One managed ledger with the node it was read from, or None if it does not exist."""
        node = self._store.get(managed_ledger_path(ml_name))
        return None if node is None else (decode_topic(node), node)

    def read_many(self, ml_names: Iterable[str]) -> Iterator[tuple[str, Node | None]]:
        """The nodes of many managed ledgers in their order, undecoded; None does not exist.

        Requests overlap (store.READS_AT_ONCE): 10,000 nodes take seconds from a store that answers
        in 20 ms, one after the other minutes. `topic_in` decodes one.
        """
        asked, sent = tee(ml_names)
        yield from zip(asked, self._store.get_many(map(managed_ledger_path, sent)), strict=True)

    def read_all(self) -> Iterator[tuple[str, Node | None]]:
        """The same of all persistent topics."""
        return self.read_many(self.iter_managed_ledgers())

    def iter_managed_ledgers(self) -> Iterator[str]:
        """Names of the managed ledgers of all persistent topics, legacy ones included."""
        self._store.sync(MANAGED_LEDGERS_ROOT)
        for tenant in self._store.children(MANAGED_LEDGERS_ROOT):
            for second in self._store.children(managed_ledger_path(tenant)):
                prefix = f"{tenant}/{second}"  # tenant/namespace, or tenant/cluster
                for third in self._store.children(managed_ledger_path(prefix)):
                    if third == PERSISTENT:
                        yield from self._below(f"{prefix}/{PERSISTENT}")
                        continue
                    for fourth in self._store.children(managed_ledger_path(f"{prefix}/{third}")):
                        if fourth == PERSISTENT:
                            yield from self._below(f"{prefix}/{third}/{PERSISTENT}")

    def in_namespace(self, namespace: str) -> Iterator[str]:
        """Names of the managed ledgers of one namespace's persistent topics."""
        yield from self._below(f"{namespace}/{PERSISTENT}")

    def cursors(self, ml_name: str) -> dict[str, CursorInfo]:
        """Durable cursors by subscription name (decoded); one deleted meanwhile is left out."""
        path = managed_ledger_path(ml_name)
        names = self._store.children(path)
        nodes = self._store.get_many(f"{path}/{name}" for name in names)
        return {
            decode_name(name): decode_cursor(node.data)
            for name, node in zip(names, nodes, strict=True)
            if node is not None
        }

    def _below(self, parent: str) -> Iterator[str]:
        for name in self._store.children(managed_ledger_path(parent)):
            yield f"{parent}/{name}"
