"""A release begins only what may go, records what it begins, and finishes what an earlier run has
begun.
"""

from dataclasses import replace

import pytest

from tests.support.at_effect import at_effect
from tests.support.sim_scene import TOPIC, Scene, is_released, reasons_of
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.change import change_topic, topic_change
from tiering_assets.change.topic_change import undo
from tiering_assets.change.topic_edit import Copy, TopicChange
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import EVERYTHING
from tiering_assets.records import keys
from tiering_assets.records.models import Outcome, Release, ReleaseIntent
from tiering_assets.release import release
from tiering_assets.release.approval import Approval
from tiering_assets.release.gate import MayRelease
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

PATH = managed_ledger_path(TOPIC)


class _KilledError(Exception):
    pass


@pytest.fixture
def scene():
    scene = Scene()
    yield scene
    assert scene.world.monitor.found == []


@pytest.fixture
def due(scene):
    """Ledger 0 is published, its lag has passed, and a broker is known to have its topic loaded."""
    certificate = scene.publish().certificate
    scene.past_the_lag()
    scene.broker.load(TOPIC)
    scene.wait(120)
    return certificate


def intent_of(scene, uid, ledger_id=0):
    return scene.stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, uid))


def record_of(scene, uid, ledger_id=0):
    return scene.stack.book.read(Release, keys.release(ledger_id, uid))


def is_untouched(scene):
    return scene.cluster.has_node(0) and not scene.context().bookkeeper_deleted


def die_at(monkeypatch, module, point):
    @at_effect(point)
    def reach():
        raise _KilledError

    monkeypatch.setattr(module, "reach", reach)


# ----- what is refused before anything is written


def test_a_topic_that_is_gone_is_told_as_deleted(scene, due):
    scene.broker.delete_topic(TOPIC)
    with pytest.raises(RefusedError, match="the topic was deleted, its metadata node is gone"):
        scene.release()


def test_while_an_undo_is_not_confirmed_nothing_is_begun(scene, due):
    other = scene.fill(TOPIC)
    taken = scene.publish(other).certificate.record
    scene.broker.load(TOPIC)
    scene.cluster.be_short(True)
    change = TopicChange(contexts={other: Copy(taken.uid, taken.ledger.last_entry_id)})
    czxid = scene.stack.topics.read(TOPIC)[1].stat.czxid
    assert undo(scene.process(), TOPIC, change, czxid=czxid, why="a test") is not None
    assert "has not unloaded the topic since" in reasons_of(scene.release())
    assert is_untouched(scene)
    assert intent_of(scene, due.record.uid) is None


MISSING = {
    "certificate": lambda scene, due: due.key,
    "publication": lambda scene, due: scene.publications()[0].key,
}


@pytest.mark.parametrize("missing", ["certificate", "publication", "ledger"])
@pytest.mark.parametrize("approved", [False, True])
def test_a_decision_without_its_evidence_begins_nothing(scene, due, missing, approved, monkeypatch):
    """Whatever a gate may say: no intent is written of what nobody has seen."""
    if missing == "ledger":
        scene.cluster.delete_ledger(0)
    else:
        key = MISSING[missing](scene, due)
        scene.world.objects.delete(scene.stack.book.prefix + key)
    uid = due.record.uid
    monkeypatch.setattr(release, "decide_now", lambda _stack, _evidence: MayRelease(uid))
    approval = Approval("plan", {0: (uid, due.sha256)}) if approved else None
    with pytest.raises(RefusedError, match="ledger 0: released without its evidence"):
        release_topic(scene.process(), TOPIC, [0], approval=approval)
    assert intent_of(scene, uid) is None
    assert not scene.context().bookkeeper_deleted


def test_where_nothing_may_go_no_change_is_asked_for(scene, due, monkeypatch):
    hold(scene.stack, EVERYTHING, reason="audit", author="ops")
    monkeypatch.setattr(change_topic, "make_change", lambda *_args, **_how: pytest.fail("a change"))
    assert "under a release hold" in reasons_of(scene.release())


# ----- what a plan allows


def test_what_a_plan_does_not_list_stays(scene, due):
    approval = Approval("plan", {7: (due.record.uid, due.sha256)})
    result = release_topic(scene.process(), TOPIC, [0], approval=approval)[0]
    assert reasons_of(result) == "the plan does not list it"
    assert is_untouched(scene)


