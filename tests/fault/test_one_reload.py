"""Reloads cost clients: what is due shares one, one bad half holds nothing up, busy topics are left
alone.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.fault_lab import certificate_of, wait_of
from tests.support.live_topic import client_of
from tests.support.tiered_cluster import wait_until
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.batch.release_batch import release_batch
from tiering_assets.change.disturb import see
from tiering_assets.change.publish import ToPublish, prepare_publication
from tiering_assets.change.topic_change import Confirmed, make_change
from tiering_assets.ground.reasons import NotNow, Reason
from tiering_assets.records import keys
from tiering_assets.records.models import Disturbance, Publication
from tiering_assets.release.work import Released
from tiering_assets.resources.devstack.traffic import produce

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("reloads")


def disturbances(stack, topic):
    """Why the topic was reloaded, by the records of this hour and the last, oldest first."""
    now = stack.objects.server_time()
    found = [
        stored.record
        for hour in (now - timedelta(hours=1), now)
        for stored in stack.book.iter_records(
            Disturbance,
            f"{keys.filed_in(keys.DISTURBANCES, hour)}{keys.topic_hash(topic.ml_name)}/",
        )
    ]
    assert all(record.broker is not None for record in found)
    return [record.why for record in sorted(found, key=lambda record: record.disturbed_at)]


def next_ledger(lab, topic):
    """Fill another ledger of the topic and close it; return its id."""
    produce(lab.endpoints, topic.spec)
    return lab.close_current(topic.spec.topic)[-1]


def one_due_one_waiting(lab, stack, topic):
    """A ledger whose lag has passed, and a certified one behind it; its outcome."""
    [published] = offload_batch(stack, [topic.ledger_id])
    assert published.state == "published"
    [waiting] = offload_batch(stack, [next_ledger(lab, topic)], publish=False)
    assert waiting.state == "verified"
    lab.older(stack)
    return waiting


def messages_of(lab, topic):
    import pulsar

    with client_of(lab.endpoints) as client:
        reader = client.create_reader(topic.name, pulsar.MessageId.earliest)
        count = 0
        while reader.has_message_available():
            reader.read_next(timeout_millis=30_000)
            count += 1
        return count


def test_a_release_publishes_what_waits_with_the_same_reload(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        waiting = one_due_one_waiting(lab, stack, topic)
        before = disturbances(stack, topic)
        [released] = release_batch(stack, [topic.ledger_id], publish_waiting=True).outcomes
        assert isinstance(released.result, Released)
        assert stack.ledgers.read(topic.ledger_id) is None
        assert disturbances(stack, topic)[len(before) :] == [
            "1 ledgers published and 1 ledgers marked for release"
        ]
        info, _node = stack.topics.read(topic.ml_name)
        context = info.ledger(waiting.ledger_id).offload
        assert context.uid == certificate_of(waiting).uid
        assert not context.bookkeeper_deleted
        published = stack.book.iter_records(Publication, keys.publications_of(topic.ml_name))
        assert [x.ledger_id for p in published for x in p.record.ledgers] == [
            topic.ledger_id,
            waiting.ledger_id,
        ]
    assert messages_of(lab, topic) == 2 * topic.spec.messages


def test_a_copy_that_the_broker_cannot_read_does_not_hold_up_a_release(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open(lab.with_section("publish", confirm_timeout_s=3.0)) as stack:
        waiting = one_due_one_waiting(lab, stack, topic)
        stack.objects.delete(certificate_of(waiting).data.key)
        [released] = release_batch(stack, [topic.ledger_id], publish_waiting=True).outcomes
        assert isinstance(released.result, Released)
        assert stack.ledgers.read(topic.ledger_id) is None
        info, _node = stack.topics.read(topic.ml_name)
        assert info.ledger(waiting.ledger_id).offload is None  # taken back: the bookies serve it
        assert stack.ledgers.read(waiting.ledger_id) is not None
    assert messages_of(lab, topic) == 2 * topic.spec.messages


def test_a_topic_with_too_many_consumers_is_neither_published_nor_released(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as stack, client_of(lab.endpoints) as client:
        [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
        client.subscribe(topic.name, "reports")
        version = stack.topics.read(topic.ml_name)[1].stat.version
        with lab.open(lab.with_section("disturb", consumers_max=0)) as strict:
            [left] = offload_batch(strict, [topic.ledger_id])
            wait = wait_of(left)
            assert wait.reason is Reason.LEFT_ALONE
            assert "1 consumers, disturb.consumers_max is 0" in wait.detail
            assert stack.topics.read(topic.ml_name)[1].stat.version == version

            [published] = offload_batch(stack, [topic.ledger_id])
            assert certificate_of(published).uid == certificate_of(outcome).uid
            lab.older(stack)
            wait_until(lambda: stack.broker.activity(topic.name).consumers == 1, "reconnected")
            result = release_topic(strict, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
            assert isinstance(result, NotNow)
            assert "disturb.consumers_max is 0" in str(result)
            assert stack.ledgers.read(topic.ledger_id) is not None
    lab.readable(topic, reloaded=True)


def test_a_topic_with_too_many_delayed_messages_is_left_alone(lab, namespace):
    import pulsar

    topic = lab.topic(namespace)
    settings = lab.with_section("disturb", delayed_messages_max=2)
    with lab.open(settings) as stack, client_of(lab.endpoints) as client:
        consumer = client.subscribe(topic.name, "later", pulsar.ConsumerType.Shared)
        producer = client.create_producer(topic.name, batching_enabled=False)
        for number in range(3):
            producer.send(b"%d" % number, deliver_after=timedelta(hours=1))
        wait_until(lambda: stack.broker.activity(topic.name).delayed_messages == 3, "three delayed")
        [outcome] = offload_batch(stack, [topic.ledger_id])
        wait = wait_of(outcome)
        assert wait.reason is Reason.LEFT_ALONE
        assert "3 delayed messages, disturb.delayed_messages_max is 2" in wait.detail
        assert lab.context_uid(stack, topic) is None
        assert disturbances(stack, topic) == []
        consumer.close()


@pytest.mark.parametrize("budget", ["per_topic_hour_max", "per_broker_hour_max"])
def test_a_spent_budget_makes_the_next_publication_wait(lab, namespace, budget):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [first] = offload_batch(stack, [topic.ledger_id])
        assert first.state == "published"
        second = next_ledger(lab, topic)
        spent = len(disturbances(stack, topic))
        assert spent >= 1
        with lab.open(lab.with_section("disturb", **{budget: 1})) as frugal:
            [outcome] = offload_batch(frugal, [second])
            wait = wait_of(outcome)
            assert wait.reason is Reason.OVER_BUDGET
            assert f"disturb.{budget} = 1" in wait.detail
            assert len(disturbances(stack, topic)) == spent
        [outcome] = offload_batch(stack, [second])
        assert outcome.state == "published"
        assert not outcome.verified  # certified by the run that had to wait


def unloaded_topic(lab, namespace):
    """A topic that no broker has, in a namespace whose canary stands."""
    topic, other = lab.topic(namespace), lab.topic(namespace)
    with lab.open() as stack:
        [canary] = offload_batch(stack, [other.ledger_id])
        assert canary.state == "published"
    let_go(lab, namespace, topic)
    return topic


def let_go(lab, namespace, topic):
    """Asking for a topic's policies made a broker own its bundle; make it give that up again."""
    lab.admin("PUT", f"/namespaces/{namespace}/unload")
    with lab.open() as stack:
        wait_until(lambda: stack.broker.locate(topic.name).broker is None, "nobody owns the bundle")


