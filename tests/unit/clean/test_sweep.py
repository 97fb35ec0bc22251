"""A sweep takes what its decision names, and nothing by a decision that does not hold any more."""

from dataclasses import replace

import pytest

from tests.support.at_effect import at_effect
from tests.support.left_behind import leave_unproven
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.clean import sweep as sweeping
from tiering_assets.clean.orphans import Sweep
from tiering_assets.clean.sweep import find_leavings, refuse_mass_delete, sweep
from tiering_assets.ground.reasons import NotNow
from tiering_assets.look.brakes import holds
from tiering_assets.look.brakes.scopes import EVERYTHING
from tiering_assets.look.ledger.claims import claim_ledger
from tiering_assets.look.ledger.quarantine import win_outcome
from tiering_assets.records import keys
from tiering_assets.records.models import Outcome
from tiering_assets.records.sweep_models import Swept
from tiering_assets.resources.errors import RefusedError


@pytest.fixture
def scene():
    scene = Scene()
    yield scene
    assert scene.world.monitor.found == []


@pytest.fixture
def left(scene):
    """Both objects of an attempt of ledger 0, which may go."""
    return leave_unproven(scene)


def objects(scene):
    return [key for key in scene.world.objects.peek_keys() if "-ledger-" in key]


def swept(scene, uid):
    return scene.stack.book.read(Swept, keys.swept(0, uid))


def test_it_goes_when_nothing_forbids_it_and_is_listed_no_more(scene, left):
    sizes = sum(len(scene.world.objects.peek(key)[0]) for key in objects(scene))
    [found] = sweep(scene.process(), execute=True)
    assert found.done is not None
    assert found.done.bytes_freed == sizes
    assert objects(scene) == []
    assert swept(scene, left.record.uid).record == found.done
    assert find_leavings(scene.process()) == []


def test_without_execute_nothing_goes_and_nothing_is_written(scene, left):
    before = scene.world.objects.peek_keys()
    [found] = sweep(scene.process(), execute=False)
    assert isinstance(found.decision, Sweep)
    assert found.done is None
    assert scene.world.objects.peek_keys() == before


@pytest.mark.parametrize("going", [0, 1])
def test_only_what_may_go_counts_for_the_share_of_the_fleet(scene, monkeypatch, going):
    """One attempt is kept; with another one that may go, all that may go is half of them."""
    scene.certify()
    if going:
        leave_unproven(scene, scene.fill(TOPIC))
    monkeypatch.setattr(sweeping, "SMALL_RUN", 0)
    settings = scene.stack.settings
    few = replace(settings, release=replace(settings.release, fleet_share_max=0.4))
    stack = replace(scene.process(), settings=few)
    if going:
        with pytest.raises(RefusedError, match="1 of 2 attempts would be deleted"):
            sweep(stack, execute=True)
        assert len(objects(scene)) == 4
    else:
        sweep(stack, execute=True)


@pytest.mark.parametrize(
    ("going", "fleet", "refused"),
    [(100, 100, False), (101, 1000, False), (200, 1000, False), (201, 1000, True)],
)
def test_a_run_may_take_a_hundred_or_a_share_of_the_fleet(scene, going, fleet, refused):
    settings = scene.stack.settings
    fifth = replace(settings, release=replace(settings.release, fleet_share_max=0.2))
    stack = replace(scene.stack, settings=fifth)
    if refused:
        with pytest.raises(RefusedError, match="is the metadata complete"):
            refuse_mass_delete(stack, going, fleet=fleet)
    else:
        refuse_mass_delete(stack, going, fleet=fleet)


# ----- what changes between the decision and the delete


def at(scene, point, act, monkeypatch):
    @at_effect(point)
    def reach():
        act()

    monkeypatch.setattr(sweeping, "reach", reach)


def hold(scene):
    holds.hold(scene.stack, EVERYTHING, reason="incident", author="kim")


def claim(scene):
    claim_ledger(scene.process("another"), 0)


@pytest.mark.parametrize("change", [claim, hold])
def test_what_changes_once_it_is_given_up_keeps_the_objects(scene, left, monkeypatch, change):
    there = objects(scene)
    at(scene, "sweep.abandoned", lambda: change(scene), monkeypatch)
    [found] = sweep(scene.process(), execute=True)
    assert isinstance(found.decision, NotNow) or "held" in found.error
    assert found.done is None
    assert objects(scene) == there


