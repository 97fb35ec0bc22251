"""Whether a topic could be loaded again: each thing that nobody knows makes it wait, and nothing
else does.
"""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.ground.reasons import Reason
from tiering_assets.look.topic.bookies import why_not_reloadable

FIRST, SECOND = "10.0.0.1:8080", "10.0.0.2:8080"


@pytest.fixture
def scene():
    """Two brokers are registered, and answer; one bookie is enough."""
    scene = Scene()
    register(scene, FIRST, SECOND)
    answering(scene, FIRST, SECOND)
    return scene


def register(scene, *brokers):
    scene.broker.list_brokers = lambda: list(brokers)


def answering(scene, *brokers):
    scene.broker.answers = lambda broker: broker in brokers


def why(scene, owner=None, **settings):
    stack = scene.process()
    broker = replace(stack.settings.broker, **settings)
    stack = replace(stack, settings=replace(stack.settings, broker=broker))
    return why_not_reloadable(stack, TOPIC, owner=owner)


@pytest.mark.parametrize("owner", [None, FIRST])
def test_nothing_is_in_the_way(scene, owner):
    assert why(scene, owner) is None


# ----- brokers


@pytest.mark.parametrize("each", [False, True])
def test_where_no_broker_is_registered_none_would_load_it(scene, each):
    register(scene)
    assert "no broker is registered" in why(scene, ask_each=each).detail


def test_an_owner_that_does_not_answer_is_not_made_up_for_by_another(scene):
    answering(scene, SECOND)
    assert why(scene) is None
    assert f"{FIRST} registered, and not answering" in why(scene, FIRST).detail


def test_where_one_address_answers_for_all_nobody_else_is_asked(scene):
    answering(scene)
    assert "registered, and not answering" in why(scene, FIRST).detail
    assert why(scene, FIRST, ask_each=False) is None


# ----- ensembles


def test_a_topics_own_ensemble_counts_where_its_namespaces_would_do(scene):
    scene.broker.topic_ensemble = lambda _topic: 3
    assert why(scene).reason is Reason.BOOKIES_SHORT
    assert why(scene, FIRST).reason is Reason.BOOKIES_SHORT


def test_a_topics_own_ensemble_does_where_its_namespaces_would_not(scene):
    """It is asked only of a broker that has the topic's bundle already."""
    scene.broker.namespace_ensemble = lambda _namespace: 3
    scene.broker.topic_ensemble = lambda _topic: 1
    assert why(scene).reason is Reason.BOOKIES_SHORT
    assert why(scene, FIRST) is None


# ----- affinity


@pytest.mark.parametrize(
    "policies", [b"", b"{}", b'{"bookieAffinityGroup": null}', b'{"bookieAffinityGroup": {}}']
)
def test_a_namespace_without_an_affinity_group_has_none(scene, policies):
    scene.cluster.metadata.put("/admin/local-policies/t/ns", policies)
    assert why(scene) is None


@pytest.mark.parametrize("policies", [b"[]", b"null", b"not JSON"])
def test_policies_that_cannot_be_read_make_it_wait(scene, policies):
    scene.cluster.metadata.put("/admin/local-policies/t/ns", policies)
    assert why(scene).detail.startswith("it could not be learned how many bookies")
