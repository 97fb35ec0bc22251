"""A broker as the lab found it: it trusts its memory of a topic until it writes the topic's node.

Owns: loading reads the managed-ledger node and writes it; from then on a write from outside is
ignored until the broker's own next write fails with BadVersion, which fences the topic, so that its
next use loads it again. What it serves, trims, offloads and releases is decided by its memory alone.
Reads go to the object of a complete context (decoded by our independent decoder), else to bookies;
a ledger that memory has on bookies and metadata has not is a reader that stalls for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from resources._proto import MLDataFormats_pb2 as ml_pb2
from resources.bookkeeper.ledger_metadata import index_ledger_metadata
from resources.errors import (
    BrokerError,
    BrokerNotFoundError,
    FormatError,
    MetadataConflictError,
    MetadataError,
)
from resources.metastore.ledger_info import (
    ManagedLedger,
    decode_managed_ledger,
    encode_managed_ledger,
)
from resources.metastore.offload_context import OffloadContext, driver_properties
from resources.metastore.store import NodeStat
from resources.metastore.topic_names import (
    SHADOW_SOURCE_PROPERTY,
    managed_ledger_path,
    parse_topic_name,
)
from resources.pulsar.activity import TopicActivity
from resources.pulsar.admin import TopicLoad, TopicPlace
from resources.pulsar.offload_policies import EffectiveOffloadPolicies
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_cluster import SimCluster
from tests.support.sim_objects import entries_of, write_pair
from tests.support.sim_offloader import DRIVER, Offloader

NAME = "127.0.0.1:8080"
STATS_AGE_S = 60.0
_SHADOW = "-shadow"


@dataclass(slots=True)
class _Loaded:
    """One topic in memory. `version` is that of the broker's own last read or write."""

    message: ml_pb2.ManagedLedgerInfo
    stat: NodeStat
    open_id: int
    loaded_at: float

    def info(self, ledger_id: int) -> ml_pb2.ManagedLedgerInfo.LedgerInfo | None:
        return next((i for i in self.message.ledgerInfo if i.ledgerId == ledger_id), None)