def test_what_a_run_publishes_meanwhile_is_left_to_it(scene, left, monkeypatch):
    there = objects(scene)

    def later(stack, after, wanted, *, reason):
        win_outcome(scene.stack, left, "publish", reason="publish")
        return win_outcome(stack, after, wanted, reason=reason)

    monkeypatch.setattr(sweeping, "win_outcome", later)
    [found] = sweep(scene.process(), execute=True)
    assert (found.done, found.error) == (None, "")
    assert isinstance(found.decision, Sweep)  # as it was decided before anybody won
    assert objects(scene) == there


# ----- unfinished uploads


def vanish(scene):
    for key in objects(scene):
        scene.world.objects.delete(key)


def uploads(scene):
    return list(scene.world.objects.list_uploads())


def test_an_upload_goes_that_is_all_that_is_left(scene, left):
    """It is no copy, so it goes whether or not the bookies give the ledger."""
    vanish(scene)
    scene.world.monitor.excused.add(("alpha", 0))
    del scene.cluster.bookies[0]
    scene.world.objects.create_upload(left.record.data_key, metadata={})
    [found] = sweep(scene.process(), execute=True)
    assert found.done is not None
    assert found.done.uploads == 1
    assert uploads(scene) == []


def test_a_stray_upload_of_a_proven_copy_goes_and_the_copy_stays(scene):
    record = scene.certify().certificate.record
    scene.world.objects.create_upload(record.data.key, metadata={})
    [kept] = sweep(scene.process(), execute=True)
    assert isinstance(kept.decision, NotNow)
    assert uploads(scene) == []
    assert len(objects(scene)) == 2


def test_the_upload_of_a_copy_that_is_not_proven_yet_stays(scene, left):
    """A run works on it."""
    claim(scene)
    scene.world.objects.create_upload(left.record.data_key, metadata={})
    [kept] = sweep(scene.process(), execute=True)
    assert isinstance(kept.decision, NotNow)
    assert len(uploads(scene)) == 1


# ----- runs that died, and records that say otherwise


def test_what_a_run_deleted_without_saying_so_is_recorded(scene, left):
    win_outcome(scene.stack, left, "abandon", reason="swept")
    vanish(scene)
    sweep(scene.process(), execute=True)
    assert swept(scene, left.record.uid) is not None


def test_what_was_to_be_published_and_vanished_is_not_told_to_be_swept(scene):
    uid = scene.publish().certificate.record.uid
    scene.world.monitor.damaged.add(uid)
    vanish(scene)
    sweep(scene.process(), execute=True)
    assert swept(scene, uid) is None


def test_an_outcome_that_went_after_it_was_listed_says_nothing(scene, left, monkeypatch):
    """Another run forgets the ledger meanwhile."""
    win_outcome(scene.stack, left, "abandon", reason="swept")
    vanish(scene)
    key = keys.outcome(0, left.record.uid)
    really = type(scene.stack.book).read

    def read(book, kind, wanted):
        return None if (kind, wanted) == (Outcome, key) else really(book, kind, wanted)

    monkeypatch.setattr(type(scene.stack.book), "read", read)
    sweep(scene.process(), execute=True)
    assert swept(scene, left.record.uid) is None


def test_of_a_topic_whose_node_cannot_be_read_nothing_goes_and_each_reason_stays(scene):
    """Of two attempts one may go by all that is known; a publication of their topic is damaged."""
    scene.publish()
    dead = leave_unproven(scene, scene.fill(TOPIC))
    kept = scene.certify(scene.fill(TOPIC)).certificate.record
    [publication] = scene.publications()
    scene.world.objects.overwrite(scene.stack.book.prefix + publication.key, b"{")
    found = {one.attempt.record.uid: one.decision for one in sweep(scene.process(), execute=True)}
    why = {uid: str(one) for uid, one in found.items() if isinstance(one, NotNow)}
    doubt = "its topic's node or a publication record of it cannot be read"
    assert why[dead.record.uid] == doubt
    assert why[kept.uid] == "it is proven, and its publication waits"


def test_a_yes_covers_only_what_was_shown(scene, left):
    before = objects(scene)
    [kept] = sweep(scene.process(), execute=True, only=[])
    assert kept.done is None
    assert objects(scene) == before
    [gone] = sweep(scene.process(), execute=True, only=[(0, left.record.uid)])
    assert gone.done is not None
    assert objects(scene) == []
