"""What the broker does later, by itself, to a topic that we tiered: nothing lost, nothing
doubled.
"""

import json
from dataclasses import dataclass, replace
from itertools import chain, count

import pytest

from tests.support.live_topic import client_of
from tests.support.tiered_cluster import TieredCluster, tiered_cluster, wait_until
from tests.support.two_checkers import kinds, second_opinion
from tiering_assets.audit.audit import audit_store
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.clean.removals import observe_removals
from tiering_assets.ground.reasons import Reason
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.resources.devstack.traffic import (
    KIB,
    Content,
    Message,
    TopicSpec,
    content_of,
    iter_messages,
    produce,
)

pytestmark = pytest.mark.stack
NAMESPACE = "public/afterwards"
MESSAGES = 300  # in each ledger
NUMBERS = count(1)


@pytest.fixture(scope="module")
def cluster(stack_to_stop):
    with tiered_cluster(stack_to_stop) as connected:
        connected.make_namespace(NAMESPACE)
        yield connected


@dataclass
class Tiered:
    """A topic with two released ledgers, one that is only published, and an open one."""

    cluster: TieredCluster
    base: TopicSpec
    released: list[int]
    published: list[int]
    specs: list[TopicSpec]

    @property
    def topic(self) -> str:
        return f"persistent://{self.base.topic}"

    def keys(self, ledger_id: int) -> tuple[str, str]:
        uid = self.contexts[ledger_id].uid
        return data_key(uid, ledger_id), index_key(uid, ledger_id)

    def __post_init__(self) -> None:
        self.contexts = self.contexts_now()

    def contexts_now(self):
        listed = self.cluster.managed_ledger(self.base).ledgers
        ours = {*self.released, *self.published}
        return {one.ledger_id: one.offload for one in listed if one.ledger_id in ours}

    def another(self, messages: int) -> TopicSpec:
        """The spec of further messages, counted among those the topic must hold."""
        self.specs.append(replace(self.base, seed=len(self.specs), messages=messages))
        return self.specs[-1]

    def require_intact(self) -> None:
        """Every message once, our contexts as we wrote them, and every ledger in its state."""
        sent = content_of(chain.from_iterable(iter_messages(spec) for spec in self.specs))
        assert self.cluster.content(self.base) == sent
        assert self.contexts_now() == self.contexts
        views = self.cluster.views(self.base)
        assert [v.ledger_id for v in views] == sorted(v.ledger_id for v in views)
        assert self.cluster.ledger_ids(self.base, "released") == self.released
        state = {v.ledger_id: v.state.value for v in views}
        for ledger_id in self.published:
            assert state[ledger_id] in ("published", "release_due")  # the lag is but a second
        assert self.cluster.ledger_ids(self.base, "open") == [max(v.ledger_id for v in views)]


@pytest.fixture
def tiered(cluster):
    base = TopicSpec(
        topic=f"{NAMESPACE}/topic-{next(NUMBERS)}", messages=MESSAGES, payload_bytes=KIB, keys=7
    )
    specs = [replace(base, seed=seed) for seed in range(3)]
    with client_of(cluster.endpoints) as client:  # a durable cursor at the start keeps everything
        client.subscribe(f"persistent://{base.topic}", "keeper").close()
    cluster.fill(*specs)
    ledger_ids = cluster.ledger_ids(base)
    assert len(ledger_ids) == 3
    cluster.offload(ledger_ids)
    cluster.release(base, ledger_ids[:2])
    made = Tiered(cluster, base, ledger_ids[:2], ledger_ids[2:], specs)
    made.require_intact()
    return made


def test_rollover_and_unload(cluster, tiered):
    produce(cluster.endpoints, tiered.another(4100))  # rolls over twice while it is loaded
    tiered.require_intact()
    assert len(cluster.ledger_ids(tiered.base)) == 2
    cluster.seal(tiered.base)
    tiered.require_intact()
    produce(cluster.endpoints, tiered.another(100))
    tiered.require_intact()


def test_restart(cluster, tiered):
    produce(cluster.endpoints, tiered.another(100))
    cluster.restart_broker()
    cluster.steps.broker.internal_stats(tiered.topic)
    tiered.require_intact()
    produce(cluster.endpoints, tiered.another(100))
    tiered.require_intact()


