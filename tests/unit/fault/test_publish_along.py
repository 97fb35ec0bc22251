"""What waits to be published goes out with a release's reload, unless it was tried and taken
back.
"""

import pytest

from tests.support.sim_scene import TOPIC, is_released
from tiering_assets.batch.release_batch import release_batch


@pytest.fixture
def waiting(scene):
    """Ledger 0 may be released; 1 was proven and taken back, as no broker could read it."""
    scene.publish()
    scene.past_the_lag()
    ledger_id = scene.fill(TOPIC)
    scene.broker.load(TOPIC)
    scene.broker.blind_until = scene.world.clock(600).timestamp()
    outcome = scene.offload(ledger_id)
    assert "the change was taken back" in str(outcome.error)
    scene.wait(1200)
    return outcome.certificate.record


def release(scene):
    """Release with what waits along: the results, and how often the topic was unloaded."""
    scene.broker.load(TOPIC)
    told = []
    scene.broker._told = lambda what, _ml_name: told.append(what)
    [outcome] = release_batch(scene.process(), [0], publish_waiting=True).outcomes
    return outcome.result, told.count("unloaded")


def test_a_copy_that_was_taken_back_goes_out_again_once_it_was_read(scene, waiting):
    result, unloads = release(scene)
    assert is_released(result)
    assert unloads == 1
    assert scene.context(waiting.ledger.ledger_id).uid == waiting.uid


def test_one_that_the_bookies_lost_is_not_tried_again_with_every_release(scene, waiting):
    """Its broker asks the bookies first, so that no context makes it readable."""
    ledger_id = waiting.ledger.ledger_id
    scene.broker.bookkeeper_first = True
    scene.world.monitor.excused.add(("alpha", ledger_id))
    scene.cluster.bookies.pop(ledger_id)
    result, unloads = release(scene)
    assert is_released(result)
    assert unloads == 1
    assert scene.context(ledger_id) is None
    assert not scene.is_quarantined(ledger_id, waiting.uid)


def test_one_that_is_broken_is_quarantined(scene, waiting):
    ledger_id = waiting.ledger.ledger_id
    scene.world.monitor.damaged.add(waiting.uid)
    scene.world.rot(waiting.data.key)
    result, unloads = release(scene)
    assert is_released(result)
    assert unloads == 1
    assert scene.context(ledger_id) is None
    assert scene.is_quarantined(ledger_id, waiting.uid)
