"""What a broker does unasked: it serves producers, trims, offloads and releases by its memory
alone.
"""

from __future__ import annotations

from tests.support.sim_broker_memory import (
    SHADOW,
    Memory,
    complete,
    halves,
    parse,
    topic_of,
    uid_of,
)
from tests.support.sim_objects import write_pair
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.bookkeeper.ledger_metadata import index_ledger_metadata
from tiering_assets.resources.metastore.topic_names import (
    SHADOW_SOURCE_PROPERTY,
    managed_ledger_path,
)


class Unasked(Memory):
    """Its own doings; none of them asks for a certificate."""

    # ----- what it does unasked

    def create_topic(self, ml_name: str) -> None:
        self._metadata.create(
            managed_ledger_path(ml_name), ml_pb2.ManagedLedgerInfo().SerializeToString()
        )
        self.load(ml_name)

    def produce(self, ml_name: str, payloads: list[bytes]) -> None:
        loaded = self.load(ml_name)
        self.cluster.append(loaded.open_id, payloads)

    def roll_over(self, ml_name: str) -> None:
        """Seal the open ledger and write to a new one."""
        loaded = self.load(ml_name)
        if self.cluster.is_short or not self.cluster.written[loaded.open_id]:
            return  # it goes on with the ledger that it has
        self.cluster.close_ledger(loaded.open_id)
        self._seal(loaded.message, loaded.open_id)
        loaded.open_id = self._add_open(loaded.message, ml_name)
        self._store(ml_name, loaded)

    def make_shadow(self, ml_name: str) -> str:
        """A topic that reads this one's ledgers, from their bookie copies alone."""
        shadow = f"{ml_name}{SHADOW}"
        message = ml_pb2.ManagedLedgerInfo()
        message.properties.add(key=SHADOW_SOURCE_PROPERTY, value=topic_of(ml_name))
        self.cluster.metadata.put(managed_ledger_path(shadow), message.SerializeToString())
        return shadow

    @property
    def shadows(self) -> dict[str, str]:
        """Managed ledgers of shadows, as metadata has them now, and their sources'."""
        found = [name for name in self._managed_ledgers() if name.endswith(SHADOW)]
        return {name: name.removesuffix(SHADOW) for name in found}

    def drop_shadows(self) -> None:
        for shadow in self.shadows:
            self.cluster.metadata.nodes.pop(managed_ledger_path(shadow), None)

    def trim(self, ml_name: str, *, leaves: bool = False) -> int | None:
        """Let retention take the oldest sealed ledger; its objects and bookie copy go with it.

        `leaves` is a broker that dies before it deletes the objects.
        """
        loaded = self.load(ml_name)
        sealed = sorted(i.ledgerId for i in loaded.message.ledgerInfo if i.timestamp)
        if len(sealed) < 2:
            return None
        info = loaded.info(sealed[0])
        if info is None:
            return None
        gone = ml_pb2.ManagedLedgerInfo.LedgerInfo()
        gone.CopyFrom(info)
        loaded.message.ledgerInfo.remove(info)
        before = self.cluster.metadata.nodes[managed_ledger_path(ml_name)].data
        if not self._store(ml_name, loaded):
            return None
        self.cluster.taken[gone.ledgerId] = (self.cluster.metadata.clock_ms(), before)
        self._pause(0.05)
        if leaves:
            self.cluster.delete_ledger(gone.ledgerId)
        else:
            self._delete_all(gone)
        self._told("trimmed", ml_name)
        return gone.ledgerId

    def offload(self, ml_name: str, *, stops_after: int = 9, takes_s: float = 0.2) -> bool:
        """Offload the oldest sealed ledger without a context; `stops_after` steps it crashes.

        `takes_s` pass before its upload and again before it completes the context.
        """
        loaded = self.load(ml_name)
        ids = sorted(
            i.ledgerId
            for i in loaded.message.ledgerInfo
            if i.timestamp and not i.offloadContext.complete
        )
        info = loaded.info(ids[0]) if ids else None
        if info is None or not self.cluster.has_node(ids[0]) or not self.reads_ours(ids[0]):
            return False
        uid = self._new_uid()
        info.offloadContext.Clear()
        info.offloadContext.uidMsb, info.offloadContext.uidLsb = halves(uid)
        if not self._store(ml_name, loaded) or stops_after < 1:
            return False
        self._pause(takes_s)
        payloads = self.cluster.bookies.get(ids[0])
        stored = self.cluster.metadata.nodes.get(self.cluster.path(ids[0]))
        if payloads is None or stored is None or not payloads:
            return False
        write_pair(
            self.objects,
            uid=uid,
            ledger_id=ids[0],
            ml_name=ml_name,
            payloads=payloads,
            metadata=index_ledger_metadata(
                stored.data, ledger_id=ids[0], ctime_ms=stored.stat.ctime_ms
            ),
        )
        self._told("offloaded", ml_name)
        if stops_after < 2:
            return False
        self._pause(takes_s)
        current = self.topics.get(ml_name)
        info = None if current is None else current.info(ids[0])
        if current is None or info is None or uid_of(info) != uid:
            return False
        complete(info, uid, int(self._now() * 1000), self.objects.bucket)
        return self._store(ml_name, current)

    def release(self, ml_name: str) -> bool:
        """Apply its own deletion lag: it asks for no certificate."""
        if self.lag_s is None:
            return False
        loaded = self.load(ml_name)
        due = [
            i
            for i in loaded.message.ledgerInfo
            if i.offloadContext.complete
            and not i.offloadContext.bookkeeperDeleted
            and i.offloadContext.timestamp / 1000 + self.lag_s < self._now()
        ]
        for info in due:
            info.offloadContext.bookkeeperDeleted = True
        if not due or not self._store(ml_name, loaded):
            return False
        self._pause(0.05)
        for info in due:
            self.cluster.delete_ledger(info.ledgerId)
        self._told("released", ml_name)
        return True

    def delete_topic(self, ml_name: str) -> None:
        """The topic, its ledgers and the objects that its contexts name."""
        loaded = self.topics.pop(ml_name, None)
        stored = self.cluster.metadata.nodes.pop(managed_ledger_path(ml_name), None)
        if stored is None:
            return
        message = loaded.message if loaded is not None else parse(stored.data)
        for info in message.ledgerInfo:
            self.cluster.taken[info.ledgerId] = (self.cluster.metadata.clock_ms(), stored.data)
            self._delete_all(info)
        self._told("deleted", ml_name)

    def restart(self) -> None:
        """Its memory is lost; open ledgers stay open until their topic is loaded again."""
        self.topics.clear()
        self.owned_until = -1.0