class SimBroker:
    """BrokerAdmin, and what a broker does unasked. `pause(seconds)` lets others act in between.

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
        self.topics: dict[str, _Loaded] = {}
        self.loading: set[str] = set()
        self.owned_until = -1.0
        self.blind_until = -1.0  # its offloader cannot reach the bucket
        self.unregistered_until = -1.0  # its session expired: it serves on, and nobody lists it
        self.offloader = Offloader(objects.bucket)
        self._now, self._pause, self._new_uid, self._told = now, pause, new_uid, told
        self._metadata = cluster.metadata.client(now)

    # ----- BrokerAdmin

    def runtime_config(self) -> Mapping[str, str]:
        return self.offloader.runtime_config()

    def runtime_configs(self) -> Mapping[str, Mapping[str, str]]:
        return {NAME: self.runtime_config()}

    def version(self) -> str:
        return "4.0.8"

    def list_brokers(self) -> list[str]:
        return [NAME]

    def answers(self, broker: str) -> bool:
        return broker == NAME

    def namespace_ensemble(self, namespace: str) -> int | None:
        return None

    def topic_ensemble(self, topic: str) -> int | None:
        return None

    def list_namespaces(self) -> list[str]:
        return sorted({_namespace(ml_name) for ml_name in self.names()})

    def list_topics(self, namespace: str) -> list[str]:
        return [_topic_of(n) for n in self.names() if _namespace(n) == namespace]

    def locate(
        self, topic: str, *, remembered: Sequence[str] = (), quiet_s: float = 0.0
    ) -> TopicPlace:
        name = _ml_name(topic)
        if self._now() < self.unregistered_until:
            return TopicPlace(TopicLoad.NOT_LOADED)  # by what is registered
        loaded = self.topics.get(name)
        if loaded is not None:
            if self._now() - loaded.loaded_at > STATS_AGE_S:
                return TopicPlace(TopicLoad.LOADED, NAME)
            return TopicPlace(TopicLoad.UNKNOWN, NAME)
        owned = bool(self.topics or self.loading) or self._now() < self.owned_until
        return TopicPlace(TopicLoad.UNKNOWN if owned else TopicLoad.NOT_LOADED)

    def unload_topic(self, topic: str) -> None:
        name = _ml_name(topic)
        loaded = self.load(name)
        self.cluster.close_ledger(loaded.open_id)
        self.topics.pop(name, None)
        self._told("unloaded", name)

    def activity(self, topic: str) -> TopicActivity:
        self.load(_ml_name(topic))
        return TopicActivity(consumers=0, delayed_messages=0, transactions=0)

    def internal_stats(self, topic: str) -> Mapping[str, Any]:
        loaded = self.load(_ml_name(topic))
        return {
            "state": "LedgerOpened",
            "ledgers": [
                {
                    "ledgerId": info.ledgerId,
                    "entries": info.entries,
                    "size": info.size,
                    "offloaded": info.offloadContext.complete,
                }
                for info in loaded.message.ledgerInfo
            ],
        }

    def read_entry(self, topic: str, ledger_id: int, entry_id: int) -> bytes:
        name = _ml_name(topic)
        info = self.load(name).info(ledger_id)
        if info is None:
            raise BrokerNotFoundError(f"{topic}: no ledger {ledger_id}")
        entries = self.readable(info)
        if entries is None:
            raise BrokerError(f"{topic}: ledger {ledger_id} cannot be read")
        if not 0 <= entry_id < len(entries):
            raise BrokerNotFoundError(f"{topic}: ledger {ledger_id} has no entry {entry_id}")
        return entries[entry_id]

    def topic_properties(self, topic: str) -> Mapping[str, str]:
        return {}

    def shadow_topics(self, topic: str) -> list[str]:
        return []

    def effective_offload_policies(self, topic: str) -> EffectiveOffloadPolicies:
        self.owned_until = self._now() + STATS_AGE_S
        return self.offloader.effective(
            _namespace(_ml_name(topic)), lag_s=self.lag_s, bookkeeper_first=self.bookkeeper_first
        )

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
        shadow = f"{ml_name}{_SHADOW}"
        message = ml_pb2.ManagedLedgerInfo()
        message.properties.add(key=SHADOW_SOURCE_PROPERTY, value=_topic_of(ml_name))
        self.cluster.metadata.put(managed_ledger_path(shadow), message.SerializeToString())
        return shadow

    @property
    def shadows(self) -> dict[str, str]:
        """Managed ledgers of shadows, as metadata has them now, and their sources'."""
        found = [name for name in self._managed_ledgers() if name.endswith(_SHADOW)]
        return {name: name.removesuffix(_SHADOW) for name in found}

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
        if not self._store(ml_name, loaded):
            return None
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
        info.offloadContext.uidMsb, info.offloadContext.uidLsb = _halves(uid)
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
        if current is None or info is None or _uid(info) != uid:
            return False
        _complete(info, uid, int(self._now() * 1000), self.objects.bucket)
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
        message = loaded.message if loaded is not None else _parse(stored.data)
        for info in message.ledgerInfo:
            self._delete_all(info)
        self._told("deleted", ml_name)

    def restart(self) -> None:
        """Its memory is lost; open ledgers stay open until their topic is loaded again."""
        self.topics.clear()
        self.owned_until = -1.0

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
            return entries_of(self.objects, _uid(info), info.ledgerId)
        except FormatError:
            return None

    def reads_ours(self, ledger_id: int) -> bool:
        """Whether its offloader is set to our bucket where this ledger's topic is."""
        return self.offloader.reads_ours(_namespace(self.cluster.owner[ledger_id]))

    # ----- how it is done

    def names(self) -> list[str]:
        """Managed ledgers that write ledgers of their own: no shadows."""
        return [name for name in self._managed_ledgers() if not name.endswith(_SHADOW)]

    def _managed_ledgers(self) -> list[str]:
        prefix = "/managed-ledgers/"
        nodes = self.cluster.metadata.nodes
        return [p.removeprefix(prefix) for p in nodes if p.startswith(prefix) and p.count("/") == 5]

    def load(self, ml_name: str) -> _Loaded:
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

    def _load_anew(self, ml_name: str) -> _Loaded:
        if self.cluster.is_short:
            raise BrokerError(f"{ml_name}: NotEnoughBookiesException: no ledger can be made")
        node = self._metadata.get(managed_ledger_path(ml_name))
        if node is None:
            raise BrokerNotFoundError(f"{ml_name}: no such topic")
        message = _parse(node.data)
        for ledger_id in [i.ledgerId for i in message.ledgerInfo if not i.timestamp]:
            self.cluster.close_ledger(ledger_id)
            self._seal(message, ledger_id)
        open_id = self._add_open(message, ml_name)
        loaded = _Loaded(message, node.stat, open_id, self._now())
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

    def _store(self, ml_name: str, loaded: _Loaded) -> bool:
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
            key = f"{_uid(info)}-ledger-{info.ledgerId}"
            self.objects.delete(key)
            self.objects.delete(f"{key}-index")


def _parse(data: bytes) -> ml_pb2.ManagedLedgerInfo:
    return decode_managed_ledger(data).message_copy()


def _topic_of(ml_name: str) -> str:
    tenant, namespace, _persistent, name = ml_name.split("/")
    return f"persistent://{tenant}/{namespace}/{name}"


def _ml_name(topic: str) -> str:
    return parse_topic_name(topic).managed_ledger_name


def _namespace(ml_name: str) -> str:
    return ml_name.rsplit("/", 2)[0]


def _uid(info: ml_pb2.ManagedLedgerInfo.LedgerInfo) -> UUID:
    mask = (1 << 64) - 1
    context = info.offloadContext
    return UUID(int=(context.uidMsb & mask) << 64 | context.uidLsb & mask)


def _halves(uid: UUID) -> tuple[int, int]:
    high, low = divmod(uid.int, 1 << 64)
    return tuple(h - (1 << 64) if h >= 1 << 63 else h for h in (high, low))  # type: ignore[return-value]


def _complete(
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
