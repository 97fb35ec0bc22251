"""What a run must be let do with metadata nodes, asked before it writes anything, a claim included.

Owns: each topic's node is asked about once a run. Rights that are lost later fail the write itself.
"""

from __future__ import annotations

from resources.metastore.topic_names import managed_ledger_path
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.eligibility import owner_of


class Rights:
    """Remembers which topics' nodes this run may read and write."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._granted: set[str] = set()
        self.owners: dict[int, str] = {}
        """Managed ledger of each ledger that was asked about, where BookKeeper names one."""

    def require(self, ledger_id: int) -> None:
        """Raise MetadataError naming the node and the right that a ledger's offload would lack.

        What is not there, or names no topic, is not judged here.
        """
        metadata = self._stack.metadata
        node = self._stack.ledgers.read(ledger_id)
        owner = None if node is None else owner_of(node.metadata)
        if owner is None or "/" not in owner:
            return
        self.owners[ledger_id] = owner
        if owner in self._granted:
            return
        path = managed_ledger_path(owner)
        metadata.get(path)
        metadata.require_writable(path)
        self._granted.add(owner)
