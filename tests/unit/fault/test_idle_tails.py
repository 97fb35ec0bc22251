"""The ledger that our own unload closed is published, too, and publishing it closes no further
one.
"""

import pytest

from tests.support.sim_scene import TAIL, TOPIC, scene_with_a_tail
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.records import keys
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture
def scene():
    return scene_with_a_tail()


def when_due(scene):
    """What a run does that may reload topics only where that is worth it."""
    return scene.offload(TAIL, when_due=True).state


def reloads(scene):
    return len([*scene.stack.book.keys(keys.DISTURBANCES)])


def listed(scene):
    """Ledgers of the topic that have entries, by id."""
    return [one.ledger_id for one in scene.stack.topics.read(TOPIC)[0].ledgers if one.entries]


def test_the_tail_of_a_loaded_topic_goes_out_by_one_reload_after_its_wait(scene):
    assert when_due(scene) == "waiting to disturb"
    scene.wait(DAY - HOUR)
    assert when_due(scene) == "waiting to disturb"
    assert reloads(scene) == 1
    scene.wait(HOUR)
    assert when_due(scene) == "published"
    assert reloads(scene) == 2


def test_publishing_a_tail_leaves_none_behind_however_often_it_is_asked(scene):
    for _cycle in range(10):
        scene.wait(DAY)
        scene.broker.load(TOPIC)
        offload_batch(scene.process(), listed(scene), when_due=True)
    assert listed(scene) == [0, TAIL]
    assert reloads(scene) == 2
    assert scene.context(TAIL).complete


def test_the_tail_of_a_topic_that_nobody_has_loaded_goes_out_at_once_and_loads_nothing(scene):
    scene.idle()
    version = scene.cluster.metadata.nodes[managed_ledger_path(TOPIC)].stat.version
    assert when_due(scene) == "published"
    assert TOPIC not in scene.broker.topics
    assert reloads(scene) == 1
    after = scene.cluster.metadata.nodes[managed_ledger_path(TOPIC)].stat.version
    assert after == version + 1  # ours alone: nobody loaded it


def test_a_topic_that_a_broker_may_have_is_not_taken_for_idle(scene):
    scene.broker.create_topic("t/ns/persistent/other")
    scene.broker.restart()
    scene.broker.load("t/ns/persistent/other")  # of the same bundle
    assert when_due(scene) == "waiting to disturb"


def test_a_trickle_costs_one_reload_a_day(scene):
    for _hour in range(5 * 24):
        scene.broker.produce(TOPIC, [b"a little"])
        scene.wait(HOUR)
        scene.broker.load(TOPIC)
        offload_batch(scene.process(), listed(scene), when_due=True)
    assert 4 <= reloads(scene) - 1 <= 5
