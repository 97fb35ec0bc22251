"""Every delete, a retried one too, is decided from scratch right before it; a waiting proof is no
leftover.
"""

from dataclasses import replace

import pytest

from tests.support.at_effect import at_effect
from tests.support.left_behind import leave_unproven, made_again_from_a_backup
from tests.support.sim_operator import restore
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.clean.orphans import Sweep
from tiering_assets.ground.reasons import NotNow, not_now
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.records.sweep_models import Swept
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.retention.expired import execute_expired, plan_expired


@pytest.fixture
def scene():
    """A bucket that keeps versions."""
    scene = next(s for s in map(Scene, range(50)) if s.world.objects._versioning)
    yield scene
    assert scene.world.monitor.found == []


class Lock:
    """Refuses to delete versions while it is on, as an object lock does."""

    def __init__(self, scene):
        self.on = True
        self.refused: list[str] = []
        really = scene.world.objects.delete

        def delete(key, *, version_id=None):
            if self.on and version_id is not None and "-ledger-" in key:
                self.refused.append(version_id)
                raise ObjectStoreError(f"{key}: version {version_id} is locked")
            return really(key, version_id=version_id)

        scene.world.objects.delete = delete


def expiry_plan(scene):
    plan, _found = plan_expired(scene.process())
    assert plan is not None
    scene.world.monitor.approve(scene.site, plan.digest)
    return plan


def swept_record(scene, uid):
    return scene.stack.book.read(Swept, keys.swept(0, uid))


def test_locked_versions_of_a_restored_topic_stay_whatever_was_swept_before(scene):
    """Released, trimmed, expired by an approved plan whose deletes were refused; then a backup."""
    backup = scene.release_and_collect()
    uid = scene.context().uid
    scene.trim()
    scene.wait(3 * 86400)
    lock = Lock(scene)
    plan = expiry_plan(scene)
    scene.wait(2 * 3600)
    execute_expired(scene.process(), plan.digest)
    assert lock.refused
    assert swept_record(scene, uid).record.bytes_stay
    # A backup of the metadata store comes back, and a person takes the delete markers away.
    lock.on = False
    restore(scene.world, scene.site, backup)
    for key in [k for k in scene.world.objects._objects if k.startswith(str(uid))]:
        for version in scene.world.objects.list_versions(key):
            if version.is_marker:
                scene.world.objects.delete(key, version_id=version.version_id)
    scene.site.restored = False
    topic = "persistent://t/ns/orders"
    assert scene.stack.broker.read_entry(topic, 0, 0) == b"first"
    clean_up(scene.process(), execute=True)
    assert scene.stack.broker.read_entry(topic, 0, 0) == b"first"
    # Nor does the plan, approved and in date, take what is listed again.
    for copy in execute_expired(scene.process(), plan.digest):
        assert isinstance(copy.decision, NotNow)
    assert scene.stack.broker.read_entry(topic, 0, 0) == b"first"


def test_locked_versions_go_by_another_plan_once_the_lock_is_gone(scene):
    scene.release_and_collect()
    uid = scene.context().uid
    scene.trim()
    scene.wait(3 * 86400)
    lock = Lock(scene)
    plan = expiry_plan(scene)
    scene.wait(2 * 3600)
    execute_expired(scene.process(), plan.digest)
    lock.on = False
    clean_up(scene.process(), execute=True)
    assert swept_record(scene, uid).record.bytes_stay, "a sweep has no leave to take them"
    again = expiry_plan(scene)
    [planned] = again.plan.copies
    named = {version.key for version in planned.versions}
    assert len(named) == 2
    scene.wait(2 * 3600)
    stranger = next(iter(named))
    scene.world.objects.put(stranger, b"came since", metadata={})
    execute_expired(scene.process(), again.digest)
    assert not swept_record(scene, uid).record.bytes_stay
    assert scene.world.objects.peek(stranger)[0] == b"came since"


def abandoned(scene):
    return leave_unproven(scene).record


def test_locked_versions_of_a_leftover_are_tried_again_by_the_next_sweep(scene):
    record = abandoned(scene)
    lock = Lock(scene)
    clean_up(scene.process(), execute=True)
    stays = swept_record(scene, record.uid).record
    assert {one.key for one in stays.stay} == {record.data_key, record.index_key}
    lock.on = False
    clean_up(scene.process(), execute=True)
    gone = swept_record(scene, record.uid).record
    assert (gone.bytes_stay, gone.stay) == (0, ())
    assert scene.world.objects.list_versions(record.data_key) == []


