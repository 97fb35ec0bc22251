"""Runs of the product on a simulated cluster, as a lineage server sees them."""

from dataclasses import replace

import pytest

from tests.support.lineage_spec import problems
from tests.support.sim_scene import is_released
from tiering_assets.catalogue.openlineage.tell import tell
from tiering_assets.catalogue.pages import newest_page
from tiering_assets.resources.settings_lineage import OpenLineageSettings


@pytest.fixture
def told(scene, catalogue, server):
    """What was received of all that was done since, but for postings; each event is right."""
    settings = replace(scene.stack.settings, openlineage=OpenLineageSettings(url=server.url))
    stack = replace(scene.stack, settings=settings)
    tell(stack, catalogue, posted=0)

    def told():
        scene.end()
        before = len(server.events)
        tell(stack, catalogue, posted=newest_page(stack))
        assert [why for event in server.events for why in problems(event)] == []
        return [one for one in server.told[before:] if not one.startswith("catalogue-post")]

    return told


def test_a_ledger_from_its_copy_to_its_release(scene, told, server):
    scene.fill("t/ns/persistent/orders")
    scene.publish(0)
    assert told() == ["offload START 0", "offload COMPLETE 1"]
    [name] = {one["name"] for event in server.events[:2] for one in event["outputs"]}
    scene.past_the_lag()
    assert is_released(scene.release(0))
    assert told() == ["release START 0", "release COMPLETE 1"]
    [released] = [one for one in server.events[-4:] if one["outputs"] and "release" in str(one)]
    assert [one["name"] for one in released["outputs"]] == [name]  # the same object
    facets = released["outputs"][0]["facets"]
    assert facets["tierkeeper_release"]["topic"] == "persistent://t/ns/orders"


def test_a_copy_that_is_proven_and_published_by_two_runs(scene, told):
    scene.certify(0)
    assert told() == ["offload START 0", "offload COMPLETE 1"]
    scene.publish(0)
    assert told() == ["offload START 0", "offload COMPLETE 1"]


def test_a_run_that_finds_its_work_done_writes_nothing_and_is_not_told(scene, told):
    scene.publish(0)
    told()
    scene.publish(0)
    assert told() == []
