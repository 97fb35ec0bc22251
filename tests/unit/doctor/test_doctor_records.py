"""What doctor says of keys that are no record's, and of holds that cannot be read."""

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.doctor import records as doctor_records
from tiering_assets.doctor.records import check_records
from tiering_assets.ground.finding import Level
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import ledger_scope
from tiering_assets.records import keys


@pytest.fixture
def scene():
    scene = Scene()
    scene.publish()
    return scene


def put(scene, key, body=b""):
    scene.world.objects.put(scene.stack.book.prefix + key, body)


def test_records_alone_are_well(scene):
    [one] = check_records(scene.stack)
    assert (one.level, one.next_step) == (Level.OK, "")


def test_a_folder_key_is_told_and_is_nothing_to_fear(scene):
    put(scene, "attempts/")
    put(scene, "attempts/0/")
    [one] = check_records(scene.stack)
    assert one.level is Level.WARN
    assert one.text.startswith("2 keys below ")
    assert "attempts/, attempts/0/" in one.text


@pytest.mark.parametrize(
    "key", ["holds/", "holds/5/", "holds/topics/", "holds/orders.json", "holds/topics/orders.json"]
)
def test_one_among_the_holds_may_have_been_meant_as_one(scene, key):
    put(scene, key, b"{}")
    [one] = check_records(scene.stack)
    assert one.level is Level.FAIL
    assert f"{key} (possibly meant " in one.text
    assert "tierkeeper hold set" in one.next_step


def test_a_hold_that_cannot_be_read_is_told(scene):
    hold(scene.stack, ledger_scope(0), reason="x", author="y")
    scene.world.objects.overwrite(scene.stack.book.prefix + keys.hold(0), b"{")
    [one] = check_records(scene.stack)
    assert one.level is Level.FAIL
    assert keys.hold(0) in one.text


def test_files_of_tables_are_no_strays(scene):
    put(scene, "catalogue/1/blocks/_delta_log/00000000000000000000.json", b"{}")
    [one] = check_records(scene.stack)
    assert one.level is Level.OK


def test_a_large_bucket_is_looked_at_in_part(scene, monkeypatch):
    monkeypatch.setattr(doctor_records, "KEYS_MAX", 3)
    [one] = check_records(scene.stack)
    assert one.text.startswith("3 keys (more were not looked at)")