def test_a_delete_is_decided_again_right_before_it(scene, monkeypatch):
    """Between the decision about all and the delete of one, its topic comes to name it."""
    record = abandoned(scene)
    path = managed_ledger_path(TOPIC)

    def restored(*_args):
        from tiering_assets.change.topic_change import contexts_for

        found = scene.stack.topics.read(TOPIC)
        context = contexts_for(scene.stack, {0: record.uid})
        from tiering_assets.resources.metastore.ledger_info import encode_managed_ledger
        from tiering_assets.resources.metastore.offload_context import publish_contexts

        scene.cluster.metadata.put(path, encode_managed_ledger(publish_contexts(found[0], context)))
        scene.broker.restart()

    monkeypatch.setattr("tiering_assets.clean.sweep.refuse_mass_delete", lambda *a, **k: restored())
    [kept] = clean_up(scene.process(), execute=True).attempts
    assert isinstance(kept.decision, NotNow)
    assert str(kept.decision) == "an offload context names it"
    assert scene.world.objects.peek(record.data_key) is not None


def decision_about(scene, uid):
    found = clean_up(scene.process(), execute=True).attempts
    return next((one.decision for one in found if one.attempt.record.uid == uid), None)


def test_a_proven_copy_whose_publication_waits_is_no_leftover(scene):
    record = scene.certify().certificate.record
    scene.wait(10 * 86400)
    decision = decision_about(scene, record.uid)
    assert decision == not_now("it is proven, and its publication waits")
    assert scene.publish().certificate.record.uid == record.uid


def test_of_several_proven_copies_the_newest_waits(scene, monkeypatch):
    older = scene.certify().certificate.record
    scene.wait(5)
    with monkeypatch.context() as patch:
        patch.setattr("tiering_assets.batch.pipeline.find_resumable", lambda *_a: None)
        newer = scene.certify().certificate.record
    assert newer.uid != older.uid
    scene.wait(10 * 86400)
    found = {
        one.attempt.record.uid: one.decision
        for one in clean_up(scene.process(), execute=True).attempts
    }
    assert isinstance(found[older.uid], Sweep)
    assert isinstance(found[newer.uid], NotNow)


@pytest.mark.parametrize("end", ["published by another", "topic made again", "quarantined"])
def test_a_proven_copy_that_cannot_be_published_any_more_goes_after_the_guard_age(
    scene, monkeypatch, end
):
    record = scene.certify().certificate.record
    if end == "published by another":
        assert scene.broker.offload(TOPIC)
    elif end == "topic made again":
        scene.broker.delete_topic(TOPIC)
        scene.broker.create_topic(TOPIC)
    else:
        quarantine(
            scene.stack, 0, record.uid, ml_name=TOPIC, reason="rot", previous=record.previous
        )
    assert isinstance(decision_about(scene, record.uid), NotNow)
    scene.wait(2 * 86400)
    assert isinstance(decision_about(scene, record.uid), Sweep)


def test_the_last_copy_of_a_listed_ledger_is_never_a_leftover(scene):
    record = abandoned(scene)
    scene.world.monitor.excused.add(("alpha", 0))
    scene.cluster.delete_ledger(0)
    decision = decision_about(scene, record.uid)
    assert isinstance(decision, NotNow)
    assert "it may be the only copy" in str(decision)


def test_the_last_copy_that_a_list_of_a_backup_names_is_never_a_leftover(scene):
    """The very list in a new node, as a backup that is put back makes one."""
    record = abandoned(scene)
    scene.world.monitor.excused.add(("alpha", 0))
    scene.cluster.delete_ledger(0)
    made_again_from_a_backup(scene)
    decision = decision_about(scene, record.uid)
    assert isinstance(decision, NotNow)
    assert "it may be the only copy" in str(decision)
    assert scene.world.objects.peek(record.data_key) is not None


def test_a_copy_stays_whose_ledger_the_bookies_lost_though_metadata_came_back(scene):
    """The ledger was deleted and collected; a backup lists it again, closed and without entries."""
    record = abandoned(scene)
    entries = scene.cluster.bookies.pop(0)
    [leaving] = [one for one in clean_up(scene.process(), execute=True).attempts if one.bytes]
    assert isinstance(leaving.decision, NotNow)
    assert "the bookies do not give the ledger: ledger 0 entry 0" in str(leaving.decision)
    assert scene.world.objects.peek(record.data_key) is not None
    scene.cluster.bookies[0] = entries
    clean_up(scene.process(), execute=True)
    assert scene.world.objects.peek(record.data_key) is None


