"""What the gate let go is proven again right before the delete; what changed since takes its mark
back.
"""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, is_released, reasons_of
from tests.support.topic_halves import release_topic
from tiering_assets.change import change_topic, topic_change
from tiering_assets.look.brakes import brake
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.records import keys
from tiering_assets.records.models import Disturbance, Hold
from tiering_assets.release import release
from tiering_assets.release import reread as release_reread
from tiering_assets.release import work as release_work
from tiering_assets.release.reread import Reread
from tiering_assets.resources.errors import StaleEvidenceError


@pytest.fixture
def due(scene):
    """Ledger 0 is published, its lag has passed, and a broker has its topic loaded."""
    certificate = scene.publish().certificate
    scene.past_the_lag()
    scene.broker.load(TOPIC)
    scene.wait(120)
    return certificate.record


def hold(scene, record):
    stack = scene.stack
    held = Hold(ledger_id=0, reason="audit", author="ops", held_at=stack.now())
    stack.book.create(keys.hold(record.ledger.ledger_id), held)


def doubt(scene, record):
    quarantine(
        scene.stack, 0, record.uid, ml_name=TOPIC, reason="a scrub", previous=record.previous
    )


DISASTERS = {
    "another bucket": lambda scene, _r: scene.set_policy(bucket="elsewhere"),
    "another driver": lambda scene, _r: scene.set_policy(driver="google-cloud-storage"),
    "another endpoint": lambda scene, _r: scene.set_policy(endpoint="http://other.example"),
    "no policy": lambda scene, _r: scene.set_policy(driver=None, bucket=None),
    "brokers skip": lambda scene, _r: scene.set_config(autoSkipNonRecoverableData="true"),
    "driver removed": lambda scene, _r: scene.set_config(managedLedgerOffloadDriver=""),
    "a shadow": lambda scene, _r: scene.make_shadow(),
    "under-replicated": lambda scene, _r: scene.under_replicate(),
    "held": hold,
    "quarantined": doubt,
    "object gone": lambda scene, r: scene.world.objects.delete(r.data.key),
    "object replaced": lambda scene, r: scene.world.objects.overwrite(r.index.key, b"other"),
}
# Asked again when half of their time is over; all others are asked each time.
SLOW = {"brokers skip", "driver removed", "a shadow"}
EVERY = pytest.mark.parametrize("disaster", DISASTERS)


def strike(scene, record, disaster):
    DISASTERS[disaster](scene, record)
    if disaster.startswith("object"):
        scene.world.monitor.damaged.add(record.uid)


def after_the_reload(monkeypatch, act):
    """Between the confirmed reload and what follows it."""
    really = topic_change.make_change

    def change(*args, **how):
        confirmed = really(*args, **how)
        act()
        return confirmed

    monkeypatch.setattr(change_topic, "make_change", change)


def reloads(scene):
    found = [one.record for one in scene.stack.book.iter_records(Disturbance, "disturbances/")]
    return [one.why for one in sorted(found, key=lambda one: one.disturbed_at)]


@EVERY
def test_what_changed_before_the_gate_keeps_the_bookie_copy(scene, due, disaster):
    strike(scene, due, disaster)
    assert reasons_of(scene.release())
    assert scene.cluster.has_node(0)
    assert not scene.context().bookkeeper_deleted


@EVERY
def test_what_changed_during_the_second_reading_marks_nothing(scene, due, disaster, monkeypatch):
    """Reading every byte again takes longer than what was learned before it may be old."""

    def slow(stack, wanted):
        strike(scene, due, disaster)
        scene.wait(stack.settings.evidence.surroundings_age_max_s)
        return Reread()

    monkeypatch.setattr(release, "reread_before_release", slow)
    assert "since it was begun" in reasons_of(scene.release())
    assert scene.cluster.has_node(0)
    assert not scene.context().bookkeeper_deleted
    assert len(reloads(scene)) == 1  # that of the publication


@EVERY
def test_what_changed_between_mark_and_delete_takes_the_mark_back(
    scene, due, disaster, monkeypatch
):
    def meanwhile():
        strike(scene, due, disaster)
        if disaster in SLOW:
            scene.wait(scene.stack.settings.evidence.surroundings_age_max_s / 2 + 1)

    after_the_reload(monkeypatch, meanwhile)
    assert "since it was begun" in reasons_of(scene.release())
    assert scene.cluster.has_node(0)
    assert not scene.context().bookkeeper_deleted


def test_the_place_is_compared_again_right_before_the_delete(scene, due, monkeypatch):
    """However young what was learned before the mark is."""
    after_the_reload(monkeypatch, lambda: scene.set_policy(bucket="elsewhere"))
    assert "place differs: bucket is 'elsewhere'" in reasons_of(scene.release())
    assert scene.cluster.has_node(0)
    assert not scene.context().bookkeeper_deleted


