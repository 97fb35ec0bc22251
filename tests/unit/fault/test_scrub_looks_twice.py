"""A scrub believes what it finds twice: bits that flipped on the way here are no damage."""

import pytest

from tests.support.sim_scene import TOPIC, flip_reads
from tiering_assets.offload_format.keys import data_key
from tiering_assets.scrub.scrub import scrub


@pytest.fixture(params=["ours", "a broker's"])
def offloaded(scene, request):
    """The attempt that the topic names, and who wrote it."""
    if request.param == "ours":
        scene.publish()
    else:
        assert scene.broker.offload(TOPIC)
    return scene.context().uid


def test_bits_that_flipped_on_the_way_are_no_finding(scene, offloaded, monkeypatch):
    flip_reads(scene, monkeypatch, 1)
    run = scrub(scene.process(), deep=True)
    assert run.looked
    assert not any(one.findings or one.error for one in run.looked)
    assert run.healed == {}
    assert scene.context().uid == offloaded
    assert not scene.is_quarantined(0, offloaded)


def test_what_is_found_twice_is_healed(scene, offloaded):
    scene.world.monitor.damaged.add(offloaded)
    scene.world.rot(data_key(offloaded, 0))
    run = scrub(scene.process(), deep=True)
    assert {one.candidate.ledger_id for one in run.broken} == {0}
    assert scene.context().uid != offloaded
