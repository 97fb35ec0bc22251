"""Topics that nobody has loaded, on simulated servers, with their policies at an HTTP simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.support.admin_sim import AdminSimulator
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import BrokerError
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.store import Node
from tiering_assets.resources.metastore.topic_names import managed_ledger_path, parse_topic_name
from tiering_assets.resources.pulsar.retention import Inactivity
from tiering_assets.resources.settings import BrokerSettings

ORDERS, PLAIN = "t/ns/persistent/orders", "t/ns/persistent/plain"
DAY_S = 86_400


class Trimmer:
    """The simulated broker with retention: `trim_topic` takes sealed ledgers past `minutes`."""

    def __init__(self, broker: Any, world: World) -> None:
        self._broker, self._world = broker, world
        self.minutes = 60
        self.asked: list[str] = []
        self.refuses: BrokerError | None = None
        self.deaf = False  # loads the topic and trims nothing
        self.idle: Inactivity | BrokerError = Inactivity(
            deletes_topic=False, without_subscriptions=True, subscription_minutes=0
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def inactivity(self, _topic: str) -> Inactivity:
        if isinstance(self.idle, BrokerError):
            raise self.idle
        return self.idle

    def trim_topic(self, topic: str) -> None:
        ml_name = parse_topic_name(topic).managed_ledger_name
        self.asked.append(ml_name)
        if self.refuses is not None:
            raise self.refuses
        loaded = self._broker.load(ml_name)
        if self.deaf:
            return
        before_ms = int(self._world.clock(0).timestamp() * 1000) - self.minutes * 60_000
        for info in [*loaded.message.ledgerInfo]:
            if info.timestamp and info.timestamp < before_ms:
                loaded.message.ledgerInfo.remove(info)
        self._broker._store(ml_name, loaded)


class IdleTopics:
    """Two topics that nobody has loaded. Ledgers of nine bytes, closed a day ago but for the
    last.
    """

    def __init__(self, admin: AdminSimulator) -> None:
        self.world, self.admin = World(1), admin
        self.site = self.world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        self.broker = self.site.broker
        self.trimmer = Trimmer(self.broker, self.world)
        for name in (ORDERS, PLAIN):
            self.broker.create_topic(name)
            for _ in range(2):
                self.broker.produce(name, [b"first", b"last"])
                self.broker.roll_over(name)
            self.broker.produce(name, [b"first", b"last"])
            self.broker.unload_topic(f"persistent://{name.replace('/persistent', '')}")
        self.world.scheduler.now += DAY_S
        address = BrokerSettings(admin_url=admin.url, timeout_s=2)
        stack = Process(self.world, "cli", self.site).stack()
        self.stack = replace(
            stack, settings=replace(stack.settings, broker=address), broker=self.trimmer
        )
        admin.get("/brokers/configuration/runtime", {"clusterName": "c"})
        admin.get("/brokers/c", [])
        self.retain(60, -1)

    def retain(self, minutes: int, megabytes: int, *, ttl_s: int | None = None) -> None:
        self.namespace = {
            "retention_policies": {
                "retentionTimeInMinutes": minutes,
                "retentionSizeInMB": megabytes,
            },
            "message_ttl_in_seconds": ttl_s,
        }
        self.admin.get("/namespaces/t/ns", self.namespace)

    def ids(self, ml_name: str) -> list[int]:
        return [one.ledger_id for one in self._node(ml_name)[0].ledgers]

    def version(self, ml_name: str) -> int:
        return self._node(ml_name)[1].stat.version

    def _node(self, ml_name: str) -> tuple[ManagedLedger, Node]:
        found = self.stack.topics.read(ml_name)
        assert found is not None
        return found

    def subscribe(self, ml_name: str, name: str, position: Sequence[int] | None) -> None:
        info = ml_pb2.ManagedCursorInfo(cursorsLedgerId=-1)
        if position is not None:
            info.markDeleteLedgerId, info.markDeleteEntryId = position
        path = f"{managed_ledger_path(ml_name)}/{name}"
        self.site.cluster.metadata.put(path, info.SerializeToString())
