"""Shadow and system topics, as the broker itself makes them: reasons, and nothing written."""

from __future__ import annotations

import time

import pytest

from tests.support.fault_lab import Topic, ml_name_of, wait_of
from tests.support.topic_halves import publication_work
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import NotNow, Reason
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.release.preview import plan_release
from tiering_assets.resources.devstack.traffic import TopicSpec, produce
from tiering_assets.resources.errors import RefusedError

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("untouched")


def assert_no_attempt(stack, ledger_id):
    assert [*stack.book.iter_records(Attempt, keys.attempts_of(ledger_id))] == []


def test_a_shadow_topic_is_neither_published_nor_released(lab, namespace):
    source = lab.topic(namespace)
    shadow = f"{namespace}/shadow"
    lab.admin("PUT", f"/persistent/{shadow}", {"PULSAR.SHADOW_SOURCE": source.name})
    lab.admin("PUT", f"/persistent/{source.spec.topic}/shadowTopics", [f"persistent://{shadow}"])
    lab.admin("GET", f"/persistent/{shadow}/internalStats")  # a broker loads it
    ml_name = ml_name_of(shadow)
    with lab.open() as stack:
        before = stack.topics.read(ml_name)
        assert before is not None
        with pytest.raises(RefusedError, match="shadow topic of") as refused:
            publication_work(stack, ml_name, {}, ml_czxid=before[1].stat.czxid)
        assert shadow in str(refused.value)
        [item] = plan_release(stack, ml_name, [source.ledger_id])
        assert isinstance(item.decision, NotNow)
        assert stack.topics.read(ml_name)[1].stat == before[1].stat


def test_the_topic_policies_of_a_namespace_wait(lab, namespace):
    topic = lab.topic(namespace)
    lab.admin("POST", f"/persistent/{topic.spec.topic}/maxProducers", 7)
    system = f"{namespace}/__change_events"
    with lab.open() as stack:
        ml_name = ml_name_of(system)
        deadline = time.monotonic() + 60
        while stack.topics.read(ml_name) is None:
            assert time.monotonic() < deadline, f"{system} never appeared"
            time.sleep(0.1)
        ledger_id = lab.close_current(system)[-1]
        [outcome] = offload_batch(stack, [ledger_id])
        wait = wait_of(outcome)
        assert wait.reason is Reason.NEVER_TOUCHED
        assert "__change_events" in wait.detail
        assert_no_attempt(stack, ledger_id)


def test_a_functions_topic_waits(lab):
    spec = TopicSpec(topic="public/functions/assignments", messages=2, payload_bytes=100)
    with lab.open() as stack:
        if "public/functions" not in lab.admin("GET", "/namespaces/public"):
            lab.admin("PUT", "/namespaces/public/functions", {})
        produce(lab.endpoints, spec)
        ledger_id = lab.close_current(spec.topic)[-1]
        topic = Topic(spec=spec, ml_name=ml_name_of(spec.topic), ledger_id=ledger_id)
        [outcome] = offload_batch(stack, [topic.ledger_id])
        wait = wait_of(outcome)
        assert wait.reason is Reason.NEVER_TOUCHED
        assert "functions" in wait.detail
        assert_no_attempt(stack, topic.ledger_id)
    lab.admin("DELETE", f"/persistent/{spec.topic}?force=true")
