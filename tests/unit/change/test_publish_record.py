"""A confirmed publication is recorded once, and a canary counts for the place that it was read
from.
"""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tests.support.topic_halves import publication_work
from tiering_assets.batch import withdrawn
from tiering_assets.batch.withdrawn import read_withdrawn
from tiering_assets.change.publish_record import canary_stands, record_publication
from tiering_assets.change.topic_change import Confirmed, make_change
from tiering_assets.ground.reasons import NotNow
from tiering_assets.look.ledger.quarantine import win_outcome
from tiering_assets.release.reread import Reread
from tiering_assets.resources.errors import ObjectStoreError, RefusedError


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def certificate(scene):
    return scene.certify().certificate


def prepare(scene, stack, certificate):
    czxid = stack.topics.read(TOPIC)[1].stat.czxid
    return publication_work(stack, TOPIC, {0: certificate}, ml_czxid=czxid)


def test_what_another_run_has_recorded_is_not_recorded_again(scene, certificate):
    stack = scene.process("publisher")
    work = prepare(scene, stack, certificate)
    confirmed = make_change(
        stack,
        TOPIC,
        work.change,
        czxid=work.czxid,
        seen=work.seen,
        evidence=work.evidence,
        rehearse_unloaded=work.rehearse_unloaded,
    )
    assert isinstance(confirmed, Confirmed)
    first = record_publication(stack, TOPIC, work.won, confirmed)
    scene.wait(60)
    assert record_publication(stack, TOPIC, work.won, confirmed) == first
    assert len(scene.publications()) == 1


def test_a_canary_stands_for_its_own_place_alone(scene, certificate):
    scene.publish()
    stack = scene.process("publisher")
    assert canary_stands(stack, TOPIC, prepare(scene, stack, certificate).place)
    assert not canary_stands(stack, TOPIC, "another place")


def test_a_node_that_would_get_too_large_is_not_written(scene, certificate):
    settings = scene.world.settings
    small = replace(settings, publish=replace(settings.publish, node_bytes_max=10))
    scene.world.settings = small
    assert "publish.node_bytes_max is 10" in str(scene.offload().error)
    assert isinstance(scene.offload().error, RefusedError)
    assert scene.context() is None


def test_a_copy_that_could_not_be_read_again_is_not_called_quarantined(
    scene, certificate, monkeypatch
):
    """It was about to be published before; that nobody could read it says nothing about it."""
    stack = scene.process("publisher")
    win_outcome(stack, certificate, "publish", reason="certified")
    unread = Reread(waiting={0: NotNow(("could not be read again: no answer",))})
    monkeypatch.setattr(withdrawn, "reread_copies", lambda *_args, **_how: unread)
    with pytest.raises(ObjectStoreError, match="ledger 0: could not be read again: no answer"):
        read_withdrawn(stack, certificate, stack.ledgers.read(0))
