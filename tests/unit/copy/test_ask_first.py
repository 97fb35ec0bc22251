"""What a publication would refuse is refused before a byte is copied, where asking loads
nothing.
"""

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.explain.ledger_report import report_ledger
from tiering_assets.records.models import Attempt
from tiering_assets.resources.errors import BrokerError, RefusedError


@pytest.fixture
def scene():
    """Two ledgers are closed; the topic's broker would refuse, and says so only when asked."""
    scene = Scene()
    scene.fill(TOPIC)
    scene.set_policy(bucket="elsewhere")
    return scene


@pytest.fixture
def stack(scene):
    return scene.stack


@pytest.fixture
def closed(scene):
    return sorted(i for i, owner in scene.cluster.owner.items() if owner == TOPIC)[:2]


def test_a_refusal_comes_before_the_first_byte_and_is_asked_for_once(stack, closed, monkeypatch):
    asked = []
    policies = stack.broker.effective_offload_policies

    def counted(topic):
        asked.append(topic)
        return policies(topic)

    monkeypatch.setattr(stack.broker, "effective_offload_policies", counted)
    outcomes = offload_batch(stack, closed)
    assert [one.state for one in outcomes] == ["failed", "failed"]
    for one in outcomes:
        assert isinstance(one.error, RefusedError)
        assert "nothing was copied" in str(one.error)
        assert "bucket is 'elsewhere'" in str(one.error)
        assert "correct store.bucket if ours is the mistake" in str(one.error)
    assert [*stack.book.iter_records(Attempt, "attempts/")] == []
    assert len(asked) == 1


def test_who_does_not_publish_is_not_asked_about_it(stack, closed):
    outcomes = offload_batch(stack, closed, publish=False)
    assert [one.state for one in outcomes] == ["verified", "verified"]


def test_a_broker_that_does_not_answer_leaves_it_to_the_publication(stack, closed, monkeypatch):
    def away(_topic):
        raise BrokerError("connection refused")

    monkeypatch.setattr(stack.broker, "effective_offload_policies", away)
    outcomes = offload_batch(stack, closed)
    assert all(one.verified for one in outcomes)
    assert all(isinstance(one.error, BrokerError) for one in outcomes)


def test_a_broker_that_does_not_list_its_topics_leaves_it_to_the_publication(
    stack, closed, monkeypatch
):
    def away(_namespace):
        raise BrokerError("connection refused")

    monkeypatch.setattr(stack.broker, "list_topics", away)
    assert all(one.verified for one in offload_batch(stack, closed))


def test_a_topic_that_nobody_has_loaded_is_not_asked(scene, stack, closed):
    scene.idle()
    [outcome, _other] = offload_batch(stack, closed)
    assert outcome.verified
    assert isinstance(outcome.error, RefusedError)


def test_a_topic_that_goes_between_plan_and_question_is_told_by_who_copies(
    stack, closed, monkeypatch
):
    first, second = closed
    reads = []
    read = stack.topics.read

    def counted(name):
        reads.append(name)
        return read(name)

    monkeypatch.setattr(stack.topics, "read", counted)
    offload_batch(stack, [first])
    question = len(reads)
    reads.clear()

    def gone(name):
        reads.append(name)
        return None if len(reads) == question else read(name)

    monkeypatch.setattr(stack.topics, "read", gone)
    [outcome] = offload_batch(stack, [second])
    assert outcome.verified


# ----- what `ledger show` asks


@pytest.mark.parametrize("state", ["verified", "published"])
def test_a_page_that_loads_nothing_asks_no_broker_about_an_idle_topic(state):
    scene = Scene()
    scene.certify() if state == "verified" else scene.publish()
    scene.idle()
    report = report_ledger(scene.process(), 0, loads_nothing=True)
    [reason] = report.reasons
    what = "publication" if state == "verified" else "release"
    assert reason.startswith(f"what its {what} would be refused for was not asked: no broker owns")
    assert report.next_step == "tierkeeper ledger show 0 --ask-topics asks all the same"
    assert scene.broker.topics == {}
    assert scene.world.scheduler.now > scene.broker.owned_until


@pytest.mark.parametrize("state", ["sealed", "verified", "published"])
def test_a_page_asks_about_a_topic_whose_bundle_a_broker_owns_or_that_may_be_loaded(state):
    scene = Scene()
    if state != "sealed":
        scene.certify() if state == "verified" else scene.publish()
    scene.broker.load(TOPIC)
    scene.wait(300)
    owned = report_ledger(scene.process(), 0, loads_nothing=True)
    assert "was not asked" not in str(owned.reasons)
    scene.idle()
    asked = report_ledger(scene.process(), 0)
    assert "was not asked" not in str(asked.reasons)
