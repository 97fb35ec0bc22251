"""Records go last, by what is so right before each ledger's; what a plan does not name stays."""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.support.sim_operator import restore
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.clean import sweep
from tiering_assets.clean.sweep import refuse_mass_delete
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import Scope
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.records.models import Hold
from tiering_assets.retention import forget
from tiering_assets.retention.forget import execute_forget, find_gone, plan_forget

MONTH_S = 31 * 86400
OTHER = "t/ns/persistent/other"


class Gone:
    """Ledgers 0 and 1 were tiered and trimmed, objects and all, a month ago."""

    def __init__(self):
        self.scene = Scene()
        for _ in range(2):
            self.scene.fill(TOPIC)
        for ledger_id in (0, 1):
            self.scene.publish(ledger_id)
        self.scene.broker.load(TOPIC)
        self.backup = dict(self.scene.cluster.metadata.nodes)
        for ledger_id in (0, 1):
            assert self.scene.broker.trim(TOPIC) == ledger_id
        self.scene.wait(MONTH_S)

    def plan(self):
        recorded, _found = plan_forget(self.scene.process())
        assert recorded is not None
        self.scene.world.monitor.approve(self.scene.site, recorded.digest)
        self.scene.wait(2 * 3600)
        return recorded

    def execute(self, recorded):
        return {one.ledger_id: one for one in execute_forget(self.scene.process(), recorded.digest)}

    def records(self, ledger_id):
        return [key for key in self.scene.stack.book.keys("") if f"/{ledger_id}/" in key]

    def hold(self):
        record = Hold(ledger_id=0, reason="audit", author="kim", held_at=self.scene.stack.now())
        self.scene.stack.book.create(keys.hold(0), record)

    def lift(self):
        self.scene.world.objects.delete(self.scene.stack.book.prefix + keys.hold(0))

    def list_again(self):
        restore(self.scene.world, self.scene.site, self.backup)
        self.scene.site.restored = False

    def try_again(self, ml_name=TOPIC):
        """Another attempt on ledger 0."""
        [first] = attempts_of(self.scene.stack, 0)
        uid = UUID(int=7)
        again = replace(first.record, uid=uid, ml_name=ml_name, data_key=data_key(uid, 0))
        self.scene.stack.book.create(keys.attempt(0, uid), again)
        return uid

    def object_comes_back(self):
        [attempt] = attempts_of(self.scene.stack, 0)
        self.scene.world.objects.put(attempt.record.data_key, b"late")


@pytest.fixture
def gone():
    gone = Gone()
    yield gone
    assert gone.scene.world.monitor.found == []


def meanwhile(gone, monkeypatch, act):
    """The plan as a whole was judged, and what it lists is not deleted yet."""
    really = refuse_mass_delete
    monkeypatch.setattr(forget, "refuse_mass_delete", lambda *a, **k: (really(*a, **k), act()))


def kept(gone, found):
    """Why ledger 0's records are all there; those of ledger 1 went."""
    assert found[0].deleted is None
    assert keys.attempt(0, found[0].uids[0]) in gone.records(0)
    assert gone.records(1) == []
    return found[0].why_kept


def test_the_records_of_what_is_gone_go(gone):
    assert [(one.ledger_id, one.why_kept) for one in find_gone(gone.scene.process())] == [
        (0, ""),
        (1, ""),
    ]
    plan = gone.plan()
    assert [one.ledger_id for one in plan.plan.ledgers] == [0, 1]
    assert all(one.deleted for one in gone.execute(plan).values())
    assert gone.records(0) == gone.records(1) == []


def test_of_a_topic_that_was_deleted_they_go_too(gone):
    gone.scene.broker.delete_topic(TOPIC)
    assert all(one.deleted for one in gone.execute(gone.plan()).values())


def test_what_may_not_go_is_not_planned(gone):
    gone.hold()
    assert [one.ledger_id for one in gone.plan().plan.ledgers] == [1]


