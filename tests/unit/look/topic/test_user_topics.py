"""Which topics are looked at: users' own, each that can be read, and an outage is nobody's own."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.automation.choices import due_by_topic
from tiering_assets.look.topic.user_topics import (
    Topic,
    read_topics,
    readable_topics,
    user_topic_names,
)
from tiering_assets.resources.errors import FormatError, MetadataError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.metastore.topics import TopicDirectory

OTHER, GONE = "t/ns/persistent/other", "t/ns/persistent/gone"


@pytest.fixture
def scene():
    scene = Scene()
    scene.broker.create_topic(OTHER)
    return scene


def by_name(scene, names):
    return dict(read_topics(scene.process(), names))


@pytest.fixture(params=["many at once", "one by one"])
def way(request, monkeypatch):
    """The overlapping reads work, or fail and every topic is read alone."""
    if request.param == "one by one":

        def fails(_topics, _names):
            raise MetadataError("the session is gone")

        monkeypatch.setattr(TopicDirectory, "read_many", fails)


def test_a_topic_that_is_gone_is_nothing(scene, way):
    found = by_name(scene, [TOPIC, GONE])
    assert isinstance(found[TOPIC], Topic)
    assert found[GONE] is None
    assert [one.ml_name for one in readable_topics(scene.process(), [TOPIC, GONE])] == [TOPIC]


def test_a_shadow_is_none_of_ours(scene, way):
    """Its name is a user's; only its node tells."""
    shadow = scene.broker.make_shadow(TOPIC)
    assert shadow in user_topic_names(scene.process())
    assert by_name(scene, [TOPIC, shadow])[shadow] is None


def test_a_topic_that_says_nothing_readable_hides_no_other(scene, way):
    scene.cluster.metadata.put(managed_ledger_path(OTHER), b"\xff\xff")
    assert isinstance(by_name(scene, [OTHER])[OTHER], FormatError)
    said: list[str] = []
    stack = replace(scene.process(), narrate=said.append)
    assert [one.ml_name for one in readable_topics(stack, [OTHER, TOPIC])] == [TOPIC]
    assert said[0].startswith(f"{OTHER} is left out: ")


def test_a_topic_that_could_not_be_asked_for_is_an_error(scene, monkeypatch):
    """Otherwise a fleet would look smaller than it is."""

    def denied(_topics, _name):
        raise MetadataError("denied")

    def fails(_topics, _names):
        raise MetadataError("the session is gone")

    monkeypatch.setattr(TopicDirectory, "read_many", fails)
    monkeypatch.setattr(TopicDirectory, "read", denied)
    with pytest.raises(MetadataError, match="denied"):
        list(readable_topics(scene.process(), [TOPIC]))


def test_what_is_due_of_named_topics_is_of_them_alone(scene):
    due = scene.fill(OTHER)
    for ledger_id in (0, due):
        scene.publish(ledger_id)
    scene.past_the_lag()
    assert due_by_topic(scene.process()) == {TOPIC: [0], OTHER: [due]}
    assert due_by_topic(scene.process(), [OTHER]) == {OTHER: [due]}


def test_what_is_asked_for_a_topic_is_taken_from_its_budgets(scene):
    spent: list[str] = []
    rates = SimpleNamespace(of_topic=lambda ml_name: spent.append(ml_name))
    replace(scene.stack, rates=rates).spending_for(TOPIC)
    assert spent == [TOPIC]
