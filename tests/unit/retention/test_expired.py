"""A plan takes the copies that it names, by what is so right before each delete."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.support.left_behind import DAYS_S, leave_unproven
from tests.support.sim_operator import restore
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.clean.expired_rules import Expired
from tiering_assets.clean.gone_rules import Fate
from tiering_assets.clean.sweep import refuse_mass_delete
from tiering_assets.ground.reasons import NotNow, not_now
from tiering_assets.look.ledger.quarantine import win_outcome
from tiering_assets.records import keys
from tiering_assets.records.models import Hold
from tiering_assets.records.sweep_models import ExpiredPlan, Swept
from tiering_assets.retention import expired
from tiering_assets.retention.expired import execute_expired, find_expired, plan_expired


class Trimmed:
    """Ledger 0 was released and trimmed, and its objects are there; a plan is ready to be carried
    out.
    """

    def __init__(self, seed=1):
        self.scene = Scene(seed)
        self.backup = self.scene.release_and_collect()
        self.uid = self.scene.context().uid
        self.scene.trim()
        self.scene.wait(DAYS_S)

    def plan(self):
        plan, self.found = plan_expired(self.scene.process())
        assert plan is not None
        self.scene.world.monitor.approve(self.scene.site, plan.digest)
        self.scene.wait(2 * 3600)
        return plan

    def execute(self, plan):
        return execute_expired(self.scene.process(), plan.digest)

    def objects(self):
        return [k for k in self.scene.world.objects.peek_keys() if k.startswith(str(self.uid))]

    def swept(self):
        return self.scene.stack.book.read(Swept, keys.swept(0, self.uid))

    def hold(self):
        record = Hold(ledger_id=0, reason="audit", author="kim", held_at=self.scene.stack.now())
        self.scene.stack.book.create(keys.hold(0), record)

    def lift(self):
        self.scene.world.objects.delete(self.scene.stack.book.prefix + keys.hold(0))

    def list_again(self):
        restore(self.scene.world, self.scene.site, self.backup)
        self.scene.site.restored = False


@pytest.fixture
def trimmed():
    trimmed = Trimmed()
    yield trimmed
    assert trimmed.scene.world.monitor.found == []


def meanwhile(trimmed, monkeypatch, act):
    """The plan as a whole was judged, and what it lists is not deleted yet."""
    really = refuse_mass_delete
    monkeypatch.setattr(expired, "refuse_mass_delete", lambda *a, **k: (really(*a, **k), act()))


def test_what_a_plan_names_goes_when_nothing_forbids_it(trimmed):
    plan = trimmed.plan()
    [planned] = plan.plan.copies
    assert (planned.fate, planned.only_copy) == ("trimmed", True)
    [done] = trimmed.execute(plan)
    assert isinstance(done.decision, Expired)
    assert trimmed.objects() == []
    assert trimmed.swept() is not None


def test_what_a_hold_keeps_is_not_told_to_be_gone(trimmed):
    plan = trimmed.plan()
    trimmed.hold()
    [kept] = trimmed.execute(plan)
    assert isinstance(kept.decision, NotNow)
    assert len(trimmed.objects()) == 2
    assert trimmed.swept() is None


def test_what_a_hold_forbids_right_before_the_delete_stays(trimmed, monkeypatch):
    plan = trimmed.plan()
    meanwhile(trimmed, monkeypatch, trimmed.hold)
    [kept] = trimmed.execute(plan)
    assert isinstance(kept.decision, NotNow)
    assert len(trimmed.objects()) == 2


def test_what_is_listed_again_right_before_the_delete_stays(trimmed, monkeypatch):
    plan = trimmed.plan()
    meanwhile(trimmed, monkeypatch, trimmed.list_again)
    [kept] = trimmed.execute(plan)
    assert kept.decision == not_now("its topic lists the ledger again")
    assert len(trimmed.objects()) == 2


def test_what_was_kept_when_the_plan_was_judged_stays_until_the_next_run(trimmed, monkeypatch):
    """It was not counted in the share of the fleet."""
    plan = trimmed.plan()
    trimmed.hold()
    meanwhile(trimmed, monkeypatch, trimmed.lift)
    [kept] = trimmed.execute(plan)
    assert isinstance(kept.decision, NotNow)
    assert len(trimmed.objects()) == 2


def test_a_plan_that_names_no_versions_takes_nothing_and_tells_so(trimmed):
    """As plans of before did."""
    plan = trimmed.plan()
    [stored] = trimmed.scene.stack.book.iter_records(ExpiredPlan, "expired-plans/")
    nameless = tuple(replace(one, versions=()) for one in stored.record.copies)
    trimmed.scene.stack.book.replace(stored, replace(stored.record, copies=nameless))
    trimmed.scene.wait(2 * 3600)
    [kept] = trimmed.execute(plan)
    assert kept.decision == not_now("the plan names no versions: make a new one")
    assert len(trimmed.objects()) == 2
    assert trimmed.swept() is None


def test_a_plan_names_what_is_hidden_behind_a_marker_and_no_marker():
    seed = next(s for s in range(50) if Scene(s).world.objects._versioning)
    trimmed = Trimmed(seed)
    key = trimmed.objects()[0]
    trimmed.scene.world.objects.put(key, b"of somebody else")
    trimmed.scene.world.objects.delete(key)
    trimmed.scene.world.objects.put(key, b"and again")
    bodies = [v for v in trimmed.scene.world.objects.list_versions(key) if not v.is_marker]
    [planned] = trimmed.plan().plan.copies
    assert [v.version_id for v in planned.versions if v.key == key] == [
        v.version_id for v in bodies
    ]
    assert len(bodies) == 3


def test_of_a_ledger_that_was_never_released_it_is_told_that_it_is_not_the_only_copy():
    scene = Scene()
    scene.publish()
    with patch.object(scene.broker.objects, "delete", lambda _key: None):
        scene.broker.delete_topic(TOPIC)
    scene.wait(DAYS_S)
    [found] = find_expired(scene.process())
    assert found.only_copy is False
    assert isinstance(found.decision, Expired)
    assert found.decision.fate is Fate.TOPIC_DELETED


def test_what_was_never_to_be_published_is_none_of_these():
    """One nobody proved, one was given up: a sweep takes them."""
    scene = Scene()
    for _ in range(2):
        scene.fill(TOPIC)
    scene.certify(0)
    dead = leave_unproven(scene, 1)
    win_outcome(scene.stack, dead, "abandon", reason="given up")
    for ledger_id in (0, 1):
        assert scene.broker.trim(TOPIC) == ledger_id
    scene.wait(DAYS_S)
    assert find_expired(scene.process()) == []
