"""Between the gate and its effects a release looks again: what moved meanwhile does not go."""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.support.sim_scene import TOPIC, Scene, is_released, reasons_of
from tests.support.topic_halves import release_topic, release_work
from tiering_assets.change import change_topic, topic_change
from tiering_assets.look.brakes import brake
from tiering_assets.records import keys
from tiering_assets.records.models import Disturbance, Hold
from tiering_assets.release import guarded_delete, release
from tiering_assets.release import look as release_surroundings
from tiering_assets.release import work as release_finish
from tiering_assets.release.reread import Reread
from tiering_assets.release.work import gate_again, refuse_old_metadata
from tiering_assets.resources.errors import (
    MetadataConflictError,
    MetadataUnknownError,
    RefusedError,
    StaleEvidenceError,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

PATH = managed_ledger_path(TOPIC)


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def due(scene):
    """Ledgers 0 and 1 are published, and their lag has passed."""
    ids = [0, scene.fill(TOPIC)]
    found = {i: scene.publish(i).certificate for i in ids}
    scene.past_the_lag()
    return found


@pytest.fixture
def stack(scene):
    return scene.process("release")


@pytest.fixture
def work(stack, due):
    found = release_work(stack, TOPIC, sorted(due))
    assert set(found.due) == {0, 1}
    return found


def hold(scene, ledger_id):
    record = Hold(ledger_id=ledger_id, reason="audit", author="ops", held_at=scene.stack.now())
    scene.stack.book.create(keys.hold(ledger_id), record)


# ----- the topic


def test_a_topic_that_went_meanwhile_is_told_as_deleted(scene, stack, work):
    scene.broker.delete_topic(TOPIC)
    with pytest.raises(RefusedError, match="the topic was deleted, its metadata node is gone"):
        gate_again(stack, work)


def test_a_topic_made_again_meanwhile_is_told_as_deleted(scene, stack, work):
    stored = scene.cluster.metadata.nodes[PATH]
    again = replace(stored.stat, czxid=stored.stat.czxid + 1)
    scene.cluster.metadata.nodes[PATH] = replace(stored, stat=again)
    with pytest.raises(RefusedError, match="the topic was deleted, its metadata node is gone"):
        gate_again(stack, work)


def test_what_was_recorded_of_an_earlier_topic_of_that_name_dates_no_metadata(stack, work):
    _topic, node = stack.topics.read(TOPIC)
    with pytest.raises(RefusedError, match="the metadata store went back in time"):
        refuse_old_metadata(work.about, replace(node, stat=replace(node.stat, version=0)))
    again = replace(node.stat, version=0, czxid=node.stat.czxid + 1)
    refuse_old_metadata(work.about, replace(node, stat=again))


# ----- its ledgers


def test_a_certificate_that_went_meanwhile_stops_its_ledger_alone(scene, stack, due, work):
    scene.world.objects.delete(stack.book.prefix + due[0].key)
    again = gate_again(stack, work)
    assert set(again.due) == {1}
    assert "since it was begun: this attempt has no certificate" in reasons_of(again.settled[0])


@pytest.mark.parametrize("what", ["attempt", "certificate"])
def test_what_is_not_what_the_intent_was_written_for_does_not_go(stack, work, what):
    item = work.due[0]
    if what == "attempt":
        other = replace(item, uid=UUID(int=7))
    else:
        record = replace(item.intent.record, certificate_sha256="0" * 64)
        other = replace(item, intent=replace(item.intent, record=record))
    again = gate_again(stack, replace(work, due={**work.due, 0: other}))
    assert set(again.due) == {1}
    assert "took its place" in reasons_of(again.settled[0])


def test_as_many_are_looked_at_as_there_is_time_for(stack, work):
    assert set(gate_again(stack, work, at_once=1).due) == {0, 1}


def test_one_is_looked_at_however_slow_the_rest_is(scene, stack, work, monkeypatch):
    """Or no run of a slow store would ever get on."""
    really = brake.read_brakes

    def slow(asking, kind):
        found = really(asking, kind)
        scene.wait(stack.settings.evidence.age_max_s / 2 + 1)
        return found

    monkeypatch.setattr(release_surroundings, "read_brakes", slow)
    again = gate_again(stack, work, at_once=1)
    assert set(again.due) == {0}
    assert again.settled[1] == release_finish.LATER


# ----- the delete


@pytest.fixture
def unread(monkeypatch):
    """Nobody reads every byte again: the looks alone are tried here."""
    monkeypatch.setattr(release, "reread_before_release", lambda *_: Reread())


def disturbances(scene):
    found = [one.record for one in scene.stack.book.iter_records(Disturbance, keys.DISTURBANCES)]
    return [one.why for one in sorted(found, key=lambda one: one.disturbed_at)]


def delete_late(monkeypatch, *, times, meanwhile=lambda: None):
    """The first deletes find their evidence too old; something happens during the very first."""
    really, left = guarded_delete.delete_ledgers, [times]

    def late(*args, **how):
        if left[0]:
            if left[0] == times:
                meanwhile()
            left[0] -= 1
            raise StaleEvidenceError("too long ago")
        really(*args, **how)

    monkeypatch.setattr(release_finish, "delete_ledgers", late)


def after_the_reload(monkeypatch, act):
    really = topic_change.make_change

    def change(*args, **how):
        confirmed = really(*args, **how)
        act()
        return confirmed

    monkeypatch.setattr(change_topic, "make_change", change)


@pytest.mark.parametrize("times", [1, 2])
def test_what_was_stopped_keeps_its_reason_and_its_mark_is_taken_back_once(
    scene, stack, due, monkeypatch, times
):
    """However often the other ledgers' evidence got too old meanwhile."""
    after_the_reload(monkeypatch, lambda: hold(scene, 0))
    delete_late(monkeypatch, times=times)
    results = release_topic(stack, TOPIC, [0, 1])
    assert "since it was begun: under a release hold" in reasons_of(results[0])
    taken = [why for why in disturbances(scene) if why.startswith("taken back")]
    assert sum("under a release hold" in why for why in taken) == 1
    assert scene.cluster.has_node(0)
    if times == 1:
        assert is_released(results[1])
        assert len(taken) == 1
    else:
        assert "the marks were taken back: too long ago" in reasons_of(results[1])
        assert len(taken) == 2
    assert not scene.context(0).bookkeeper_deleted


def test_what_is_stopped_when_all_is_looked_at_once_more_keeps_its_reason(
    scene, stack, due, monkeypatch
):
    delete_late(monkeypatch, times=2, meanwhile=lambda: hold(scene, 0))
    results = release_topic(stack, TOPIC, [0, 1])
    assert "since it was begun: under a release hold" in reasons_of(results[0])
    assert "the marks were taken back: too long ago" in reasons_of(results[1])
    taken = [why for why in disturbances(scene) if why.startswith("taken back: 1 ledgers")]
    assert len(taken) == 2


def test_where_all_were_stopped_nothing_is_deleted_and_nothing_told_as_released(
    scene, stack, due, monkeypatch
):
    def meanwhile():
        hold(scene, 0)
        hold(scene, 1)

    after_the_reload(monkeypatch, meanwhile)
    monkeypatch.setattr(release_finish, "delete_ledgers", pytest.fail)
    told: list[str] = []
    results = release_topic(replace(stack, narrate=told.append), TOPIC, [0, 1])
    assert [is_released(one) for one in results.values()] == [False, False]
    assert not [line for line in told if "released" in line]


def test_a_delete_whose_answer_was_lost_is_not_taken_for_done(scene, stack, due):
    def lose(**_how):
        raise MetadataUnknownError("no answer")

    stack.metadata.check_and_delete = lose
    with pytest.raises(MetadataUnknownError):
        release_topic(stack, TOPIC, [0, 1])
    assert scene.cluster.has_node(0)
    assert [key for key in scene.stack.book.keys(keys.RELEASES) if keys.is_release(key)] == []


def test_a_delete_that_fails_first_is_the_runs_error(scene, stack, due, monkeypatch):
    def moved(*_args, **_how):
        raise MetadataConflictError("something moved")

    monkeypatch.setattr(release_finish, "delete_ledgers", moved)
    with pytest.raises(MetadataConflictError):
        release_topic(stack, TOPIC, [0, 1])