def test_what_comes_to_be_listed_between_two_decisions_stays_until_bookies_were_asked(scene):
    """Trimmed when it was given up; before the delete a backup lists it, and no bookie has it."""
    record = abandoned(scene)
    scene.fill(TOPIC)
    scene.broker.load(TOPIC)
    backup = dict(scene.cluster.metadata.nodes)
    assert scene.broker.trim(TOPIC) == 0
    scene.cluster.collect()
    assert 0 not in scene.cluster.bookies

    @at_effect("sweep.abandoned")
    def restored():
        scene.cluster.metadata.nodes = dict(backup)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tiering_assets.clean.sweep.reach", restored)
        clean_up(scene.process(), execute=True)
    assert scene.world.objects.peek(record.data_key) is not None


def of_a_released_ledger_that_a_broker_copied_too(scene):
    """Nobody proved our copy; the topic reads the broker's, and no bookie has the ledger."""
    record = leave_unproven(scene).record
    assert scene.broker.offload(TOPIC)
    scene.broker.lag_s = 0.0
    scene.broker.release(TOPIC)
    assert not scene.cluster.has_node(0)
    return record, data_key(scene.context().uid, 0)


def test_a_copy_goes_once_the_brokers_was_read_back_and_found_equal(scene):
    record, _theirs = of_a_released_ledger_that_a_broker_copied_too(scene)
    clean_up(scene.process(), execute=True)
    assert scene.world.objects.peek(record.data_key) is None


def test_a_copy_goes_unread_while_bookies_have_what_the_topic_reads_elsewhere(scene):
    record = leave_unproven(scene).record
    assert scene.broker.offload(TOPIC)
    asked = []
    scene.world.objects.get_range = lambda *of, **how: asked.append((of, how))
    clean_up(scene.process(), execute=True)
    assert scene.world.objects.peek(record.data_key) is None
    assert asked == []


def test_a_copy_that_a_check_found_to_be_none_goes_whatever_it_holds(scene):
    """Or what failed its verification would stay for ever once its ledger is released."""
    record, _theirs = of_a_released_ledger_that_a_broker_copied_too(scene)
    scene.world.monitor.damaged.add(record.uid)
    scene.world.rot(record.data_key)
    quarantine(scene.stack, 0, record.uid, ml_name=TOPIC, reason="differs", previous="")
    clean_up(scene.process(), execute=True)
    assert scene.world.objects.peek(record.data_key) is None


def test_a_sound_copy_stays_where_the_one_that_the_topic_reads_has_rotted(scene):
    """Its size and ETag are as they were, so that only reading it tells."""
    record, theirs = of_a_released_ledger_that_a_broker_copied_too(scene)
    scene.world.rot(theirs)
    [leaving] = [one for one in clean_up(scene.process(), execute=True).attempts if one.bytes]
    assert isinstance(leaving.decision, NotNow)
    assert "what the topic reads was not found equal to it" in str(leaving.decision)
    assert scene.world.objects.peek(record.data_key) is not None


def test_what_bookies_lose_between_two_decisions_stays_until_copies_were_compared(scene):
    record = leave_unproven(scene).record
    assert scene.broker.offload(TOPIC)
    theirs = data_key(scene.context().uid, 0)

    @at_effect("sweep.abandoned")
    def released():
        scene.broker.lag_s = 0.0
        scene.broker.release(TOPIC)
        scene.world.rot(theirs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tiering_assets.clean.sweep.reach", released)
        clean_up(scene.process(), execute=True)
    assert scene.world.objects.peek(record.data_key) is not None


def test_what_a_broker_left_stays_too_where_the_bookies_lost_the_ledger(scene):
    """Its upload was complete and its context never; then the entries were collected."""
    scene.broker.offload(TOPIC, stops_after=1)
    clean_up(scene.process(), execute=True)  # noted
    scene.wait(3 * 86400)
    entries = scene.cluster.bookies.pop(0)
    [leaving] = clean_up(scene.process(), execute=True).leftovers
    assert isinstance(leaving.decision, NotNow)
    assert "the bookies do not give the ledger: ledger 0 entry 0" in str(leaving.decision)
    assert all(scene.world.objects.peek(key) is not None for key in leaving.objects)
    assert scene.context() is not None
    scene.cluster.bookies[0] = entries
    [leaving] = clean_up(scene.process(), execute=True).leftovers
    assert leaving.done is not None
    assert all(scene.world.objects.peek(key) is None for key in leaving.objects)


def test_a_decision_that_got_too_old_deletes_nothing(scene, monkeypatch):
    record = abandoned(scene)
    really = scene.world.objects.list_versions
    slow = replace(scene.stack.settings.evidence, age_max_s=60.0)

    def listed(key):
        scene.wait(slow.age_max_s + 1)
        return really(key)

    scene.world.objects.list_versions = listed
    [left] = clean_up(scene.process(), execute=True).attempts
    assert "too long ago to sweep on it" in left.error
    assert scene.world.objects.peek(record.index_key) is not None or left.error
