"""What a release would do, told without doing it: finished, missing and busy ledgers each for what
they are.
"""

import pytest

from tests.support.sim_cluster import BOOKIE
from tests.support.sim_scene import TOPIC, Scene, is_released
from tiering_assets.ground.reasons import NotNow
from tiering_assets.look.topic.topic_evidence import UnknownShadows, find_shadows
from tiering_assets.release.gate import MayRelease
from tiering_assets.release.preview import plan_release, plan_releases
from tiering_assets.resources.errors import MetadataError

GONE = "t/ns/persistent/gone"


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def due(scene):
    certificate = scene.publish().certificate
    scene.past_the_lag()
    return certificate


def plan(scene, ledger_id=0, **how):
    [item] = plan_release(scene.process(), TOPIC, [ledger_id], **how)
    return item


def test_a_ledger_that_would_go_is_shown_with_its_proof(scene, due):
    item = plan(scene)
    assert item.decision == MayRelease(due.record.uid)
    assert item.goes
    assert not item.finished
    assert item.bytes == due.record.ledger.length
    assert item.bookies == {BOOKIE}
    assert item.certificate == due
    assert item.published_at == scene.publications()[0].record.confirmed_at
    assert item.suites


def test_a_ledger_that_an_earlier_run_released_is_finished(scene, due):
    assert is_released(scene.release())
    item = plan(scene)
    assert item.decision == NotNow(("released already",))
    assert item.finished
    assert item.suites == ()
    assert (item.bytes, item.bookies) == (0, frozenset())


def test_a_topic_that_is_gone_releases_nothing(scene):
    planned = plan_releases(scene.process(), {GONE: [7]})
    found = planned[GONE]
    assert isinstance(found, list)
    [item] = found
    assert item.decision == NotNow(
        ("persistent://t/ns/gone is gone; nothing is released for a deleted topic",)
    )


def test_a_topic_that_cannot_be_looked_at_is_an_error(scene, due):
    stack = scene.process()

    def fail(_stack, _topic):
        raise MetadataError("no answer")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tiering_assets.release.preview.see", fail)
        with pytest.raises(MetadataError):
            plan_release(stack, TOPIC, [0])


@pytest.mark.parametrize("known", [False, True])
def test_shadows_are_looked_for_unless_the_caller_has(scene, due, known):
    scene.make_shadow()
    unknown = UnknownShadows(scene.process())
    assert plan(scene, shadows=unknown).goes
    item = plan(scene, shadows=find_shadows(scene.process()) if known else None)
    assert "its shadow topics read the bookie copy" in str(item.decision)
