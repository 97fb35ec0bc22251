"""Whoever finds a broken copy, everything knows of it, and one flipped bit on the way is no
damage.
"""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene, flip_reads, reasons_of
from tiering_assets.audit.audit import audit_store
from tiering_assets.audit.audit_damage import record_audited
from tiering_assets.explain.backlog import explain_backlog, explain_ledger
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.fleet.backlog import take_backlog
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import ledger_scope
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.models import Damage, Quarantine
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.scrub.fleet import find_fleet
from tiering_assets.scrub.scrub import scrub
from tiering_assets.verify.verify_again import verify_again, verify_object


def verify(scene):
    return verify_again(scene.process(), [0], source=False, found_by="verify")[0]


def object_verify(scene):
    return verify_object(scene.process(), data_key(scene.context().uid, 0))


def audit(scene, said=None):
    stack = scene.process()

    def look(some):
        return audit_store(stack.objects, stack.settings, ledger_ids=some, deep=True)

    tell = said.append if said is not None else stack.narrate
    report = look(None)
    report.recorded = record_audited(stack.objects, report, look, narrate=tell)
    return report


FINDERS = {
    "ledger verify and the job verify": verify,
    "object verify": object_verify,
    "audit verify": audit,
    "scrub": lambda scene: scrub(scene.process(), deep=True, heal=False),
}


@pytest.fixture
def scene():
    scene = Scene()
    scene.publish()
    return scene


@pytest.fixture
def rotten(scene):
    uid = scene.context().uid
    scene.world.monitor.damaged.add(uid)
    scene.world.rot(data_key(uid, 0))
    return scene


def reason(scene):
    stack = scene.process()
    [fleet] = [one.because for one in explain_backlog(stack) if one.view.ledger_id == 0]
    assert explain_ledger(stack, 0).because == fleet
    return fleet


@pytest.mark.parametrize("finder", FINDERS)
def test_whoever_finds_it_it_is_known_everywhere(rotten, finder):
    assert take_backlog(rotten.stack).figures.total.verified_share == 1
    FINDERS[finder](rotten)
    because = reason(rotten)
    assert because.reason is BacklogReason.DAMAGED
    assert "`tierkeeper scrub run --topic persistent://t/ns/orders --execute`" in because.detail
    assert take_backlog(rotten.stack).figures.total.verified_share == 0
    assert [c.failing for c in find_fleet(rotten.stack).candidates] == [True]
    rotten.past_the_lag()
    assert "a check of this attempt failed" in reasons_of(rotten.release())
    scrub(rotten.process())
    assert reason(rotten).reason is not BacklogReason.DAMAGED
    assert take_backlog(rotten.stack).figures.total.verified_share == 1


@pytest.mark.parametrize("finder", FINDERS)
def test_a_bit_that_flipped_on_the_way_is_no_damage(scene, finder, monkeypatch):
    left = flip_reads(scene, monkeypatch, 1)
    FINDERS[finder](scene)
    assert left == [0]
    assert not scene.is_quarantined(0, scene.context().uid)
    assert reason(scene).reason is BacklogReason.IN_LAG


def test_a_first_look_alone_is_told(scene, monkeypatch):
    flip_reads(scene, monkeypatch, 1)
    found = verify(scene)
    assert found.findings == ()
    assert "a first look found otherwise" in "; ".join(found.notes)


def test_it_is_new_once(rotten):
    assert verify(rotten).new is True
    first = rotten.stack.book.require(Quarantine, keys.quarantine(0, rotten.context().uid)).record
    assert first.reason.startswith("verify: block 1")
    again = verify(rotten)
    assert again.findings
    assert again.new is False


def test_a_hold_does_not_hide_it(rotten):
    verify(rotten)
    hold(rotten.process(), ledger_scope(0), reason="audit", author="Kim")
    assert reason(rotten).reason is BacklogReason.DAMAGED


def test_what_a_broker_copied_is_recorded_until_it_is_read_well(monkeypatch):
    scene = Scene()
    assert scene.broker.offload(TOPIC)
    uid = scene.context().uid
    key = data_key(uid, 0)
    [body, _metadata] = scene.world.objects.peek(key) or (b"", {})
    scene.world.monitor.damaged.add(uid)
    scene.world.rot(key)
    assert object_verify(scene).findings
    record = scene.stack.book.require(Damage, keys.damage(0, uid)).record
    assert (record.found_by, record.ml_name) == ("object verify", TOPIC)
    assert reason(scene).reason is BacklogReason.DAMAGED
    scene.world.objects.rot(key, body)
    scene.wait(1)
    shallow = scene.process()
    rare = replace(shallow.settings.scrub, shallow_every_s=1e-6, deep_every_s=3e8)
    scrub(replace(shallow, settings=replace(shallow.settings, scrub=rare)), heal=False)
    assert reason(scene).reason is BacklogReason.DAMAGED  # not every byte was read
    scrub(scene.process(), deep=True, heal=False)
    assert scene.stack.book.read(Damage, keys.damage(0, uid)) is None
    assert reason(scene).reason is not BacklogReason.DAMAGED


def test_what_somebody_may_be_writing_is_no_damage():
    scene = Scene()
    assert not scene.broker.offload(TOPIC, stops_after=1)  # its context is not complete
    uid = scene.context().uid
    scene.world.objects.delete(index_key(uid, 0))
    assert verify_object(scene.process(), data_key(uid, 0)).findings
    assert scene.stack.book.keys(keys.DAMAGE) == []


@pytest.mark.parametrize("finder", ["object verify", "audit verify"])
def test_who_may_only_read_is_told_that_nothing_was_recorded(rotten, finder, monkeypatch):
    said: list[str] = []

    def refused(*_args, **_how):
        raise ObjectStoreError("403 AccessDenied")

    monkeypatch.setattr(type(rotten.world.objects), "put", refused)
    if finder == "audit verify":
        report = audit(rotten, said)
        assert report.findings
        assert report.recorded == 0
    else:
        stack = replace(rotten.process(), narrate=said.append)
        assert verify_object(stack, data_key(rotten.context().uid, 0)).findings
    assert "its damage could not be recorded: 403 AccessDenied" in "\n".join(said)
