"""A plan is carried out to the letter, here and now: everything else that it is given stays."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.sim_scene import TOPIC, Scene, is_released, reasons_of
from tiering_assets.batch import release_plan
from tiering_assets.batch.release_plan import execute_plan, make_plan, planned_outcomes
from tiering_assets.change import disturb
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.models import Hold
from tiering_assets.release import caps as release_caps
from tiering_assets.release import preview as release_preview
from tiering_assets.release.gate import MayRelease
from tiering_assets.release.preview import plan_release
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import MetadataError, RefusedError

LOST = "t/ns/persistent/lost"


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def due(scene):
    """Ledgers 0 and 1 are published, and their lag has passed."""
    found = {}
    for ledger_id in (0, scene.fill(TOPIC)):
        found[ledger_id] = scene.publish(ledger_id).certificate.record
        scene.wait(60)  # clocks of our processes differ by less
    scene.past_the_lag()
    return found


def hold(scene, ledger_id):
    record = Hold(ledger_id=ledger_id, reason="audit", author="ops", held_at=scene.stack.now())
    scene.stack.book.create(keys.hold(ledger_id), record)


def limited(scene, **limits):
    """A process with other release settings."""
    stack = scene.process("release")
    settings = replace(stack.settings, release=replace(stack.settings.release, **limits))
    return replace(stack, settings=settings)


def plan(scene, *, stack=None, **how):
    return make_plan(stack or scene.process("planner"), {TOPIC: [0, 1]}, **how)


def results_of(outcomes):
    return {one.ledger_id: one.result for one in outcomes}


# ----- what a plan says


def test_it_lists_what_goes_and_what_does_not_with_the_reasons(scene, due):
    hold(scene, 1)
    written = plan(scene)
    assert [one.ledger_id for one in written.plan.release] == [0]
    [stays] = written.plan.not_released
    assert stays.ledger_id == 1
    assert "under a release hold: audit" in "; ".join(stays.reasons)
    assert set(written.suites) == {0, 1}
    assert (written.finished, written.errors) == ((), {})
    first, second = planned_outcomes(written)
    assert first.result == MayRelease(due[0].uid)
    assert second.result == NotNow(stays.reasons)


def test_what_does_not_go_uses_up_no_cap(scene, due):
    hold(scene, 0)
    written = plan(scene, stack=limited(scene, per_run_max=1))
    assert [one.ledger_id for one in written.plan.release] == [1]


def test_what_meets_a_cap_stays_and_says_so(scene, due):
    written = plan(scene, stack=limited(scene, per_run_max=1))
    assert [one.ledger_id for one in written.plan.release] == [0]
    [stays] = written.plan.not_released
    assert stays.ledger_id == 1
    assert stays.reasons == ("capped: release.per_run_max = 1",)


def test_a_topic_that_cannot_be_looked_at_is_told_and_holds_up_no_other(scene, due, monkeypatch):
    def see(stack, ml_name):
        if ml_name == LOST:
            raise MetadataError("no answer")
        return disturb.see(stack, ml_name)

    scene.broker.create_topic(LOST)
    monkeypatch.setattr(release_preview, "see", see)
    written = make_plan(scene.process("planner"), {LOST: [7], TOPIC: [0, 1]})
    assert [one.ledger_id for one in written.plan.release] == [0, 1]
    [stays] = written.plan.not_released
    assert stays.reasons == ("could not be looked at: no answer",)
    assert 7 not in written.suites
    [lost] = [one for one in planned_outcomes(written) if one.ledger_id == 7]
    assert isinstance(lost.result, MetadataError)
    done = results_of(execute_plan(scene.process("release"), written).outcomes)
    assert isinstance(done[7], MetadataError)
    assert is_released(done[0])


@pytest.mark.parametrize("missing", ["certificate", "published_at"])
def test_nothing_is_planned_without_its_proof(scene, due, missing, monkeypatch):
    def planned(stack, topics, **how):
        items = plan_release(stack, TOPIC, topics[TOPIC], shadows=how["shadows"])
        nothing: Any = {missing: None}
        return {TOPIC: [replace(one, **nothing) for one in items]}

    monkeypatch.setattr(release_plan, "plan_releases", planned)
    with pytest.raises(RefusedError, match="planned for release without its proof"):
        plan(scene)


# ----- carrying one out


def test_it_releases_what_it_lists_and_tells_the_rest(scene, due):
    hold(scene, 1)
    written = plan(scene)
    scene.world.objects.delete(scene.stack.book.prefix + keys.hold(1))
    done = results_of(execute_plan(scene.process("release"), written).outcomes)
    assert is_released(done[0])
    assert "under a release hold: audit" in reasons_of(done[1])
    assert scene.cluster.has_node(1)
    assert scene.stack.book.exists(keys.release_plan(written.digest))


def test_what_an_earlier_run_released_is_told_once_and_finished(scene, due):
    assert is_released(scene.release(0))
    written = plan(scene)
    assert written.finished == (0,)
    assert set(written.suites) == {1}
    outcomes = execute_plan(scene.process("release"), written).outcomes
    assert [one.ledger_id for one in outcomes] == [0, 1]
    assert results_of(outcomes)[0] == Released(due[0].ledger.length, noop=True)


def test_a_plan_of_nothing_leaves_no_record(scene, due):
    hold(scene, 0)
    hold(scene, 1)
    written = plan(scene)
    execute_plan(scene.process("release"), written)
    assert not scene.stack.book.exists(keys.release_plan(written.digest))


# ----- plans that are not carried out


@pytest.fixture
def refused(scene, due):
    """Asserts that a plan is refused as a whole, with nothing marked, deleted or recorded."""

    def refused(written, why, *, stack=None):
        with pytest.raises(RefusedError, match=why):
            execute_plan(stack or scene.process("release"), written)
        assert not scene.stack.book.exists(keys.release_plan(written.digest))
        for ledger_id in due:
            assert scene.cluster.has_node(ledger_id)
            assert not scene.context(ledger_id).bookkeeper_deleted

    return refused


@pytest.mark.parametrize("field", ["instance", "bucket"])
def test_one_of_another_place_is_not(scene, refused, field):
    written = plan(scene)
    other = replace(written.plan, **{field: "another"})
    refused(replace(written, plan=other), "make a plan here")


def test_one_that_is_too_old_is_not(scene, refused):
    written = plan(scene)
    scene.wait(scene.stack.settings.release.plan_valid_s + 60)
    refused(written, "release.plan_valid_s is")


def test_one_of_the_future_is_not(scene, refused):
    written = plan(scene)
    skew_s = scene.stack.settings.publish.clock_skew_max_s
    stack, behind = scene.process("release"), timedelta(seconds=skew_s + 120)
    late = replace(stack, now=lambda: written.plan.planned_at - behind)
    refused(written, "dated in the future", stack=late)


def test_one_that_takes_too_much_of_the_fleet_is_not_until_a_person_says_so(
    scene, refused, monkeypatch
):
    monkeypatch.setattr(release_caps, "TRIPWIRE_ITEMS", 1)
    wide = limited(scene, fleet_share_max=0.01)
    written = plan(scene, stack=wide)
    assert "2 of 2 ledgers would go at once" in written.plan.tripwire
    refused(written, "Look at the plan and acknowledge it", stack=wide)
    said = plan(scene, stack=wide, acknowledged="ops: a move")
    assert all(is_released(one) for one in results_of(execute_plan(wide, said).outcomes).values())


def test_one_that_needs_no_acknowledgement_is_carried_out_without(scene, due):
    assert plan(scene).plan.acknowledged is None
    done = results_of(execute_plan(scene.process("release"), plan(scene)).outcomes)
    assert all(map(is_released, done.values()))


# ----- what is made ready while suites judge


def foreseen(scene, **limits):
    """What a planner said and made ready."""
    did: list[str] = []
    stack = replace(limited(scene, **limits), narrate=did.append)
    stack.runner.begin = lambda: did.append("begin")
    plan(scene, stack=stack)
    return did


def test_what_every_byte_is_read_of_gets_a_runner_ready(scene, due):
    did = foreseen(scene)
    assert did[0] == "begin"
    assert did[1].startswith("2 ledgers, ")


def test_what_is_not_read_again_starts_no_runner(scene, due):
    assert "begin" not in foreseen(scene, reread_without_key=False)


def test_what_no_suite_is_asked_about_gets_nothing_ready(scene):
    """Nothing is published."""
    scene.fill(TOPIC)
    assert foreseen(scene) == []