def test_a_topic_that_nobody_has_loaded_is_neither_loaded_nor_counted(lab, namespace):
    """It has no clients to disturb: published under a budget of nothing, and still not loaded."""
    topic = unloaded_topic(lab, namespace)
    with lab.open(lab.with_section("disturb", per_cluster_hour_max=0)) as stack:
        version = stack.topics.read(topic.ml_name)[1].stat.version
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.state == "published", outcome
        assert disturbances(stack, topic) == []
        # Loading it would have written its node a second time.
        assert stack.topics.read(topic.ml_name)[1].stat.version == version + 1
        lab.older(stack)
        let_go(lab, namespace, topic)
        result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, Released), result
        assert disturbances(stack, topic) == []
    lab.readable(topic)


def test_a_topic_loaded_after_it_was_seen_unloaded_is_reloaded(lab, namespace):
    topic = unloaded_topic(lab, namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
        seen = see(stack, topic.ml_name)
        assert seen.idle_version is not None
        lab.admin("GET", f"/persistent/{topic.spec.topic}/internalStats")  # loads it
        assert outcome.certificate is not None
        assert outcome.ml_czxid is not None
        certificates = {topic.ledger_id: outcome.certificate}
        order = ToPublish(certificates=certificates, ml_czxid=outcome.ml_czxid)
        work = prepare_publication(stack, topic.ml_name, order, seen)
        confirmed = make_change(
            stack, topic.ml_name, work.change, czxid=work.czxid, seen=seen, evidence=work.evidence
        )
        assert isinstance(confirmed, Confirmed)
        assert confirmed.by == "unload acknowledged"
        assert disturbances(stack, topic) == ["1 ledgers published"]
    lab.readable(topic)
