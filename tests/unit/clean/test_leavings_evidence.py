"""What decides whether an attempt's leavings may go: each fact alone, everything else in favour."""

import pytest

from tests.support.left_behind import leave_unproven, made_again_from_a_backup
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.clean.leavings_evidence import decide_leavings
from tiering_assets.clean.orphans import Sweep
from tiering_assets.ground.reasons import NotNow, not_now
from tiering_assets.look.ledger.claims import claim_ledger
from tiering_assets.look.ledger.quarantine import quarantine, win_outcome
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt


@pytest.fixture
def scene():
    scene = Scene()
    yield scene
    assert scene.world.monitor.found == []


@pytest.fixture
def left(scene):
    """Nobody proved it, its topic lists the ledger, the bookies have it, and no run works on it."""
    return leave_unproven(scene)


def decide(scene, attempt):
    return decide_leavings(scene.process(), attempt)[0]


def test_it_may_go_once_the_bookies_gave_the_ledger(scene, left):
    assert decide(scene, left) == Sweep(0, left.record.uid, unserved=True)


def test_of_a_ledger_that_no_topic_lists_it_may_go_unread(scene, left):
    scene.fill(TOPIC)
    scene.broker.load(TOPIC)
    assert scene.broker.trim(TOPIC) == 0
    assert decide(scene, left) == Sweep(0, left.record.uid)


def test_of_a_topic_that_is_gone_it_may_go_unread(scene, left):
    scene.broker.delete_topic(TOPIC)
    assert decide(scene, left) == Sweep(0, left.record.uid)


def test_a_run_that_works_on_the_ledger_keeps_it(scene, left):
    assert claim_ledger(scene.process("another"), 0) is None
    found = decide(scene, left)
    assert isinstance(found, NotNow)
    assert str(found) == "a run holds a live claim on the ledger"


def test_a_claim_that_is_gone_keeps_nothing(scene, left):
    scene.world.objects.delete(scene.stack.book.prefix + keys.claim(0))
    assert isinstance(decide(scene, left), Sweep)


def lose(scene):
    scene.world.monitor.excused.add(("alpha", 0))
    scene.cluster.delete_ledger(0)


def open_again(scene):
    scene.cluster._write(0, scene.cluster._metadata(0, closed=False))


def of_a_list_made_again(scene):
    made_again_from_a_backup(scene)
    lose(scene)


@pytest.mark.parametrize("change", [lose, open_again, of_a_list_made_again])
def test_a_listed_ledger_that_bookkeeper_does_not_have_closed_keeps_it(scene, left, change):
    change(scene)
    found = decide(scene, left)
    assert isinstance(found, NotNow)
    assert "it may be the only copy" in str(found)


# ----- the topic reads the ledger from another attempt


def offload_anew(scene, left):
    """Another attempt of ours is published; the leavings' was given up, so that it is not taken
    up.
    """
    win_outcome(scene.stack, left, "abandon", reason="given up")
    assert scene.publish().certificate.record.uid != left.record.uid


def offload_by_broker(scene, _left):
    assert scene.broker.offload(TOPIC)


@pytest.fixture(params=[offload_anew, offload_by_broker])
def served(scene, left, request):
    """Which attempt the topic reads the ledger from instead."""
    request.param(scene, left)
    return scene.context().uid


def test_it_may_go_unread_while_the_topic_reads_a_sound_copy(scene, left, served):
    assert decide(scene, left) == Sweep(0, left.record.uid)


def doubted(scene, uid):
    quarantine(scene.stack, 0, uid, ml_name=TOPIC, reason="rot", previous="")


def without_data(scene, uid):
    scene.world.monitor.damaged.add(uid)
    scene.world.objects.delete(data_key(uid, 0))


def without_index(scene, uid):
    scene.world.monitor.damaged.add(uid)
    scene.world.objects.delete(index_key(uid, 0))


@pytest.mark.parametrize("change", [doubted, without_data, without_index])
def test_what_the_topic_reads_is_no_copy_when_it_is_not_sound(scene, left, served, change):
    change(scene, served)
    assert decide(scene, left) == Sweep(0, left.record.uid, unserved=True)


def test_a_certified_copy_that_changed_is_no_copy(scene, left):
    offload_anew(scene, left)
    uid = scene.context().uid
    key = data_key(uid, 0)
    scene.world.monitor.damaged.add(uid)
    scene.world.objects.overwrite(key, scene.world.objects.peek(key)[0] + b"!")
    assert decide(scene, left) == Sweep(0, left.record.uid, unserved=True)


def test_what_a_broker_has_not_completed_is_no_copy(scene, left):
    """Both its objects are there, and its readers go to the bookies still."""
    scene.broker.offload(TOPIC, stops_after=1)
    assert scene.world.objects.peek(index_key(scene.context().uid, 0)) is not None
    assert decide(scene, left) == Sweep(0, left.record.uid, unserved=True)


# ----- proven, or published once


def attempt_of(scene, uid):
    return scene.stack.book.require(Attempt, keys.attempt(0, uid))


def test_a_newer_proven_one_that_a_listing_leaves_out_waits_for_its_publication(scene, monkeypatch):
    older = scene.certify().certificate.record.uid
    scene.wait(5)
    with monkeypatch.context() as patch:
        patch.setattr("tiering_assets.batch.pipeline.find_resumable", lambda *_a: None)
        newer = scene.certify().certificate.record.uid
    scene.wait(10 * 86400)
    attempt, key = attempt_of(scene, newer), keys.attempt(0, newer)
    really = scene.world.objects.list_objects

    def short(*args, **how):
        return (one for one in really(*args, **how) if not one.key.endswith(key))

    scene.world.objects.list_objects = short
    assert older != newer
    assert decide(scene, attempt) == not_now("it is proven, and its publication waits")


def test_one_that_waits_for_a_topic_of_before_its_backup_may_go(scene):
    """No publication is possible any more: the topic has another node than the one it was made
    for.
    """
    record = scene.certify().certificate.record
    scene.wait(10 * 86400)
    made_again_from_a_backup(scene)
    assert decide(scene, attempt_of(scene, record.uid)) == Sweep(0, record.uid, unserved=True)


def test_what_was_published_stays_when_retention_took_its_ledger(scene):
    """Doubted or not: it goes by a plan that a person approved."""
    scene.fill(TOPIC)
    record = scene.publish().certificate.record
    scene.world.monitor.damaged.add(record.uid)
    doubted(scene, record.uid)
    scene.trim()
    scene.wait(10 * 86400)
    found = decide(scene, attempt_of(scene, record.uid))
    assert found == not_now("it won the right to be published")


def test_what_won_and_never_stood_may_go_when_it_is_doubted_long_enough(scene):
    record = scene.certify().certificate.record
    attempt = attempt_of(scene, record.uid)
    win_outcome(scene.stack, attempt, "publish", reason="publish")
    doubted(scene, record.uid)
    offload_by_broker(scene, attempt)
    found = decide(scene, attempt)
    assert isinstance(found, NotNow)
    assert "quarantined, never read," in str(found)
    scene.wait(10 * 86400)
    assert decide(scene, attempt) == Sweep(0, record.uid, replaced=True)


def test_a_proven_one_that_was_given_up_waits_for_nothing(scene):
    record = scene.certify().certificate.record
    attempt = attempt_of(scene, record.uid)
    win_outcome(scene.stack, attempt, "abandon", reason="given up")
    scene.wait(10 * 86400)
    assert decide(scene, attempt) == Sweep(0, record.uid, unserved=True)
