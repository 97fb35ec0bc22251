"""Topics that rest: until their node moves, a time comes, or what holds for all changes."""

from datetime import UTC, datetime, timedelta

import pytest

from tiering_assets.automation import resting as module
from tiering_assets.automation.resting import Rest, Resting

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TOPICS = {"a": 10, "b": 20, "c": 30}


@pytest.fixture(autouse=True)
def no_rotation(monkeypatch):
    monkeypatch.setattr(module, "ROTATED", 0)


@pytest.fixture
def resting():
    found = Resting()
    for topic, mzxid in TOPICS.items():
        found.rest(topic, Rest(mzxid=mzxid, until=None))
    return found


def test_a_topic_that_nobody_judged_is_up():
    assert Resting().awake(TOPICS, now=NOW) == ["a", "b", "c"]


def test_one_that_was_judged_rests_until_its_node_is_a_newer_one(resting):
    assert resting.awake(TOPICS, now=NOW) == []
    assert resting.awake({"a": 11, "b": 19, "c": 30}, now=NOW) == ["a"]


@pytest.mark.parametrize(("later", "up"), [(-1, []), (0, ["a"]), (1, ["a"])])
def test_one_that_rests_until_a_time_is_up_then(resting, later, up):
    resting.rest("a", Rest(mzxid=10, until=NOW))
    assert resting.awake(TOPICS, now=NOW + timedelta(seconds=later)) == up


def test_one_that_is_woken_is_up(resting):
    resting.wake("b")
    resting.wake("nobody")
    assert resting.awake(TOPICS, now=NOW) == ["b"]


def test_when_what_holds_for_all_changes_nobody_rests(resting):
    resting.begin(("policy", 1))
    assert resting.awake(TOPICS, now=NOW) == [*TOPICS]
    resting.rest("a", Rest(mzxid=10, until=None))
    resting.begin(("policy", 1))
    assert resting.awake(TOPICS, now=NOW) == ["b", "c"]
    resting.begin(("policy", 2))
    assert resting.awake(TOPICS, now=NOW) == ["a", "b", "c"]


def test_some_that_rest_longest_are_looked_at_all_the_same(resting, monkeypatch):
    monkeypatch.setattr(module, "ROTATED", 2)
    assert resting.awake(TOPICS, now=NOW) == ["a", "b"]
    for topic in ("a", "b"):
        resting.rest(topic, Rest(mzxid=TOPICS[topic], until=None))
    assert resting.awake(TOPICS, now=NOW) == ["a", "c"]
    assert resting.awake({**TOPICS, "a": 11}, now=NOW) == ["a", "b", "c"]


def test_topics_that_are_gone_are_forgotten(resting):
    assert resting.awake({"b": 20}, now=NOW) == []
    assert resting.awake(TOPICS, now=NOW) == ["a", "c"]
