"""What a publication would refuse is refused before a byte is copied, where asking loads nothing."""

import pytest

from resources.errors import BrokerError, RefusedError
from tests.support.sim_clients import Process
from tests.support.sim_offloader import Place
from tests.support.sim_world import World
from tiering_assets.records.models import Attempt
from tiering_assets.steps.pipeline import offload_batch

TOPIC = "t/ns/persistent/orders"


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def site(world):
    """Ledgers 0 and 1 are closed; the topic's broker would refuse, and says so only when asked."""
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.offloader.policies["t/ns"] = Place(bucket="elsewhere")
    site.broker.create_topic(TOPIC)
    for payload in (b"first", b"second"):
        site.broker.produce(TOPIC, [payload])
        site.broker.roll_over(TOPIC)
    world.scheduler.now += 120.0
    return site


@pytest.fixture
def stack(world, site):
    return Process(world, "asks", site).stack()


def attempts(stack):
    return [*stack.book.iter_records(Attempt, "attempts/")]


def closed(site):
    return sorted(i for i, owner in site.cluster.owner.items() if owner == TOPIC)[:2]


def test_a_refusal_comes_before_the_first_byte_and_is_asked_for_once(stack, site, monkeypatch):
    asked = []
    policies = stack.broker.effective_offload_policies

    def counted(topic):
        asked.append(topic)
        return policies(topic)

    monkeypatch.setattr(stack.broker, "effective_offload_policies", counted)
    outcomes = offload_batch(stack, closed(site))
    assert [one.state for one in outcomes] == ["failed", "failed"]
    for one in outcomes:
        assert isinstance(one.error, RefusedError)
        assert "nothing was copied" in str(one.error)
        assert "bucket is 'elsewhere'" in str(one.error)
        assert "correct store.bucket if ours is the mistake" in str(one.error)
    assert attempts(stack) == []
    assert len(asked) == 1


def test_who_does_not_publish_is_not_asked_about_it(stack, site):
    outcomes = offload_batch(stack, closed(site), publish=False)
    assert [one.state for one in outcomes] == ["verified", "verified"]


def test_a_broker_that_does_not_answer_leaves_it_to_the_publication(stack, site, monkeypatch):
    def away(_topic):
        raise BrokerError("connection refused")

    monkeypatch.setattr(stack.broker, "effective_offload_policies", away)
    outcomes = offload_batch(stack, closed(site))
    assert all(one.verified for one in outcomes)
    assert all(isinstance(one.error, BrokerError) for one in outcomes)


def test_a_topic_that_the_broker_does_not_list_yet_is_left_to_the_publication(
    stack, site, monkeypatch
):
    def away(_namespace):
        raise BrokerError("connection refused")

    monkeypatch.setattr(stack.broker, "list_topics", away)
    assert all(one.verified for one in offload_batch(stack, closed(site)))


def test_a_topic_that_nobody_has_loaded_is_not_asked(stack, site, world):
    site.broker.restart()
    world.scheduler.now += 120.0
    [outcome, _other] = offload_batch(stack, closed(site))
    assert outcome.verified
    assert isinstance(outcome.error, RefusedError)


def test_a_topic_that_goes_between_plan_and_question_is_told_by_who_copies(
    stack, site, monkeypatch
):
    first, second = closed(site)
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
