"""What a hold covers, and that a release asks for it by the topic's whole name, too."""

import pytest

from resources.errors import LedgerNotFoundError
from tests.support.sim_scene import TOPIC, Scene, is_released, reasons_of
from tiering_assets.look.brakes.holds import (
    hold_all,
    hold_keys_of,
    hold_namespace,
    hold_topic,
    lift_hold,
    read_holds,
    still_held,
)
from tiering_assets.records import keys

WHO = {"reason": "court", "author": "ops"}
WHOLE = "t/ns/persistent/orders"
PARTITIONS = [f"{WHOLE}-partition-0", f"{WHOLE}-partition-17"]
OTHERS = [
    "t/ns/persistent/order",
    "t/ns/persistent/orders2",
    f"{WHOLE}-partition-x",
    f"{WHOLE}-partition-01",
    "t/other/persistent/orders-partition-0",
]


@pytest.mark.parametrize("ml_name", [WHOLE, *PARTITIONS])
def test_a_topics_hold_covers_it_and_every_partition(ml_name):
    scene = Scene()
    hold_topic(scene.stack, WHOLE, **WHO)
    assert read_holds(scene.stack).why(7, ml_name) == f"topic {WHOLE}: court (ops)"
    assert read_holds(scene.stack).why_topic(ml_name) is not None


@pytest.mark.parametrize("ml_name", OTHERS)
def test_and_nothing_else(ml_name):
    scene = Scene()
    hold_topic(scene.stack, WHOLE, **WHO)
    assert read_holds(scene.stack).why(7, ml_name) is None


def test_a_partitions_hold_covers_that_one_alone():
    scene = Scene()
    hold_topic(scene.stack, PARTITIONS[0], **WHO)
    holds = read_holds(scene.stack)
    assert holds.why(7, PARTITIONS[0]) is not None
    assert holds.why(7, PARTITIONS[1]) is None
    assert holds.why(7, WHOLE) is None


def test_a_legacy_name_and_what_is_no_topics_have_holds_of_their_own():
    assert keys.topic_hold("t/c/ns/persistent/x") in hold_keys_of("t/c/ns/persistent/x-partition-3")
    assert keys.topic_hold("no/topic") in hold_keys_of("no/topic")


@pytest.mark.parametrize("scope", ["topic", "namespace", "all"])
def test_a_partition_that_came_later_is_not_released_under_it(scope):
    scene = Scene()
    if scope == "topic":
        hold_topic(scene.stack, WHOLE, **WHO)
    elif scope == "namespace":
        hold_namespace(scene.stack, "t/ns", **WHO)
    else:
        hold_all(scene.stack, **WHO)
    later = PARTITIONS[1]
    scene.broker.create_topic(later)
    ledger_id = scene.fill(later)
    scene.publish(ledger_id)
    scene.past_the_lag()
    assert "under a release hold" in reasons_of(scene.release(ledger_id, later))
    key = {"topic": keys.topic_hold(WHOLE), "namespace": keys.namespace_hold("t/ns")}
    lift_hold(scene.stack, key.get(scope, keys.HOLD_ALL), **WHO)
    assert is_released(scene.release(ledger_id, later))


def test_what_else_holds_is_told():
    scene = Scene()
    hold_topic(scene.stack, PARTITIONS[0], **WHO)
    assert still_held(scene.stack, [TOPIC, *PARTITIONS]) == {
        "persistent://t/ns/orders-partition-0": f"topic {PARTITIONS[0]}: court (ops)"
    }
    hold_namespace(scene.stack, "t/ns", **WHO)
    assert len(still_held(scene.stack, [TOPIC, *PARTITIONS])) == 3


def test_a_hold_that_goes_while_it_is_asked_for_holds_all_the_same():
    scene = Scene()
    hold_all(scene.stack, **WHO)
    found = read_holds(scene.stack)
    lift_hold(scene.stack, keys.HOLD_ALL, **WHO)
    assert found.all_held == "a hold that was just taken away"
    assert found.why(0, WHOLE) == "a hold that was just taken away"


def test_lifting_what_is_not_there_writes_nothing():
    scene = Scene()
    with pytest.raises(LedgerNotFoundError, match="no such hold"):
        lift_hold(scene.stack, keys.HOLD_ALL, **WHO)
    assert scene.stack.book.keys("hold-lifts/") == []
