"""A broken context is replaced only while BookKeeper has the ledger."""

import pytest

from tests.support.sim_scene import TOPIC
from tiering_assets.change import topic_change
from tiering_assets.ground import stack as freshness
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.scrub.heal import Healed, heal_topic


@pytest.fixture
def broken(scene):
    """Ledger 0 is published and marked, and a scrub has found its copy to be broken."""
    record = scene.publish().certificate.record
    scene.world.monitor.damaged.add(record.uid)
    scene.world.rot(record.data.key)
    quarantine(scene.stack, 0, record.uid, ml_name=TOPIC, reason="rot", previous=record.previous)
    return record.uid


def test_a_broken_copy_is_replaced_while_the_bookies_have_it(scene, broken):
    result = heal_topic(scene.process(), TOPIC, {0: broken})[0]
    assert isinstance(result, Healed), result
    assert scene.context().uid == result.uid


@pytest.mark.parametrize("moment", ["before the read", "between read and write"])
def test_a_ledger_that_bookkeeper_loses_meanwhile_keeps_its_context(
    scene, broken, moment, monkeypatch
):
    """The new context would say that the bookies have it."""

    def lose():
        scene.world.monitor.excused.add(("alpha", 0))
        scene.cluster.delete_ledger(0)

    if moment == "before the read":
        really = topic_change.contexts_for

        def losing(stack, wanted):
            lose()
            return really(stack, wanted)

        monkeypatch.setattr(topic_change, "contexts_for", losing)
    else:
        fresh = freshness.require_fresh
        monkeypatch.setattr(topic_change, "require_fresh", lambda *a, **k: (lose(), fresh(*a, **k)))
    result = heal_topic(scene.process(), TOPIC, {0: broken})[0]
    assert isinstance(result, Wait), result
    assert result.reason is Reason.MISSING
    assert scene.context().uid == broken
