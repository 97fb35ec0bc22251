"""Where a ledger that its topic lists no more may still be read."""

from itertools import chain
from uuid import UUID

import pytest

from tests.support.sim_broker_memory import complete, halves
from tests.support.sim_scene import Scene
from tiering_assets.clean.expired_rules import Expired
from tiering_assets.ground.reasons import NotNow
from tiering_assets.look.ledger.claims import claim_ledger
from tiering_assets.records import keys
from tiering_assets.records.models import Hold
from tiering_assets.resources.metastore.ledger_info import decode_managed_ledger
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.metastore.topics import TopicDirectory
from tiering_assets.retention.expired import plan_expired

OTHER = "t/ns/persistent/other"


@pytest.fixture
def trimmed():
    """Ledger 0 was released and trimmed; its objects are there still."""
    scene = Scene()
    scene.release_and_collect()
    uid = scene.context().uid
    scene.trim()
    scene.wait(3 * 86400)
    return scene, uid


def decision(scene):
    _plan, [found] = plan_expired(scene.process())
    return found.decision


def list_in_another_topic(scene, ledger_id, uid=None):
    """As somebody does who copies a topic's node; with `uid` as the copy of that attempt."""
    scene.broker.create_topic(OTHER)
    path = managed_ledger_path(OTHER)
    message = decode_managed_ledger(scene.cluster.metadata.nodes[path].data).message_copy()
    info = message.ledgerInfo.add(ledgerId=ledger_id, timestamp=1)
    if uid is not None:
        complete(info, uid, 1, "sim-bucket")
        info.offloadContext.uidMsb, info.offloadContext.uidLsb = halves(uid)
    scene.cluster.metadata.put(path, message.SerializeToString())
    scene.broker.restart()


def test_it_expires_when_nobody_else_has_it(trimmed):
    scene, _uid = trimmed
    assert isinstance(decision(scene), Expired)


@pytest.mark.parametrize("named", [False, True])
def test_what_another_topic_lists_or_names_is_kept(trimmed, named):
    scene, uid = trimmed
    list_in_another_topic(scene, 0, uid if named else None)
    found = decision(scene)
    assert isinstance(found, NotNow)
    assert f"{OTHER} may read it" in str(found)


def test_another_ledger_there_keeps_nothing(trimmed):
    scene, _uid = trimmed
    list_in_another_topic(scene, 77, UUID(int=5))
    assert isinstance(decision(scene), Expired)


def test_a_topic_that_goes_while_all_are_read_keeps_nothing(trimmed, monkeypatch):
    scene, _uid = trimmed
    really = TopicDirectory.read_all
    gone = [("t/ns/persistent/gone", None)]
    monkeypatch.setattr(TopicDirectory, "read_all", lambda topics: chain(really(topics), gone))
    assert isinstance(decision(scene), Expired)


def test_a_run_that_works_on_the_ledger_keeps_it(trimmed):
    scene, _uid = trimmed
    assert claim_ledger(scene.process("another"), 0) is None
    found = decision(scene)
    assert isinstance(found, NotNow)
    assert "a run holds a live claim" in str(found)


def test_a_claim_that_is_gone_keeps_nothing(trimmed):
    scene, _uid = trimmed
    scene.world.objects.delete(scene.stack.book.prefix + keys.claim(0))
    assert isinstance(decision(scene), Expired)


def test_a_shadow_keeps_it(trimmed):
    scene, _uid = trimmed
    scene.make_shadow()
    found = decision(scene)
    assert isinstance(found, NotNow)
    assert "may read it" in str(found)


def test_a_hold_keeps_it(trimmed):
    scene, _uid = trimmed
    held = Hold(ledger_id=0, reason="audit", author="kim", held_at=scene.stack.now())
    scene.stack.book.create(keys.hold(0), held)
    found = decision(scene)
    assert isinstance(found, NotNow)
    assert "held" in str(found)