def test_its_own_offload_of_another_ledger(cluster, tiered):
    cluster.fill(tiered.another(500), tiered.another(500))
    theirs = cluster.ledger_ids(tiered.base)
    assert len(theirs) == 2
    assert cluster.broker_offloads(tiered.base)["status"] == "SUCCESS"
    tiered.require_intact()
    by = {view.ledger_id: view.offloaded_by for view in cluster.views(tiered.base)}
    assert {by[i] for i in theirs} == {"broker"}
    assert {by[i] for i in (*tiered.released, *tiered.published)} == {"tierkeeper"}
    cluster.seal(tiered.base)
    tiered.require_intact()
    assert all(o.noop for o in cluster.offload([*tiered.released, *tiered.published]))


def test_trim(cluster, tiered):
    """Retention takes ledgers behind the slowest cursor, and the broker deletes our objects
    itself.
    """
    first, second = tiered.released
    [third] = tiered.published
    retention = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    with client_of(cluster.endpoints) as client:
        keeper = client.subscribe(tiered.topic, "keeper")
        assert _take(keeper, MESSAGES) == content_of(iter_messages(tiered.specs[0]))
        cluster.admin("POST", f"/namespaces/{NAMESPACE}/retention", json.dumps(retention).encode())
        try:
            _trim(cluster, tiered, [first])
            _audits_know(cluster, [first])
            assert [key in _bucket(cluster) for key in tiered.keys(second)] == [True, True]
            assert cluster.ledger_ids(tiered.base, "released") == [second]
            rest = content_of(chain.from_iterable(iter_messages(s) for s in tiered.specs[1:]))
            assert _take(keeper, 2 * MESSAGES) == rest
            last = tiered.another(50)
            produce(cluster.endpoints, last)
            _trim(cluster, tiered, [second, third])
            _audits_know(cluster, [second, third])
            assert cluster.steps.ledgers.read(third) is None  # published only: bookie copy as well
            assert _take(keeper, 50) == content_of(iter_messages(last))
        finally:
            retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
            cluster.admin(
                "POST", f"/namespaces/{NAMESPACE}/retention", json.dumps(retention).encode()
            )
    outcomes = offload_batch(cluster.steps, [first, second, third])
    assert {outcome.error for outcome in outcomes} == {None}
    assert [o.wait.reason for o in outcomes if o.wait is not None] == [Reason.EXPIRED] * 3


def _audits_know(cluster, ledger_ids) -> None:
    """Both checkers miss the objects until it is on record that the broker removed the ledgers."""
    steps, missing = cluster.steps, {("object_missing", i) for i in ledger_ids}
    for expected in (missing, set()):
        ours = audit_store(steps.objects, steps.settings, ledger_ids=ledger_ids)
        theirs, _forgotten = second_opinion(steps.objects, steps.instance, ledger_ids)
        assert kinds(ours.findings) == theirs == expected
        recorded = {ledger_id for ledger_id, _uid in observe_removals(steps).recorded}
        assert set(ledger_ids) <= recorded or not expected


def _take(consumer, messages: int) -> Content:
    """Receive and acknowledge exactly so many messages."""
    taken: list[Message] = []
    while len(taken) < messages:
        message = consumer.receive(timeout_millis=30_000)
        taken.append(
            Message(
                payload=message.data(), key=message.partition_key(), properties=message.properties()
            )
        )
        consumer.acknowledge(message)
    return content_of(taken)


def _bucket(cluster) -> set[str]:
    return {found.key for found in cluster.steps.objects.list_objects()}


def _trim(cluster, tiered, ledger_ids) -> None:
    """Have the broker trim until these ledgers and both objects of each are gone."""
    gone_keys = {key for ledger_id in ledger_ids for key in tiered.keys(ledger_id)}

    def trimmed() -> bool:
        cluster.admin("POST", f"/persistent/{tiered.base.topic}/trim")
        return not set(ledger_ids) & set(tiered.contexts_now()) and not gone_keys & _bucket(cluster)

    wait_until(trimmed, f"ledgers {ledger_ids} and their objects are trimmed")
