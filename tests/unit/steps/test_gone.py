"""Where a ledger that its topic lists no more may still be read."""

from uuid import UUID

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.records import keys
from tiering_assets.records.models import Hold
from tiering_assets.steps.expired import plan_expired
from tiering_assets.steps.gone import Whereabouts
from tiering_assets.tiering.expired import Expired
from tiering_assets.tiering.orphans import Keep

OTHER = "t/ns/persistent/other"


@pytest.fixture
def trimmed():
    """Ledger 0 was released and trimmed; its objects are there still."""
    scene = Scene()
    scene.release_and_collect()
    uid = scene.context().uid
    scene.trim()
    scene.wait(3 * 86400)
    return scene, uid


def decision(scene):
    _plan, [found] = plan_expired(scene.process())
    return found.decision


def lists(monkeypatch, *, ledger_id, uid=None):
    """Another topic's node lists the ledger, or names the attempt under another ledger's number."""
    really = Whereabouts._read_topics

    def reading(where):
        really(where)
        if uid is None:
            where._listers[ledger_id] = OTHER
        else:
            where._namers[ledger_id, uid] = OTHER

    monkeypatch.setattr(Whereabouts, "_read_topics", reading)


def test_it_expires_when_nobody_else_has_it(trimmed):
    scene, _uid = trimmed
    assert isinstance(decision(scene), Expired)


@pytest.mark.parametrize("named", [False, True])
def test_what_another_topic_lists_or_names_is_kept(trimmed, named, monkeypatch):
    scene, uid = trimmed
    lists(monkeypatch, ledger_id=0, uid=uid if named else None)
    found = decision(scene)
    assert isinstance(found, Keep)
    assert f"{OTHER} may read it" in str(found)


def test_another_ledger_or_attempt_there_keeps_nothing(trimmed, monkeypatch):
    scene, _uid = trimmed
    lists(monkeypatch, ledger_id=0, uid=UUID(int=5))
    lists(monkeypatch, ledger_id=77)
    assert isinstance(decision(scene), Expired)


def test_a_shadow_keeps_it(trimmed):
    scene, _uid = trimmed
    scene.make_shadow()
    found = decision(scene)
    assert isinstance(found, Keep)
    assert "may read it" in str(found)


def test_a_hold_keeps_it(trimmed):
    scene, _uid = trimmed
    held = Hold(ledger_id=0, reason="audit", author="kim", held_at=scene.stack.now())
    scene.stack.book.create(keys.hold(0), held)
    found = decision(scene)
    assert isinstance(found, Keep)
    assert "held" in str(found)
