"""Rights at a topic's node are asked for once a run, and of nothing that is no topic."""

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.copy import ask_first as rights
from tiering_assets.copy.ask_first import Rights


@pytest.fixture
def scene():
    return Scene()


class Asked:
    """Which nodes a run was asked to be let write."""

    def __init__(self, stack):
        self.paths: list[str] = []
        stack.metadata.require_writable = self.paths.append
        self.rights = Rights(stack)


def test_each_topics_node_is_asked_about_once(scene):
    second = scene.fill(TOPIC)
    asked = Asked(scene.process())
    asked.rights.require(0)
    asked.rights.require(second)
    assert asked.paths == ["/managed-ledgers/t/ns/persistent/orders"]
    assert asked.rights.owners == dict.fromkeys((0, second), TOPIC)


@pytest.mark.parametrize("what", ["gone", "no topic", "no owner"])
def test_a_ledger_of_no_topic_is_not_judged(scene, what, monkeypatch):
    if what == "gone":
        scene.cluster.delete_ledger(0)
    else:
        owner = "functions" if what == "no topic" else None
        monkeypatch.setattr(rights, "owner_of", lambda _metadata: owner)
    asked = Asked(scene.process())
    asked.rights.require(0)
    assert asked.paths == []
    assert asked.rights.owners == {}
