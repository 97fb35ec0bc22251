"""The state that is posted is the one that a look at the cluster finds."""

import pytest

from tests.support.sim_scene import TOPIC, is_released
from tests.unit.catalogue.desk import asked
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.change.topic_change import undo
from tiering_assets.change.topic_edit import Copy, TopicChange
from tiering_assets.clean.removals import observe_removals
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import ledger_scope
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.ledger.survey import survey


@pytest.fixture(params=["records", "scan, records", "records, scan"], autouse=True)
def told_by(request, scene):
    """What the catalogue was told by, in this order: each alone must do, and both."""
    scene.told_by = request.param.split(", ")


def posted(scene, catalogue):
    """State of each ledger that is known, after its runs have ended."""
    scene.end()
    for one in scene.told_by:
        if one == "scan":
            scan(scene.stack, catalogue)
        else:
            post(scene.stack, catalogue)
    rows = asked(catalogue, "select * from ledgers")
    return {row["ledger_id"]: row["state"] for row in rows}


def truth(scene):
    return {one.ledger_id: one.state.value for one in survey(scene.stack)}


def agreed(scene, catalogue):
    """State of ledger 0, of which both say the same."""
    ours, theirs = posted(scene, catalogue), truth(scene)
    assert ours[0] == theirs[0]
    return ours[0]


def test_a_ledger_is_followed_to_its_release(scene, catalogue):
    scene.fill(TOPIC)
    scene.certify()
    assert agreed(scene, catalogue) == "verified"
    scene.publish()
    assert agreed(scene, catalogue) == "published"
    scene.past_the_lag()
    assert is_released(scene.release())
    assert agreed(scene, catalogue) == "released"


def test_a_ledger_on_hold_is_held(scene, catalogue):
    scene.publish()
    hold(scene.process("kim"), ledger_scope(0), reason="audit", author="kim")
    assert agreed(scene, catalogue) == "held"


def test_a_ledger_whose_check_failed_is_in_quarantine(scene, catalogue):
    uid = scene.certify().certificate.record.uid
    quarantine(scene.process("doubter"), 0, uid, ml_name=TOPIC, reason="rot", previous="")
    assert agreed(scene, catalogue) == "quarantined"


def take_back(scene, uid, last_entry_id):
    change = TopicChange(contexts={0: Copy(uid, last_entry_id)})
    stack = scene.process("undoer")
    czxid = stack.topics.read(TOPIC)[1].stat.czxid
    undo(stack, TOPIC, change, czxid=czxid, why="a test")


def test_what_was_taken_back_is_published_when_it_is_published_again(scene, catalogue):
    record = scene.publish().certificate.record
    take_back(scene, record.uid, record.ledger.last_entry_id)
    assert agreed(scene, catalogue) == "verified"
    scene.wait(600)
    scene.publish()
    assert agreed(scene, catalogue) == "published"


def test_a_ledger_that_its_topic_let_go_of_is_expired(scene, catalogue):
    """No topic has it any more: a look at the cluster does not find it at all."""
    scene.publish(0)
    younger = scene.fill(TOPIC)
    scene.publish(younger)
    scene.wait(60)
    assert scene.broker.trim(TOPIC) == 0
    assert len(observe_removals(scene.process("observer")).recorded) == 1
    assert posted(scene, catalogue)[0] == "expired"
    assert 0 not in truth(scene)
    assert posted(scene, catalogue)[younger] == truth(scene)[younger] == "published"
