"""What a broker left goes while its ledger is closed, listed and named by nobody, and at no other time."""

import pytest

from resources.metastore.topic_names import managed_ledger_path
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.steps.clean_up import clean_up
from tiering_assets.tiering.leftovers import Leave

PATH = managed_ledger_path(TOPIC)


@pytest.fixture
def scene():
    """Its broker copied ledger 0 whole and died before its context was complete; noted, days ago."""
    scene = Scene()
    scene.broker.offload(TOPIC, stops_after=1)
    clean_up(scene.process(), execute=True)
    scene.wait(3 * 86400)
    return scene


def open_again(scene):
    scene.cluster._write(0, scene.cluster._metadata(0, closed=False))


def forget_topic(scene):
    del scene.cluster.metadata.nodes[PATH]


def lose(scene):
    scene.cluster.delete_ledger(0)


def clean(scene):
    [leaving] = clean_up(scene.process(), execute=True).leftovers
    assert leaving.objects
    return leaving, [key for key in leaving.objects if scene.world.objects.peek(key) is not None]


def test_it_goes_when_nothing_forbids_it(scene):
    leaving, there = clean(scene)
    assert leaving.done is not None
    assert there == []


@pytest.mark.parametrize("change", [open_again, forget_topic, lose])
def test_it_is_left_where_it_may_be_the_only_copy(scene, change):
    change(scene)
    leaving, there = clean(scene)
    assert isinstance(leaving.decision, Leave)
    assert there == [*leaving.objects]


@pytest.mark.parametrize("change", [open_again, lose, forget_topic])
def test_what_changes_between_intent_and_delete_keeps_it(scene, change, monkeypatch):
    def struck(point):
        if point == "sweep.intended":
            change(scene)

    monkeypatch.setattr("tiering_assets.steps.leftovers.reach", struck)
    leaving, there = clean(scene)
    assert isinstance(leaving.decision, Leave)
    assert there == [*leaving.objects]
