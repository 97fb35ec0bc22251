"""An undo is done whatever the store of records says; what a broker may not know is written down
and told.
"""

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.change.confirm import list_unconfirmed, reload_topic, require_confirmed
from tiering_assets.change.topic_change import undo
from tiering_assets.change.topic_edit import Copy, TopicChange
from tiering_assets.ground.reasons import Reason
from tiering_assets.resources.errors import BrokerError, ObjectStoreError, RefusedError


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def stack(scene):
    return scene.process("undoer")


@pytest.fixture
def published(scene):
    """The context of ledger 0 stands, and a broker is known to have its topic loaded."""
    record = scene.publish().certificate.record
    scene.broker.load(TOPIC)
    scene.wait(120)
    return TopicChange(contexts={0: Copy(record.uid, record.ledger.last_entry_id)})


@pytest.fixture
def lost(scene):
    """The first record of an undo is not taken by the store."""

    def fail():
        raise ObjectStoreError("the store is away")

    scene.at_call("objects", "put", fail)


def take_back(scene, stack, change):
    czxid = stack.topics.read(TOPIC)[1].stat.czxid
    return undo(stack, TOPIC, change, czxid=czxid, why="a test")


def test_readers_get_their_data_back_though_no_record_could_be_written(scene, published, lost):
    stack = scene.process("undoer")
    assert take_back(scene, stack, published) is None
    assert scene.context() is None
    assert scene.withdrawals() == []


def test_the_context_of_another_attempt_stays(scene, stack, published):
    """Another run published its own copy meanwhile; that one is not ours to take back."""
    ours = TopicChange(contexts={0: Copy(stack.new_uid(), published.contexts[0].last_entry_id)})
    before = scene.context()
    assert take_back(scene, stack, ours) is None
    assert scene.context() == before


def test_what_no_broker_may_know_is_written_down_behind_the_undo_then(scene, published, lost):
    """Or nothing would tell the next run to unload the topic before it deletes anything."""
    stack = scene.process("undoer")
    scene.cluster.be_short(True)
    assert take_back(scene, stack, published).reason is Reason.UNDO_UNCONFIRMED
    assert scene.context() is None
    [left] = list_unconfirmed(stack)
    assert left.record.ledger_ids == (0,)


def test_what_waits_is_told_with_its_ledgers_where_they_are_known(scene, stack, published):
    scene.cluster.be_short(True)
    wait = take_back(scene, stack, published)
    assert wait.detail.startswith("its broker may not know what was taken back, as it has not")
    with pytest.raises(RefusedError, match="may not know what was taken back of ledgers 0, as it"):
        require_confirmed(stack, TOPIC)


def test_an_unload_that_nobody_acknowledges_is_an_error_in_the_end(scene, stack, published):
    tried = []

    def fail(topic):
        tried.append(topic)
        raise BrokerError("no answer")

    scene.broker.unload_topic = fail
    with pytest.raises(BrokerError, match="no unload was acknowledged in 4 s"):
        reload_topic(stack, TOPIC, why="a test")
    assert 3 <= len(tried) <= 6
