"""Every topic is looked at for the source that it shadows; one that goes meanwhile shadows
nothing.
"""

from tests.support.sim_scene import Scene
from tiering_assets.look.topic.topic_evidence import find_shadows
from tiering_assets.resources.metastore.topics import TopicDirectory


def test_a_topic_that_goes_while_all_are_read_shadows_nothing(monkeypatch):
    scene = Scene()
    scene.make_shadow()
    listed = ["t/ns/persistent/gone", *scene.stack.topics.iter_managed_ledgers()]
    monkeypatch.setattr(TopicDirectory, "iter_managed_ledgers", lambda _self: iter(listed))
    found = find_shadows(scene.process())
    assert found.of("persistent://t/ns/orders") == ("t/ns/persistent/shadow",)
