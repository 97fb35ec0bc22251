"""What lies in the bucket now is the certified copy or is not; what was not looked at is
neither.
"""

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.change import copies_now
from tiering_assets.change.copies_now import look_at_copies, quarantine_changed
from tiering_assets.look.ledger.quarantine import quarantine, win_outcome
from tiering_assets.resources.errors import CopyChangedError, RefusedError


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def certified(scene):
    ids = [0, scene.fill(TOPIC), scene.fill(TOPIC)]
    return {i: scene.certify(i).certificate for i in ids}


def look(scene, certified):
    return look_at_copies(scene.process(), certified)


def test_copies_that_are_as_they_were_certified_are_sound(scene, certified):
    found = look(scene, certified)
    assert found.sound == (0, 1, 2)
    assert (found.wrong, found.later) == ({}, ())


@pytest.mark.parametrize("name", ["data", "index"])
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("expires", "a lifecycle rule deletes it"),
        ("archived", "no broker can read storage class GLACIER"),
        ("replaced", "ETag"),
        ("gone", "it is gone"),
    ],
)
def test_an_object_that_will_not_be_read_makes_its_copy_none(scene, certified, name, how, said):
    key, objects = getattr(certified[1].record, name).key, scene.world.objects
    if how == "expires":
        objects.expire(key, 'rule-id="all"')
    elif how == "archived":
        objects.move(key, "GLACIER")
    elif how == "replaced":
        objects.overwrite(key, b"other bytes")
    else:
        objects.delete(key)
    found = look(scene, certified)
    assert found.sound == (0, 2)
    assert isinstance(found.wrong[1], CopyChangedError)
    assert f"{name} object" in str(found.wrong[1])
    assert said in str(found.wrong[1])


def test_a_doubted_copy_is_refused_and_not_doubted_anew(scene, certified):
    uid = certified[1].record.uid
    quarantine(scene.stack, 1, uid, ml_name=TOPIC, reason="a scrub", previous="")
    found = look(scene, certified)
    assert isinstance(found.wrong[1], RefusedError)
    assert "is quarantined since it was certified: a scrub" in str(found.wrong[1])


@pytest.mark.parametrize("wanted", ["abandon", "publish"])
def test_what_was_given_up_is_no_changed_copy(scene, certified, wanted):
    """Its objects went because it was swept; of any other it says that something is wrong."""
    win_outcome(scene.stack, certified[1], wanted, reason="a test")
    scene.world.objects.delete(certified[1].record.data.key)
    found = look(scene, certified)
    quarantine_changed(scene.stack, found.wrong, certified)
    assert scene.is_quarantined(1, certified[1].record.uid) == (wanted == "publish")
    if wanted == "abandon":
        assert "was abandoned by another run" in str(found.wrong[1])


@pytest.mark.parametrize("sound", [False, True])
def test_where_the_store_is_slow_the_rest_is_left_for_later(scene, certified, sound, monkeypatch):
    """One is looked at in any case, and nothing behind half of the evidence's time."""
    monkeypatch.setattr(copies_now, "_AT_ONCE", 1)
    assert look(scene, certified).later == ()
    really = copies_now._look
    if not sound:
        scene.world.objects.delete(certified[0].record.data.key)

    def slow(*args):
        scene.wait(scene.stack.settings.evidence.age_max_s / 2 + 1)
        return really(*args)

    monkeypatch.setattr(copies_now, "_look", slow)
    found = look(scene, certified)
    assert found.sound == ((0,) if sound else ())
    assert set(found.wrong) == (set() if sound else {0})
    assert found.later == (1, 2)
