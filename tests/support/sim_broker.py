"""A broker as the lab found it: it trusts its memory of a topic until it writes the topic's node.

Owns: loading reads the managed-ledger node and writes it; from then on a write from outside is
ignored until the broker's own next write fails with BadVersion, which fences the topic, so that its
next use loads it again. What it serves, trims, offloads and releases is decided by its memory
alone. Reads go to the object of a complete context (decoded by our independent decoder), else to
bookies; a ledger that memory has on bookies and metadata has not is a reader that stalls for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tests.support.sim_broker_acts import Unasked
from tests.support.sim_broker_memory import NAME, STATS_AGE_S, ml_name_of, namespace_of, topic_of
from tiering_assets.resources.errors import (
    BrokerError,
    BrokerNotFoundError,
)
from tiering_assets.resources.pulsar.activity import TopicActivity
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace
from tiering_assets.resources.pulsar.offload_policies import EffectiveOffloadPolicies
from tiering_assets.resources.pulsar.schema_storage import StoredSchema

OTHER = "127.0.0.2:8080"


class SimBroker(Unasked):
    """BrokerAdmin, and what a broker does unasked."""

    told_schemas: Mapping[int, StoredSchema] = MappingProxyType({})

    # ----- BrokerAdmin

    def runtime_config(self) -> Mapping[str, str]:
        return self.offloader.runtime_config()

    def runtime_configs(self) -> Mapping[str, Mapping[str, str]]:
        return {NAME: self.runtime_config()}

    def version(self) -> str:
        return "4.0.8"

    def list_brokers(self) -> list[str]:
        """While its session is expired another broker, which has nothing loaded, is all there
        is.
        """
        return [OTHER if self._now() < self.unregistered_until else NAME]

    def answers(self, broker: str) -> bool:
        return broker in (NAME, OTHER)

    def namespace_ensemble(self, namespace: str) -> int | None:
        return None

    def topic_ensemble(self, topic: str) -> int | None:
        return None

    def list_topics(self, namespace: str) -> list[str]:
        return [topic_of(n) for n in self.names() if namespace_of(n) == namespace]

    def locate(
        self, topic: str, *, remembered: Sequence[str] = (), quiet_s: float = 0.0
    ) -> TopicPlace:
        name = ml_name_of(topic)
        if self._now() < self.unregistered_until and NAME not in remembered:
            return TopicPlace(TopicLoad.NOT_LOADED)  # by what is registered
        loaded = self.topics.get(name)
        if loaded is not None:
            if self._now() - loaded.loaded_at > STATS_AGE_S:
                return TopicPlace(TopicLoad.LOADED, NAME)
            return TopicPlace(TopicLoad.UNKNOWN, NAME)
        owned = bool(self.topics or self.loading) or self._now() < self.owned_until
        return TopicPlace(TopicLoad.UNKNOWN if owned else TopicLoad.NOT_LOADED)

    def unload_topic(self, topic: str) -> None:
        name = ml_name_of(topic)
        loaded = self.load(name)
        self.cluster.close_ledger(loaded.open_id)
        self.topics.pop(name, None)
        self._told("unloaded", name)

    def activity(self, topic: str) -> TopicActivity:
        self.load(ml_name_of(topic))
        return TopicActivity(consumers=0, delayed_messages=0, transactions=0)

    def internal_stats(self, topic: str) -> Mapping[str, Any]:
        loaded = self.load(ml_name_of(topic))
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
        name = ml_name_of(topic)
        info = self.load(name).info(ledger_id)
        if info is None:
            raise BrokerNotFoundError(f"{topic}: no ledger {ledger_id}")
        entries = self.readable(info)
        if entries is None:
            raise BrokerError(f"{topic}: ledger {ledger_id} cannot be read")
        if not 0 <= entry_id < len(entries):
            raise BrokerNotFoundError(f"{topic}: ledger {ledger_id} has no entry {entry_id}")
        return entries[entry_id]

    def schemas(self, topic: str) -> Mapping[int, StoredSchema]:
        """Those that a test gave it to tell."""
        return self.told_schemas

    def effective_offload_policies(self, topic: str) -> EffectiveOffloadPolicies:
        self.owned_until = self._now() + STATS_AGE_S
        return self.offloader.effective(
            namespace_of(ml_name_of(topic)),
            lag_s=self.lag_s,
            bookkeeper_first=self.bookkeeper_first,
        )
