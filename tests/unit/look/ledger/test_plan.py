"""A ledger is planned only as both metadata trees show it, and for a topic that we may touch."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.sim_cluster import SimCluster
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.explain.ledger_report import report_ledger
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger import plan
from tiering_assets.look.ledger.eligibility import MayCopy
from tiering_assets.look.ledger.plan import decide_sight, look_at, plan_ledger
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import (
    SHADOW_SOURCE_PROPERTY,
    managed_ledger_path,
)

PATH = managed_ledger_path(TOPIC)


@pytest.fixture
def scene():
    return Scene()


def planned(scene, ledger_id=0, **how):
    return plan_ledger(scene.process(), ledger_id, **how)


def edit_topic(scene, edit):
    stored = scene.cluster.metadata.nodes[PATH]
    found = decode_managed_ledger(stored.data)
    message = found.message_copy()
    edit(message)
    scene.cluster.metadata.put(PATH, encode_managed_ledger(found.with_message(message)))


def test_a_closed_ledger_is_laid_out_without_anything_to_note(scene):
    found = planned(scene)
    assert found.ml_name == TOPIC
    assert found.notes == ()
    assert found.block_bytes == 400
    assert planned(scene, block_bytes=500).block_bytes == 500


def test_what_recovery_left_in_the_length_is_noted(scene, monkeypatch):
    really = SimCluster._metadata

    def longer(self, *args, **how):
        metadata = really(self, *args, **how)
        return replace(metadata, length=metadata.length + 7)

    monkeypatch.setattr(SimCluster, "_metadata", longer)
    assert "counts 7 bytes beyond the last entry" in "".join(
        planned(scene, scene.fill(TOPIC)).notes
    )


# ----- what waits


def test_the_ledger_that_is_written_to_is_not_planned(scene):
    open_id = scene.broker.load(TOPIC).open_id
    assert planned(scene, open_id).reason is Reason.OPEN


@pytest.mark.parametrize("ml_name", [None, TOPIC])
def test_a_ledger_that_bookkeeper_does_not_have_is_missing(scene, ml_name):
    scene.cluster.delete_ledger(0)
    assert planned(scene, ml_name=ml_name).reason is Reason.MISSING


def test_a_ledger_whose_topic_is_gone_is_in_none(scene):
    del scene.cluster.metadata.nodes[PATH]
    assert planned(scene).reason is Reason.NOT_IN_TOPIC


def test_a_shadows_ledgers_are_never_touched(scene):
    edit_topic(
        scene,
        lambda message: message.properties.add(
            key=SHADOW_SOURCE_PROPERTY, value="persistent://t/ns/source"
        ),
    )
    assert planned(scene).reason is Reason.NEVER_TOUCHED


@pytest.mark.parametrize(
    ("custom", "said"),
    [
        ({"component": b"schema"}, "component schema"),
        ({}, "its metadata names no managed ledger"),
        ({"pulsar/managed-ledger": b"functions"}, "functions"),
    ],
)
def test_a_ledger_of_no_topic_is_foreign(scene, monkeypatch, custom, said):
    really = SimCluster._metadata

    def other(self, *args, **how):
        return replace(really(self, *args, **how), custom=custom)

    monkeypatch.setattr(SimCluster, "_metadata", other)
    assert planned(scene, scene.fill(TOPIC)) == Wait(Reason.FOREIGN, said)


@pytest.mark.parametrize("missing", ["node", "topic", "topic_node", "ml_name"])
def test_whatever_is_decided_nothing_is_planned_of_what_was_not_seen(scene, monkeypatch, missing):
    really = plan.look_at

    def look(*args, **how):
        nothing: Any = {missing: None}
        return replace(really(*args, **how), **nothing)

    monkeypatch.setattr(plan, "look_at", look)
    monkeypatch.setattr(plan, "decide_sight", lambda *_args, **_how: MayCopy(1))
    assert planned(scene) == Wait(Reason.MISSING, "ledger 0 vanished while it was looked at")


def test_a_ledger_that_a_release_deleted_is_released(scene):
    scene.release_and_collect()
    decision = decide_sight(look_at(scene.process(), 0, ml_name=TOPIC))
    assert decision == Wait(Reason.RELEASED, f"brokers read the copy {scene.context().uid}")


# ----- what people are told of the gate


def told(scene):
    return report_ledger(scene.process(), 0)


def test_a_ledger_that_may_go_is_told_so_and_one_that_may_not_with_its_reasons(scene):
    scene.publish()
    assert "deletion lag has not elapsed" in "; ".join(told(scene).reasons)
    scene.past_the_lag()
    found = told(scene)
    assert found.reasons == ("every condition of the release gate is met",)
    assert found.next_step == "tierkeeper ledger release 0 --execute"
