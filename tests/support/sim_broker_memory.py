"""A broker's memory of its topics: loaded once, trusted until its own write of the node fails.

Owns: loading reads the managed-ledger node and writes it; a write of its own that finds another
version fences the topic, so that its next use loads it again. While bookies are short no ledger can
be made, so nothing can be loaded, and what is loaded goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_cluster import SimCluster
from tests.support.sim_objects import entries_of
from tests.support.sim_offloader import DRIVER, Offloader
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import (
    BrokerError,
    BrokerNotFoundError,
    FormatError,
    MetadataConflictError,
    MetadataError,
)
from tiering_assets.resources.metastore.ledger_info import (
    ManagedLedger,
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.offload_context import OffloadContext, driver_properties
from tiering_assets.resources.metastore.store import NodeStat
from tiering_assets.resources.metastore.topic_names import (
    managed_ledger_path,
    parse_topic_name,
)

NAME = "127.0.0.1:8080"
STATS_AGE_S = 60.0
SHADOW = "-shadow"


@dataclass(slots=True)
class Loaded:
    """One topic in memory. `version` is that of the broker's own last read or write."""

    message: ml_pb2.ManagedLedgerInfo
    stat: NodeStat
    open_id: int
    loaded_at: float

    def info(self, ledger_id: int) -> ml_pb2.ManagedLedgerInfo.LedgerInfo | None:
        return next((i for i in self.message.ledgerInfo if i.ledgerId == ledger_id), None)


class Memory:
    """What a broker knows. `pause(seconds)` lets others act in between.

    `lag_s` is its own deletion lag, None when off. `told` hears of every change that it makes.
    """

    def __init__(
        self,
        cluster: SimCluster,
        objects: SimulatedObjectStore,
        *,
        now: Callable[[], float],
        pause: Callable[[float], None] = lambda _seconds: None,
        new_uid: Callable[[], UUID],
        told: Callable[[str, str], None] = lambda _what, _ml_name: None,
        lag_s: float | None = None,
        bookkeeper_first: bool = False,
    ) -> None:
        self.cluster, self.objects = cluster, objects
        self.lag_s, self.bookkeeper_first = lag_s, bookkeeper_first
        self.topics: dict[str, Loaded] = {}
        self.loading: set[str] = set()
        self.owned_until = -1.0
        self.blind_until = -1.0  # its offloader cannot reach the bucket
        self.unregistered_until = -1.0  # its session expired: it serves on, and nobody lists it
        self.offloader = Offloader(objects.bucket)
        self._now, self._pause, self._new_uid, self._told = now, pause, new_uid, told
        self._metadata = cluster.metadata.client(now)

    def readable(self, info: ml_pb2.ManagedLedgerInfo.LedgerInfo) -> list[bytes] | None:
        """All entries of a ledger as memory has it, or None: a reader would fail or stall."""
        context = info.offloadContext
        on_bookies = not context.complete or (
            self.bookkeeper_first and not context.bookkeeperDeleted
        )
        if on_bookies:
            if not self.cluster.has_node(info.ledgerId):
                return None
            return self.cluster.bookies.get(info.ledgerId)
        if self._now() < self.blind_until or not self.reads_ours(info.ledgerId):
            return None
        try:
            return entries_of(self.objects, uid_of(info), info.ledgerId)
        except FormatError:
            return None

    def reads_ours(self, ledger_id: int) -> bool:
        """Whether its offloader is set to our bucket where this ledger's topic is."""
        return self.offloader.reads_ours(namespace_of(self.cluster.owner[ledger_id]))

    # ----- how it is done

    def names(self) -> list[str]:
        """Managed ledgers that write ledgers of their own: no shadows."""
        return [name for name in self._managed_ledgers() if not name.endswith(SHADOW)]

    def _managed_ledgers(self) -> list[str]:
        prefix = "/managed-ledgers/"
        nodes = self.cluster.metadata.nodes
        return [p.removeprefix(prefix) for p in nodes if p.startswith(prefix) and p.count("/") == 5]

    def load(self, ml_name: str) -> Loaded:
        found = self.topics.get(ml_name)
        if found is not None:
            return found
        if ml_name in self.loading:
            raise BrokerError(f"{ml_name}: being loaded")
        self.loading.add(ml_name)
        try:
            return self._load_anew(ml_name)
        finally:
            self.loading.discard(ml_name)
            self.owned_until = self._now() + STATS_AGE_S

    def _load_anew(self, ml_name: str) -> Loaded:
        if self.cluster.is_short:
            raise BrokerError(f"{ml_name}: NotEnoughBookiesException: no ledger can be made")
        node = self._metadata.get(managed_ledger_path(ml_name))
        if node is None:
            raise BrokerNotFoundError(f"{ml_name}: no such topic")
        message = parse(node.data)
        for ledger_id in [i.ledgerId for i in message.ledgerInfo if not i.timestamp]:
            self.cluster.close_ledger(ledger_id)
            self._seal(message, ledger_id)
        open_id = self._add_open(message, ml_name)
        loaded = Loaded(message, node.stat, open_id, self._now())
        self._pause(0.02)
        if not self._store(ml_name, loaded):
            raise BrokerError(f"{ml_name}: BadVersion while loading")
        self.topics[ml_name] = loaded
        return loaded

    def _seal(self, message: ml_pb2.ManagedLedgerInfo, ledger_id: int) -> None:
        """Write an open ledger's counts, or drop an empty one."""
        info = next(i for i in message.ledgerInfo if i.ledgerId == ledger_id)
        entries = self.cluster.written.get(ledger_id, [])
        if not entries:
            message.ledgerInfo.remove(info)
            self.cluster.delete_ledger(ledger_id)
            return
        info.entries, info.size = len(entries), sum(map(len, entries))
        info.timestamp = int(self._now() * 1000)

    def _add_open(self, message: ml_pb2.ManagedLedgerInfo, ml_name: str) -> int:
        ledger_id = self.cluster.create_ledger(ml_name)
        message.ledgerInfo.add(ledgerId=ledger_id, timestamp=0)
        return ledger_id

    def _store(self, ml_name: str, loaded: Loaded) -> bool:
        """Write the node by the version in memory; BadVersion fences the topic."""
        before = self.topics.get(ml_name)
        path = managed_ledger_path(ml_name)
        view: ManagedLedger = decode_managed_ledger(loaded.message.SerializeToString())
        try:
            if (node := self._metadata.get(path)) is None or node.stat.czxid != loaded.stat.czxid:
                raise MetadataConflictError(f"{path}: another node")
            loaded.stat = self._metadata.set(
                path, encode_managed_ledger(view), expected_version=loaded.stat.version
            )
        except MetadataError:
            if before is loaded:
                del self.topics[ml_name]
            return False
        self._told("written", ml_name)
        return True

    def _delete_all(self, info: ml_pb2.ManagedLedgerInfo.LedgerInfo) -> None:
        self.cluster.delete_ledger(info.ledgerId)
        if info.offloadContext.HasField("uidMsb"):
            key = f"{uid_of(info)}-ledger-{info.ledgerId}"
            self.objects.delete(key)
            self.objects.delete(f"{key}-index")


