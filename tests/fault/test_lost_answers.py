"""Done, and the answer lost: the outcome is found by looking, never by assuming failure."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.support.fault_lab import certificate_of, error_of
from tests.support.http_proxy import Do, HttpProxy, once
from tests.support.topic_halves import release_topic
from tests.support.zookeeper_proxy import MULTI, SET_DATA, ZooKeeperProxy
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.release.work import Released

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("lost")


@pytest.fixture
def store_proxy(lab):
    with HttpProxy(lab.endpoints.s3_endpoint) as proxy:
        yield proxy


@pytest.fixture
def zookeeper_proxy(lab):
    with ZooKeeperProxy(lab.endpoints.zookeeper) as proxy:
        yield proxy


def through(lab, **ends):
    """Settings that reach one server by way of a proxy."""
    settings = lab.settings
    if "store" in ends:
        # Contexts name the endpoint, so the publisher itself talks to the real one.
        settings = replace(settings, store=replace(settings.store, endpoint=ends["store"]))
    if "metadata" in ends:
        store = f"zk:{ends['metadata']}"
        settings = replace(settings, metadata=replace(settings.metadata, store=store))
    if "broker" in ends:
        settings = replace(settings, broker=replace(settings.broker, admin_url=ends["broker"]))
    return settings


def publish_and_read(lab, topic):
    """Whatever a proxy did to the copy, publishing it directly must work and be readable."""
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.error is None
        assert outcome.state == "published"
        assert lab.assert_published_once(stack, topic) == certificate_of(outcome).uid
    lab.readable(topic, reloaded=True)
    return outcome


@pytest.mark.parametrize(
    ("method", "part"),
    [("POST", "uploadId="), ("POST", "uploads"), ("PUT", "partNumber=2"), ("PUT", "-index")],
    ids=["complete", "create_upload", "part", "index"],
)
def test_a_store_request_whose_answer_is_lost_is_looked_up(
    lab, namespace, store_proxy, method, part
):
    topic = lab.multi_block_topic(namespace)
    store_proxy.rule = once(method, part, Do.LOSE_ANSWER)
    with lab.open(through(lab, store=store_proxy.url)) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
        assert len(store_proxy.struck) == 1
        assert outcome.error is None
        assert outcome.verified
        key = certificate_of(outcome).data.key
        assert [*stack.objects.list_uploads(key)] == []  # not even one that nobody knew of
    published = publish_and_read(lab, topic)
    assert certificate_of(published).uid == certificate_of(outcome).uid


def test_an_upload_that_nobody_knows_of_is_swept_from_a_published_attempt(lab, namespace):
    topic = lab.topic(namespace)
    key = certificate_of(publish_and_read(lab, topic)).data.key
    with lab.open() as stack:
        stack.objects.create_upload(key, metadata={})
        assert lab.swept(stack, topic.ledger_id) == []  # the attempt itself stays
        assert [*stack.objects.list_uploads(key)] == []
    lab.readable(topic, reloaded=True)


def test_a_store_that_answers_503_now_and_then_only_costs_time(lab, namespace, store_proxy):
    topic = lab.multi_block_topic(namespace)
    dice = random.Random(5)
    store_proxy.rule = lambda _method, _path: Do.REFUSE if dice.random() < 0.2 else Do.PASS
    with lab.open(through(lab, store=store_proxy.url)) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
    assert store_proxy.struck
    assert outcome.error is None
    assert outcome.verified
    publish_and_read(lab, topic)


def test_a_store_that_answers_only_503_fails_the_ledger_and_leaves_nothing(
    lab, namespace, store_proxy
):
    topic = lab.multi_block_topic(namespace)
    settings = through(lab, store=store_proxy.url)
    settings = replace(settings, store=replace(settings.store, attempts_max=2))
    store_proxy.rule = lambda method, path: (
        Do.REFUSE if method == "PUT" and "partNumber=" in path else Do.PASS
    )
    with lab.open(settings) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
    error = error_of(outcome)
    assert error.exit_code == 21
    assert f"ledger {topic.ledger_id}" in str(error)
    assert "503" in str(error)
    lab.assert_no_secret(str(error))
    with lab.open() as stack:
        assert lab.leavings(stack, topic.ledger_id) == []
    publish_and_read(lab, topic)


def test_a_context_written_whose_answer_is_lost_is_published_once(lab, namespace, zookeeper_proxy):
    topic = lab.topic(namespace)
    with lab.open(through(lab, metadata=zookeeper_proxy.connect_string)) as stack:
        [verified] = offload_batch(stack, [topic.ledger_id], publish=False)
        assert verified.verified
        zookeeper_proxy.lose_answer_of(SET_DATA)
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert zookeeper_proxy.lost == 1
        assert outcome.error is None
        assert outcome.state == "published"
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


def test_a_delete_done_whose_answer_is_lost_is_a_release(lab, namespace, zookeeper_proxy):
    topic = lab.topic(namespace)
    with lab.open(through(lab, metadata=zookeeper_proxy.connect_string)) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.state == "published"
        lab.older(stack)
        zookeeper_proxy.lose_answer_of(MULTI)
        result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert zookeeper_proxy.lost == 1
        assert isinstance(result, Released)
        assert stack.ledgers.read(topic.ledger_id) is None
    lab.readable(topic, reloaded=True)


def test_an_unload_whose_answer_is_lost_is_repeated(lab, namespace):
    topic = lab.topic(namespace)
    with HttpProxy(lab.endpoints.admin_url, once("PUT", "/unload", Do.LOSE_ANSWER)) as proxy:
        with lab.open(through(lab, broker=proxy.url)) as stack:
            [outcome] = offload_batch(stack, [topic.ledger_id])
            lab.assert_published_once(stack, topic)
        assert len(proxy.struck) == 1
    assert outcome.error is None
    assert outcome.state == "published"
    lab.readable(topic, reloaded=True)
