"""What a hold covers, and that a release asks for it by the topic's whole name, too."""

import pytest

from tests.support.sim_scene import TOPIC, Scene, is_released, reasons_of
from tiering_assets.look.brakes.brake import HOLD, read_brakes
from tiering_assets.look.brakes.holds import hold, lift_hold, still_held
from tiering_assets.look.brakes.scopes import EVERYTHING, Scope, namespace_scope, scopes_of
from tiering_assets.records import keys
from tiering_assets.resources.errors import LedgerNotFoundError, ObjectNotFoundError

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
    hold(scene.stack, Scope("topic", WHOLE), **WHO)
    assert read_brakes(scene.stack, HOLD).why(7, ml_name) == f"topic {WHOLE}: court (ops)"
    assert read_brakes(scene.stack, HOLD).why_topic(ml_name) is not None


@pytest.mark.parametrize("ml_name", OTHERS)
def test_and_nothing_else(ml_name):
    scene = Scene()
    hold(scene.stack, Scope("topic", WHOLE), **WHO)
    assert read_brakes(scene.stack, HOLD).why(7, ml_name) is None


def test_a_partitions_hold_covers_that_one_alone():
    scene = Scene()
    hold(scene.stack, Scope("topic", PARTITIONS[0]), **WHO)
    holds = read_brakes(scene.stack, HOLD)
    assert holds.why(7, PARTITIONS[0]) is not None
    assert holds.why(7, PARTITIONS[1]) is None
    assert holds.why(7, WHOLE) is None


def keys_of(ml_name):
    return [HOLD.key(scope) for scope in scopes_of(ml_name)]


def test_a_legacy_name_and_what_is_no_topics_have_holds_of_their_own():
    assert keys.topic_hold("t/c/ns/persistent/x") in keys_of("t/c/ns/persistent/x-partition-3")
    assert keys.topic_hold("no/topic") in keys_of("no/topic")


@pytest.mark.parametrize(
    "scope", [Scope("topic", WHOLE), namespace_scope("t/ns"), EVERYTHING], ids=str
)
def test_a_partition_that_came_later_is_not_released_under_it(scope):
    scene = Scene()
    hold(scene.stack, scope, **WHO)
    later = PARTITIONS[1]
    scene.broker.create_topic(later)
    ledger_id = scene.fill(later)
    scene.publish(ledger_id)
    scene.past_the_lag()
    assert "under a release hold" in reasons_of(scene.release(ledger_id, later))
    lift_hold(scene.stack, scope, **WHO)
    assert is_released(scene.release(ledger_id, later))


def test_what_else_holds_is_told():
    scene = Scene()
    hold(scene.stack, Scope("topic", PARTITIONS[0]), **WHO)
    assert still_held(scene.stack, [TOPIC, *PARTITIONS]) == {
        "persistent://t/ns/orders-partition-0": f"topic {PARTITIONS[0]}: court (ops)"
    }
    hold(scene.stack, Scope("namespace", "t/ns"), **WHO)
    assert len(still_held(scene.stack, [TOPIC, *PARTITIONS])) == 3


def test_a_hold_that_goes_while_it_is_asked_for_holds_all_the_same():
    scene = Scene()
    hold(scene.stack, EVERYTHING, **WHO)
    found = read_brakes(scene.stack, HOLD)
    lift_hold(scene.stack, EVERYTHING, **WHO)
    assert found.why_all() == "a hold that was just taken away"
    assert found.why(0, WHOLE) == "a hold that was just taken away"


def test_lifting_what_is_not_there_writes_nothing():
    scene = Scene()
    with pytest.raises(LedgerNotFoundError, match="no such hold"):
        lift_hold(scene.stack, EVERYTHING, **WHO)
    assert scene.stack.book.keys("hold-lifts/") == []


@pytest.mark.parametrize("somebody_else", [False, True])
def test_what_somebody_else_lifted_first_is_no_effect_of_ours(somebody_else, monkeypatch, caplog):
    scene = Scene()
    hold(scene.stack, EVERYTHING, **WHO)

    def gone(_book, key):
        raise ObjectNotFoundError(f"{key}: not there (NoSuchKey)")

    if somebody_else:
        monkeypatch.setattr(type(scene.stack.book), "delete", gone)
    with caplog.at_level("INFO", "tiering_assets.ground.effects"):
        lift_hold(scene.stack, EVERYTHING, **WHO)
    told = [record.message.split()[0] for record in caplog.records]
    ours = [] if somebody_else else ["day_book.gone_noted", "hold.lifted"]
    assert told == ["hold.lift_recorded", *ours]