def test_bytes_read_too_long_before_the_mark_are_not_believed(scene, due, monkeypatch):
    """Bits that rot meanwhile leave size, ETag and times as they were: no later look tells it."""
    really = release_work.gate_again

    def late(stack, work, **how):
        scene.wait(stack.settings.evidence.surroundings_age_max_s + 1)
        return really(stack, work, **how)

    monkeypatch.setattr(release, "gate_again", late)
    monkeypatch.setattr(release_work, "gate_again", late)
    with pytest.raises(StaleEvidenceError, match=r"every byte: 12.. s old, at most 600 s"):
        scene.release()
    assert scene.cluster.has_node(0)
    assert not scene.context().bookkeeper_deleted


def test_bytes_read_too_long_before_the_delete_take_the_mark_back(scene, due, monkeypatch):
    rotten: list[int] = []

    def rot_and_wait():
        if not rotten:
            scene.world.monitor.damaged.add(due.uid)
            rotten.append(scene.world.rot(due.data.key))
            scene.wait(scene.stack.settings.evidence.surroundings_age_max_s + 1)

    after_the_reload(monkeypatch, rot_and_wait)
    assert "every byte: 6" in reasons_of(scene.release())
    assert scene.cluster.has_node(0)
    assert not scene.context().bookkeeper_deleted
    assert "the copy differs" in reasons_of(scene.release())  # it reads again, and finds it
    assert scene.cluster.has_node(0)


@pytest.mark.parametrize("together", [False, True])
def test_what_was_not_read_in_time_is_left_to_the_next_run(scene, due, together, monkeypatch):
    """One by one, each run takes what it can; read together, none knows when each was read."""
    second = scene.fill(TOPIC)
    scene.publish(second)
    scene.past_the_lag()
    if not together:
        monkeypatch.setattr(release_reread, "CHUNK_BYTES", 1)
    stack = scene.process("release")
    really = stack.runner.run

    def slow(tasks, **how):
        scene.wait(stack.settings.evidence.surroundings_age_max_s / 2 + 1)
        return really(tasks, **how)

    monkeypatch.setattr(stack.runner, "run", slow)
    results = release_topic(stack, TOPIC, [0, second])
    assert is_released(results[0]) is not together
    assert "no time to read every byte" in reasons_of(results[second])
    again = release_topic(stack, TOPIC, [second])
    assert is_released(again[second])  # alone it is as old as the end of its reading


def test_where_nothing_is_read_again_no_reading_gets_too_old(scene, due, monkeypatch):
    settings = scene.stack.settings
    believing = replace(settings, release=replace(settings.release, reread_without_key=False))
    scene.world.settings = believing
    after_the_reload(monkeypatch, lambda: scene.wait(settings.evidence.surroundings_age_max_s + 1))
    assert is_released(scene.release())


@pytest.mark.parametrize("slow_looks", [1, 2])
def test_too_old_after_the_reload_is_asked_again_without_a_second_unload(
    scene, due, slow_looks, monkeypatch
):
    looks: list[None] = []
    really = brake.read_brakes

    def slow(stack, kind):
        found = really(stack, kind)
        if looks:
            looks.pop()
            scene.wait(stack.settings.evidence.age_max_s + 1)
        return found

    monkeypatch.setattr("tiering_assets.release.look.read_brakes", slow)
    after_the_reload(monkeypatch, lambda: looks.extend([None] * slow_looks))
    before = len(reloads(scene))
    result = scene.release()
    if slow_looks == 1:
        assert is_released(result)
        assert reloads(scene)[before:] == ["1 ledgers marked for release"]
    else:
        assert "the marks were taken back" in reasons_of(result)
        assert "holds: 61 s old, at most 60 s" in reasons_of(result)
        assert scene.cluster.has_node(0)
        assert not scene.context().bookkeeper_deleted


def test_where_looking_is_slow_each_run_takes_what_it_can_prove_with_one_reload(scene):
    """Sixty ledgers, and a store that answers a HEAD in half a second."""
    ids = [0, *(scene.fill(TOPIC) for _ in range(59))]
    for ledger_id in ids:
        scene.publish(ledger_id)
    scene.past_the_lag()
    stack = scene.process("release")
    settings = replace(stack.settings, evidence=replace(stack.settings.evidence, age_max_s=30.0))
    stack = replace(stack, settings=settings)
    before = len(reloads(scene))
    really = type(scene.world.objects).head

    def slow_head(key, **how):
        scene.wait(0.5)
        return really(scene.world.objects, key, **how)

    scene.world.objects.head = slow_head
    runs = 0
    while left := [i for i in ids if scene.cluster.has_node(i)]:
        runs += 1
        results = release_topic(stack, TOPIC, left)
        released = [i for i, result in results.items() if is_released(result)]
        assert released
        assert all(is_released(r) or "next run" in reasons_of(r) for r in results.values())
        assert len(reloads(scene)) - before == runs
    assert runs <= 60 / 4