def test_a_list_without_ledgers_is_no_trim(gone):
    """A node that was put back empty."""
    path = gone.scene.cluster.metadata.nodes
    stored = path["/managed-ledgers/" + TOPIC]
    path["/managed-ledgers/" + TOPIC] = replace(stored, data=b"")
    gone.scene.broker.restart()
    whys = {one.why_kept for one in find_gone(gone.scene.process())}
    assert whys == {"its topic lists no ledger at all, which no trim leaves"}


def test_only_what_may_go_counts_for_the_share_of_the_fleet(gone, monkeypatch):
    plan = gone.plan()
    gone.hold()
    monkeypatch.setattr(sweep, "SMALL_RUN", 0)
    settings = gone.scene.world.settings
    half = replace(settings, release=replace(settings.release, fleet_share_max=0.5))
    monkeypatch.setattr(gone.scene.world, "settings", half)
    assert "held" in kept(gone, gone.execute(plan))


# ----- what changes between the judgement of the plan and the delete


def test_a_hold_keeps_them(gone, monkeypatch):
    plan = gone.plan()
    meanwhile(gone, monkeypatch, gone.hold)
    assert "held" in kept(gone, gone.execute(plan))


def test_an_object_that_comes_back_keeps_them(gone, monkeypatch):
    plan = gone.plan()
    meanwhile(gone, monkeypatch, gone.object_comes_back)
    assert "1 objects and 0 uploads of it are in the bucket" in kept(gone, gone.execute(plan))


def test_a_list_that_comes_back_keeps_them(gone, monkeypatch):
    plan = gone.plan()
    meanwhile(gone, monkeypatch, gone.list_again)
    found = gone.execute(plan)
    assert {one.why_kept for one in found.values()} == {"its topic lists the ledger again"}
    assert gone.records(0)
    assert gone.records(1)


def test_an_attempt_that_the_plan_does_not_name_keeps_them(gone, monkeypatch):
    plan = gone.plan()
    uid = gone.try_again()
    gone.scene.wait(MONTH_S / 31)
    settings = gone.scene.stack.settings
    long = replace(settings.release, records_kept_s=1.0, plan_valid_s=30 * 86400.0)
    monkeypatch.setattr(
        gone.scene.world, "settings", replace(gone.scene.world.settings, release=long)
    )
    assert kept(gone, gone.execute(plan)) == f"attempt {uid} is not in the plan"


def test_what_was_kept_when_the_plan_was_judged_stays_until_the_next_run(gone, monkeypatch):
    """It was not counted in the share of the fleet."""
    plan = gone.plan()
    gone.hold()
    meanwhile(gone, monkeypatch, gone.lift)
    assert "held" in kept(gone, gone.execute(plan))


def test_what_another_run_forgot_first_is_done_all_the_same(gone, monkeypatch):
    plan = gone.plan()

    def forgotten():
        for key in gone.scene.stack.book.keys("attempts/0/"):
            gone.scene.world.objects.delete(gone.scene.stack.book.prefix + key)

    meanwhile(gone, monkeypatch, forgotten)
    assert gone.execute(plan)[0].deleted
    assert gone.records(0) == []


# ----- several attempts on one ledger


def test_a_reason_of_any_topic_that_attempts_were_made_for_keeps_them(gone):
    gone.try_again(OTHER)
    gone.scene.wait(MONTH_S)
    hold(gone.scene.stack, Scope("topic", OTHER), reason="court", author="kim")
    [first, second] = find_gone(gone.scene.process())
    assert "court" in first.why_kept
    assert second.why_kept == ""


def test_one_attempt_that_cannot_be_read_keeps_all_of_its_ledger(gone):
    uid = gone.try_again()
    gone.scene.wait(MONTH_S)
    assert len(find_gone(gone.scene.process())) == 2
    key = gone.scene.stack.book.prefix + keys.attempt(0, uid)
    gone.scene.world.objects.overwrite(key, b"{")
    assert [one.ledger_id for one in find_gone(gone.scene.process())] == [1]