def test_what_a_plan_lists_goes_and_its_intent_names_the_plan(scene, due):
    approval = Approval("plan", {0: (due.record.uid, due.sha256)})
    assert is_released(release_topic(scene.process(), TOPIC, [0], approval=approval)[0])
    assert intent_of(scene, due.record.uid).record.plan == "plan"


def test_what_is_not_due_waits_for_its_own_reasons_whatever_a_plan_lists(scene):
    certificate = scene.publish().certificate
    approval = Approval("plan", {0: (certificate.record.uid, certificate.sha256)})
    result = release_topic(scene.process(), TOPIC, [0], approval=approval)[0]
    assert "deletion lag has not elapsed" in reasons_of(result)


# ----- what is begun


def test_no_more_ledgers_are_begun_than_the_caps_allow(scene, due):
    second = scene.fill(TOPIC)
    scene.publish(second)
    scene.past_the_lag()
    stack = scene.process("release")
    limits = replace(stack.settings.release, per_run_max=1)
    stack = replace(stack, settings=replace(stack.settings, release=limits))
    results = release_topic(stack, TOPIC, [0, second])
    assert is_released(results[0])
    assert "capped: 1 more ledgers may be released" in reasons_of(results[second])
    assert scene.cluster.has_node(second)


def test_the_intent_of_each_ledger_follows_the_outcome_of_its_own_attempt(scene, due):
    """Though one publication names them all."""
    ids = [scene.fill(TOPIC), scene.fill(TOPIC)]
    offload_batch(scene.process(), ids)
    scene.past_the_lag()
    release_topic(scene.process(), TOPIC, ids)
    for ledger_id in ids:
        uid = scene.context(ledger_id).uid
        outcome = scene.stack.book.require(Outcome, keys.outcome(ledger_id, uid))
        assert intent_of(scene, uid, ledger_id).record.previous == outcome.sha256


def test_a_mark_that_no_broker_has_seen_deletes_nothing(scene, due, monkeypatch):
    """Bookies stop between the write and the unload: the topic stays loaded, with what it knows."""

    @at_effect("release.marked")
    def meanwhile():
        scene.cluster.be_short(True)

    monkeypatch.setattr(topic_change, "reach", meanwhile)
    assert "0 writable bookies" in reasons_of(scene.release())
    assert scene.cluster.has_node(0)
    assert record_of(scene, due.record.uid) is None


# ----- what an earlier run has begun


def test_a_second_run_tells_what_the_first_has_released(scene, due):
    size = due.record.ledger.length
    assert scene.release() == Released(bytes_released=size)
    assert scene.release() == Released(bytes_released=size, noop=True)


def test_a_marked_ledger_that_is_still_there_is_deleted_and_not_just_told(scene, due, monkeypatch):
    with monkeypatch.context() as patch:
        die_at(patch, topic_change, "release.rehearsed")
        with pytest.raises(_KilledError):
            scene.release()
    assert scene.context().bookkeeper_deleted
    assert scene.cluster.has_node(0)
    assert scene.release() == Released(bytes_released=due.record.ledger.length)
    assert not scene.cluster.has_node(0)


def lose_in_bookkeeper(scene):
    """Somebody else deletes the ledger: it is no deed of ours."""
    scene.world.monitor.excused.add(("alpha", 0))
    scene.cluster.delete_ledger(0)


def test_a_ledger_that_went_without_a_mark_is_none_that_we_released(scene, due, monkeypatch):
    """Our intent stands since a run that died before its mark."""
    with monkeypatch.context() as patch:
        die_at(patch, release, "release.intended")
        with pytest.raises(_KilledError):
            scene.release()
    assert intent_of(scene, due.record.uid) is not None
    lose_in_bookkeeper(scene)
    assert "BookKeeper metadata cannot be read" in reasons_of(scene.release())
    assert record_of(scene, due.record.uid) is None


@pytest.mark.parametrize("listed", [False, True])
def test_a_ledger_that_is_gone_and_has_no_context_is_none_that_we_released(scene, due, listed):
    stored = scene.cluster.metadata.nodes[PATH]
    found = decode_managed_ledger(stored.data)
    message = found.message_copy()
    if listed:
        message.ledgerInfo[0].ClearField("offloadContext")
    else:
        del message.ledgerInfo[0]
    scene.cluster.metadata.put(PATH, encode_managed_ledger(found.with_message(message)))
    scene.broker.restart()
    lose_in_bookkeeper(scene)
    assert "names no complete offload context" in reasons_of(scene.release())