def parse(data: bytes) -> ml_pb2.ManagedLedgerInfo:
    return decode_managed_ledger(data).message_copy()


def topic_of(ml_name: str) -> str:
    tenant, namespace, _persistent, name = ml_name.split("/")
    return f"persistent://{tenant}/{namespace}/{name}"


def ml_name_of(topic: str) -> str:
    return parse_topic_name(topic).managed_ledger_name


def namespace_of(ml_name: str) -> str:
    return ml_name.rsplit("/", 2)[0]


def uid_of(info: ml_pb2.ManagedLedgerInfo.LedgerInfo) -> UUID:
    mask = (1 << 64) - 1
    context = info.offloadContext
    return UUID(int=(context.uidMsb & mask) << 64 | context.uidLsb & mask)


def halves(uid: UUID) -> tuple[int, int]:
    high, low = divmod(uid.int, 1 << 64)
    return tuple(h - (1 << 64) if h >= 1 << 63 else h for h in (high, low))  # type: ignore[return-value]


def complete(
    info: ml_pb2.ManagedLedgerInfo.LedgerInfo, uid: UUID, now_ms: int, bucket: str
) -> None:
    context = OffloadContext(
        uid=uid,
        complete=True,
        timestamp_ms=now_ms,
        driver_name=DRIVER,
        properties=driver_properties(driver=DRIVER, bucket=bucket, region="us-east-1", endpoint=""),
    )
    info.offloadContext.complete = True
    info.offloadContext.timestamp = context.timestamp_ms
    info.offloadContext.driverMetadata.name = context.driver_name
    for key, value in context.properties.items():
        info.offloadContext.driverMetadata.properties.add(key=key, value=value)
