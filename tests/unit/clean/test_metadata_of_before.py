"""Metadata that knows less than our records is a backup: nothing is released or swept by it."""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene, is_released
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.clean.sweep import refuse_old_metadata
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

PATH = managed_ledger_path(TOPIC)


@pytest.fixture
def scene():
    scene = Scene()
    scene.publish()
    scene.past_the_lag()
    return scene


def set_stat(scene, **changes):
    stored = scene.cluster.metadata.nodes[PATH]
    scene.cluster.metadata.nodes[PATH] = replace(stored, stat=replace(stored.stat, **changes))


def recorded(scene):
    [publication] = scene.publications()
    return publication.record


def test_a_version_below_the_recorded_one_stops_release_and_clean_up(scene):
    set_stat(scene, version=recorded(scene).node_version - 1)
    with pytest.raises(RefusedError, match="back in time; nothing is released"):
        scene.release()
    with pytest.raises(RefusedError, match="back in time; nothing is deleted"):
        clean_up(scene.process(), execute=True)
    assert scene.cluster.has_node(0)


def test_the_recorded_version_itself_is_not_of_before(scene):
    set_stat(scene, version=recorded(scene).node_version)
    refuse_old_metadata(scene.process())
    assert is_released(scene.release())


def test_a_topic_made_again_begins_a_new_history(scene):
    czxid = scene.cluster.metadata.nodes[PATH].stat.czxid
    set_stat(scene, version=0, czxid=czxid + 1)
    refuse_old_metadata(scene.process())
