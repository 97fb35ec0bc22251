"""What every broker does that the steps rely on, the simulated one as well as the real one.

A test class inherits BrokerContract and gives one fixture, `lab`: a BrokerLab whose `fill` makes a
new topic with one sealed ledger, loaded by its broker, and returns its managed-ledger name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.change.topic_change import edit_topic
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records.keys import namespace_of
from tiering_assets.resources.errors import BrokerError, BrokerNotFoundError
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.offload_context import (
    OffloadContext,
    driver_properties,
    publish_contexts,
)
from tiering_assets.resources.pulsar.admin import TopicLoad


@dataclass(frozen=True)
class BrokerLab:
    """A cluster to try a broker of."""

    stack: Stack
    fill: Callable[[], str]

    def node(self, ml_name: str) -> tuple[ManagedLedger, int]:
        """The topic's node and its version, as the metadata store has them now."""
        found = self.stack.topics.read(ml_name)
        assert found is not None
        return found[0], found[1].stat.version

    def sealed(self, ml_name: str) -> int:
        """The topic's one sealed ledger."""
        [ledger_id] = [i.ledger_id for i in self.node(ml_name)[0].ledgers if not i.is_open]
        return ledger_id

    def offloaded(self, ml_name: str) -> dict[int, bool]:
        """What the broker remembers of each ledger."""
        ledgers = self.stack.broker.internal_stats(topic_of(ml_name))["ledgers"]
        return {int(one["ledgerId"]): bool(one["offloaded"]) for one in ledgers}

    def copy_and_write_context(self, ml_name: str) -> int:
        """Make a proven copy of the sealed ledger and name it in the node, telling no broker."""
        stack, ledger_id = self.stack, self.sealed(ml_name)
        [outcome] = offload_batch(stack, [ledger_id], publish=False)
        assert outcome.certificate is not None, outcome
        assert outcome.ml_czxid is not None
        store, driver = stack.settings.store, stack.settings.offload.driver
        context = OffloadContext(
            uid=outcome.certificate.record.uid,
            complete=True,
            timestamp_ms=int(stack.now().timestamp() * 1000),
            driver_name=driver,
            properties=driver_properties(
                driver=driver, bucket=store.bucket, region=store.region, endpoint=store.endpoint
            ),
        )
        edit_topic(
            stack,
            ml_name,
            lambda info: publish_contexts(info, {ledger_id: context}),
            czxid=outcome.ml_czxid,
            applied=lambda _info: False,
        )
        return ledger_id


class BrokerContract:
    def test_it_lists_its_topics_and_their_policies(self, lab):
        ml_name = lab.fill()
        broker, topic, namespace = lab.stack.broker, topic_of(ml_name), namespace_of(ml_name)
        assert topic in broker.list_topics(namespace)
        policies = broker.effective_offload_policies(topic)
        assert policies.bucket == lab.stack.settings.store.bucket
        assert (policies.driver or "").lower() == lab.stack.settings.offload.driver
        assert broker.runtime_config()["autoSkipNonRecoverableData"] == "false"

    def test_a_topic_that_does_not_exist_is_said_not_to(self, lab):
        topic = topic_of(lab.fill()) + "-never-made"
        with pytest.raises(BrokerNotFoundError):
            lab.stack.broker.internal_stats(topic)

    def test_a_topic_in_use_is_not_said_to_be_unloaded(self, lab):
        topic = topic_of(lab.fill())
        assert lab.stack.broker.locate(topic).load is not TopicLoad.NOT_LOADED

    def test_its_memory_lists_the_ledgers_of_the_node(self, lab):
        ml_name = lab.fill()
        remembered = lab.offloaded(ml_name)
        listed = {info.ledger_id for info in lab.node(ml_name)[0].ledgers}
        assert remembered == dict.fromkeys(listed, False)

    def test_unloading_is_acknowledged_again_and_again(self, lab):
        topic = topic_of(lab.fill())
        for _ in range(3):
            lab.stack.broker.unload_topic(topic)
        assert lab.stack.broker.activity(topic).consumers == 0

    def test_unloading_writes_nothing_and_loading_does(self, lab):
        ml_name = lab.fill()
        version = lab.node(ml_name)[1]
        lab.stack.broker.unload_topic(topic_of(ml_name))
        assert lab.node(ml_name)[1] == version
        lab.stack.broker.internal_stats(topic_of(ml_name))
        assert lab.node(ml_name)[1] > version

    def test_an_outside_write_is_ignored_until_the_topic_is_loaded_again(self, lab):
        ml_name = lab.fill()
        before = lab.offloaded(ml_name)
        ledger_id = lab.copy_and_write_context(ml_name)
        assert lab.offloaded(ml_name) == before
        lab.stack.broker.unload_topic(topic_of(ml_name))
        assert lab.offloaded(ml_name)[ledger_id]

    def test_what_it_reads_from_an_object_is_what_it_read_from_bookies(self, lab):
        ml_name = lab.fill()
        broker, topic, ledger_id = lab.stack.broker, topic_of(ml_name), lab.sealed(ml_name)
        last = lab.stack.ledgers.read(ledger_id).metadata.last_entry_id
        from_bookies = [broker.read_entry(topic, ledger_id, i) for i in (0, last)]
        lab.copy_and_write_context(ml_name)
        broker.unload_topic(topic)
        assert [broker.read_entry(topic, ledger_id, i) for i in (0, last)] == from_bookies

    def test_an_entry_that_does_not_exist_is_an_error(self, lab):
        ml_name = lab.fill()
        with pytest.raises(BrokerError):
            lab.stack.broker.read_entry(topic_of(ml_name), lab.sealed(ml_name) + 10_000, 0)
