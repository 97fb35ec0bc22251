"""A broker's broken copy that we healed: whose it is, from when it may go, and what takes it."""

from datetime import timedelta

import pytest

from tests.support.at_effect import at_effect
from tests.support.sim_scene import TOPIC, Scene, is_released
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.clean.leftovers_rules import Collect
from tiering_assets.clean.orphans import REPLACED_KEPT
from tiering_assets.ground.reasons import NotNow
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.scrub.heal import Healed
from tiering_assets.scrub.scrub import scrub

DAY = 86400.0


def broken():
    """Its broker offloaded ledger 0, and one byte of the object has rotted since."""
    scene = Scene()
    assert scene.broker.offload(TOPIC)
    uid = scene.context().uid
    scene.world.monitor.damaged.add(uid)
    scene.world.rot(data_key(uid, 0))
    return scene, uid


@pytest.fixture
def healed():
    scene, uid = broken()
    assert isinstance(scrub(scene.process(), deep=True).healed[0], Healed)
    assert scene.context().uid != uid
    yield scene, uid
    assert scene.world.monitor.found == []


def left(scene, uid):
    """Of the broker's two objects, those that are there."""
    return [key for key in scene.world.objects.peek_keys() if key.startswith(str(uid))]


def goes_at(scene):
    [stored] = scene.publications()
    guard = timedelta(seconds=scene.stack.settings.release.guard_age_s)
    return stored.stored_at + max(guard, REPLACED_KEPT)


def wait_until_it_goes(scene):
    scene.wait((goes_at(scene) - scene.stack.objects.server_time()).total_seconds() + 1)


def test_the_list_says_whose_it_is_and_when_it_goes_and_a_sweep_takes_it_then(healed):
    scene, uid = healed
    found = clean_up(scene.process(), execute=True)
    [leaving] = found.leftovers
    assert leaving.pair == (0, uid)
    assert isinstance(leaving.decision, NotNow)
    assert f"with a sweep after {goes_at(scene):%Y-%m-%d %H:%M:%S}Z" in str(leaving.decision)
    assert found.foreign == []
    assert len(left(scene, uid)) == 2
    wait_until_it_goes(scene)
    [leaving] = clean_up(scene.process(), execute=True).leftovers
    assert leaving.done is not None
    assert left(scene, uid) == []
    assert clean_up(scene.process(), execute=True).leftovers == []


def test_it_goes_after_the_bookie_copy_was_released_too(healed):
    scene, uid = healed
    scene.fill(TOPIC)
    scene.past_the_lag()
    scene.wait(DAY)
    assert is_released(scene.release())
    clean_up(scene.process(), execute=True)
    assert left(scene, uid) == []


def lose_ours(scene):
    key = data_key(scene.context().uid, 0)
    scene.world.monitor.damaged.add(scene.context().uid)
    scene.world.objects.delete(key)


def lose_the_ledger(scene):
    scene.cluster.delete_ledger(0)


def forget_the_publication(scene):
    for key in scene.stack.book.keys(keys.PUBLICATIONS):
        scene.world.objects.delete(scene.stack.book.prefix + key)


def forget_the_topic(scene):
    del scene.cluster.metadata.nodes[managed_ledger_path(TOPIC)]


CHANGES = {
    "our copy is gone and so is the ledger": (lose_ours, lose_the_ledger),
    "no record says that ours took its place": (forget_the_publication,),
    "its topic lists the ledger no more": (forget_the_topic,),
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_it_stays_where_it_may_be_what_is_left(changes):
    scene, uid = broken()
    assert isinstance(scrub(scene.process(), deep=True).healed[0], Healed)
    wait_until_it_goes(scene)
    for change in changes:
        change(scene)
    [leaving] = clean_up(scene.process(), execute=True).leftovers
    assert isinstance(leaving.decision, NotNow)
    assert len(left(scene, uid)) == 2


def test_bookies_give_the_ledger_first_where_our_copy_is_not_sound(healed):
    scene, uid = healed
    wait_until_it_goes(scene)
    lose_ours(scene)
    assert isinstance(clean_up(scene.process(), execute=False).leftovers[0].decision, Collect)
    scene.world.monitor.excused.add(("alpha", 0))
    scene.cluster.bookies.pop(0)  # BookKeeper's metadata still names it
    [leaving] = clean_up(scene.process(), execute=True).leftovers
    assert isinstance(leaving.decision, NotNow)
    assert "the bookies do not give the ledger" in str(leaving.decision)
    assert len(left(scene, uid)) == 2


@pytest.mark.parametrize("changes", [(lose_ours, lose_the_ledger), (lose_ours,)])
def test_what_changes_between_intent_and_delete_keeps_what_was_replaced(
    healed, changes, monkeypatch
):
    scene, uid = healed
    wait_until_it_goes(scene)

    @at_effect("sweep.intended")
    def struck():
        for change in changes:
            change(scene)

    monkeypatch.setattr("tiering_assets.clean.leftovers.reach", struck)
    [leaving] = clean_up(scene.process(), execute=True).leftovers
    assert isinstance(leaving.decision, NotNow)
    assert len(left(scene, uid)) == 2


def test_a_broken_copy_that_its_topic_still_names_is_no_leftover():
    scene, uid = broken()
    scrub(scene.process(), deep=True, heal=False)
    scene.wait(30 * DAY)
    found = clean_up(scene.process(), execute=True)
    assert found.leftovers == []
    assert len(left(scene, uid)) == 2


def test_a_yes_covers_only_what_was_shown(healed):
    scene, uid = healed
    wait_until_it_goes(scene)
    [kept] = clean_up(scene.process(), execute=True, only=[]).leftovers
    assert (kept.done, len(left(scene, uid))) == (None, 2)
    [gone] = clean_up(scene.process(), execute=True, only=[(0, uid)]).leftovers
    assert (gone.done is not None, left(scene, uid)) == (True, [])
