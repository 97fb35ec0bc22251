"""What is told of a pass over a topic's prefix: what is left, what another run did, what no waiting
cures.
"""

from dataclasses import replace

import pytest

from tests.support.left_behind import PATH
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.batch import offload_prefix as prefixes
from tiering_assets.batch.offload_prefix import (
    look_again,
    offload_prefix,
    offload_prefix_until,
    plan_prefix,
    require_topic,
)
from tiering_assets.batch.pipeline import LedgerOutcome
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger.claims import claim_ledger
from tiering_assets.resources.errors import IntegrityError, MetadataConflictError, RefusedError
from tiering_assets.resources.metastore.ledger_info import Position, decode_managed_ledger


@pytest.fixture
def scene():
    """Ledgers 0 and 1 are closed."""
    scene = Scene()
    scene.fill(TOPIC)
    return scene


@pytest.fixture
def plan(scene):
    """All before the open ledger."""
    return plan_prefix(scene.process(), TOPIC, Position(scene.broker.load(TOPIC).open_id, 0))


def waits(ledger_id, reason):
    return LedgerOutcome(ledger_id=ledger_id, ml_name=TOPIC, wait=Wait(reason, "so it is"))


def fails(ledger_id, error):
    return LedgerOutcome(ledger_id=ledger_id, ml_name=TOPIC, error=error)


def delete(scene):
    del scene.cluster.metadata.nodes[PATH]


def empty(scene):
    """Somebody takes all ledgers out of the list."""
    nodes = scene.cluster.metadata.nodes
    message = decode_managed_ledger(nodes[PATH].data).message_copy()
    message.ClearField("ledgerInfo")
    nodes[PATH] = replace(nodes[PATH], data=message.SerializeToString())
    scene.broker.restart()


def test_a_pass_offloads_what_is_before_the_goal_and_has_then_nothing_to_do(scene, plan):
    found = offload_prefix(scene.process(), plan)
    assert [(one.ledger_id, one.state) for one in found.outcomes] == [
        (0, "published"),
        (1, "published"),
    ]
    assert found.reached
    assert offload_prefix(scene.process(), plan).outcomes == ()


def test_a_topic_that_nobody_has_and_one_of_partitions_are_told_apart(scene):
    with pytest.raises(RefusedError, match="the metadata store has no such topic"):
        require_topic(scene.process(), "t/ns/persistent/none")
    scene.broker.create_topic("t/ns/persistent/parts-partition-0")
    with pytest.raises(RefusedError, match="is partitioned and each partition"):
        require_topic(scene.process(), "t/ns/persistent/parts")


def test_a_topic_that_lost_its_ledgers_has_nothing_left_to_offload(scene, plan):
    empty(scene)
    found = offload_prefix(scene.process(), plan)
    assert found.outcomes == ()
    assert found.first_unoffloaded is None


def test_a_topic_that_is_gone_has_not_reached_its_goal(scene, plan):
    delete(scene)
    found = look_again(scene.process(), plan)
    assert (found.reached, found.first_unoffloaded) == (False, None)


# ----- what no waiting cures


@pytest.mark.parametrize(
    ("outcome", "stuck"),
    [
        (waits(0, Reason.CLAIMED), ()),
        (waits(0, Reason.EXPIRED), ()),
        (waits(0, Reason.QUARANTINED), ("ledger 0: quarantined: so it is",)),
        (fails(0, MetadataConflictError("changed")), ()),  # it may pass
        (fails(0, IntegrityError("differs")), ("ledger 0: differs",)),
    ],
)
def test_only_what_no_waiting_cures_is_named(scene, plan, outcome, stuck):
    assert look_again(scene.process(), plan, [outcome]).stuck == stuck


# ----- until it is done


def until(scene, plan, *passes, timeout_s=25.0, between=lambda: None):
    """Each pass comes to these outcomes; what is said, and the end."""
    said: list[str] = []
    given = iter(passes)

    def one_pass(stack, plan, *, publish=True):
        return look_again(stack, plan, next(given, ()))

    def sleep(seconds):
        scene.wait(seconds)
        between()

    stack = replace(scene.process(), narrate=said.append, sleep=sleep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefixes, "offload_prefix", one_pass)
        return offload_prefix_until(stack, plan, timeout_s=timeout_s), said


def test_the_first_reasons_to_wait_are_told_and_the_rest_counted(scene, plan):
    four = [waits(i, Reason.CLAIMED) for i in range(3)] + [
        fails(3, MetadataConflictError("changed"))
    ]
    _found, said = until(scene, plan, four, timeout_s=5.0)
    told = "; ".join(f"ledger {i} {Wait(Reason.CLAIMED, 'so it is')}" for i in range(3))
    assert f"; {told}; 1 more; again in" in said[0]
    fine = LedgerOutcome(ledger_id=4, ml_name=TOPIC)
    _found, said = until(scene, plan, [*four[:2], fine, four[3]], timeout_s=5.0)
    assert "ledger 3 changed; again in" in said[0]
    assert "ledger 4" not in said[0]
    assert "more" not in said[0]


def test_what_another_run_did_meanwhile_is_told_at_the_end(scene, plan):
    outcomes = [waits(0, Reason.CLAIMED), fails(1, MetadataConflictError("changed"))]
    found, _said = until(
        scene, plan, outcomes, between=lambda: [scene.publish(i) for i in (0, 1)], timeout_s=12.0
    )
    assert found.reached
    assert [str(one.wait) for one in found.outcomes] == [
        str(Wait(Reason.PUBLISHED, "by another run"))
    ] * 2
    assert [one.error for one in found.outcomes] == [None, None]


def test_what_retention_took_meanwhile_is_told_at_the_end(scene, plan):
    found, _said = until(
        scene,
        plan,
        [waits(0, Reason.CLAIMED), waits(1, Reason.CLAIMED)],
        between=lambda: scene.broker.trim(TOPIC),
        timeout_s=2.0,
    )
    assert [one.wait.reason for one in found.outcomes] == [Reason.EXPIRED, Reason.CLAIMED]


def test_of_a_topic_that_is_gone_the_last_outcomes_stay(scene, plan):
    found, _said = until(
        scene, plan, [waits(0, Reason.CLAIMED)], between=lambda: delete(scene), timeout_s=2.0
    )
    assert [one.wait.reason for one in found.outcomes] == [Reason.CLAIMED]
    assert not found.reached


def test_what_this_run_published_is_told_as_that_whatever_became_of_it(scene, plan):
    outcome = scene.publish(0)
    found, _said = until(scene, plan, [outcome], timeout_s=0.0)
    assert [(one.state, one.wait) for one in found.outcomes] == [("published", None)]
    scene.broker.load(TOPIC)
    assert scene.broker.trim(TOPIC) == 0
    found, _said = until(scene, plan, [outcome], timeout_s=0.0)
    assert [(one.state, one.wait) for one in found.outcomes] == [("published", None)]


def test_another_runs_claim_is_waited_for_until_it_ends(scene, plan):
    assert claim_ledger(scene.process("another"), 0) is None
    stack = replace(scene.process(), sleep=scene.wait)
    assert offload_prefix_until(stack, plan, timeout_s=300.0).reached
