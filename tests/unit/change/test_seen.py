"""What is known of a topic before its broker is asked, and when a loaded one is left alone."""

from dataclasses import replace

import pytest

from tests.support.sim_broker_memory import NAME
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.change.disturb import Seen, must_wait, record_disturbance, see
from tiering_assets.ground.reasons import Reason
from tiering_assets.resources.metastore.cas import EditResult
from tiering_assets.resources.metastore.ledger_info import encode_managed_ledger
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace

PATH = managed_ledger_path(TOPIC)
HOUR = 3600.0


@pytest.fixture
def scene():
    scene = Scene()
    scene.idle()
    return scene


def version(scene):
    return scene.cluster.metadata.nodes[PATH].stat.version


def test_an_idle_topic_is_remembered_by_its_nodes_version(scene):
    assert see(scene.stack, TOPIC) == Seen(TopicPlace(TopicLoad.NOT_LOADED), version(scene))


def test_a_loaded_one_and_one_that_is_gone_are_not(scene):
    scene.broker.load(TOPIC)
    scene.wait(300)
    assert see(scene.stack, TOPIC).idle_version is None
    scene.broker.restart()
    scene.wait(300)
    del scene.cluster.metadata.nodes[PATH]
    assert see(scene.stack, TOPIC).idle_version is None


def test_nor_is_a_terminated_one_whose_load_leaves_no_trace(scene):
    topic, _node = scene.stack.topics.read(TOPIC)
    message = topic.message_copy()
    message.terminatedPosition.ledgerId, message.terminatedPosition.entryId = 0, 1
    scene.cluster.metadata.put(PATH, encode_managed_ledger(topic.with_message(message)))
    scene.wait(300)
    assert see(scene.stack, TOPIC).idle_version is None


@pytest.mark.parametrize(
    ("now", "changed", "idle"),
    [(7, False, True), (8, True, True), (8, False, False), (9, True, False), (7, True, False)],
)
def test_it_is_still_idle_while_nobody_but_we_wrote_the_node(now, changed, idle):
    edited = EditResult(path=PATH, version=now, czxid=1, changed=changed, attempts=1)
    assert Seen(TopicPlace(TopicLoad.NOT_LOADED), 7).still_idle(edited) is idle
    assert not Seen(TopicPlace(TopicLoad.UNKNOWN), None).still_idle(edited)


LOADED = TopicPlace(TopicLoad.LOADED, NAME)


def may_reload(scene, place, **limits):
    """None, or which budget is used up."""
    stack = scene.process()
    disturb = replace(stack.settings.disturb, **limits)
    stack = replace(stack, settings=replace(stack.settings, disturb=disturb))
    wait = must_wait(stack, TOPIC, Seen(place, None))
    return None if wait is None else (wait.reason, wait.detail.partition(" reloads")[0])


def test_one_that_nobody_has_loaded_is_asked_nothing(scene):
    scene.cluster.be_short(True)
    assert may_reload(scene, TopicPlace(TopicLoad.NOT_LOADED)) is None
    assert scene.broker.topics == {}


def test_bookies_that_run_short_come_before_what_the_topic_is_busy_with(scene):
    scene.cluster.be_short(True)
    wait = must_wait(scene.process(), TOPIC, Seen(LOADED, None))
    assert wait is not None
    assert wait.reason is Reason.BOOKIES_SHORT
    assert scene.broker.topics == {}


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"per_topic_hour_max": 2}, "this topic's 2"),
        ({"per_broker_hour_max": 1}, "its broker's 1"),
        ({"per_cluster_hour_max": 3}, "the cluster's 3"),
        ({"per_topic_hour_max": 3, "per_broker_hour_max": 2, "per_cluster_hour_max": 4}, None),
    ],
)
def test_reloads_of_the_last_hour_are_counted_by_topic_broker_and_cluster(scene, limits, told):
    def disturbed(ml_name, broker):
        record_disturbance(scene.stack, ml_name, broker, "test")

    disturbed(TOPIC, NAME)
    scene.wait(HOUR + 1)
    disturbed(TOPIC, NAME)
    disturbed(TOPIC, "broker-2:8080")
    disturbed("t/ns/persistent/other", "broker-2:8080")
    expected = None if told is None else (Reason.OVER_BUDGET, told)
    assert may_reload(scene, LOADED, **limits) == expected


def test_a_broker_that_is_not_known_has_no_budget_of_its_own(scene):
    record_disturbance(scene.stack, TOPIC, None, "test")
    unknown = TopicPlace(TopicLoad.UNKNOWN)
    assert may_reload(scene, unknown, per_broker_hour_max=1) is None
