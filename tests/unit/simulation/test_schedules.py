"""Schedules that are too rare to wait for, played by hand on the simulated servers."""

import pytest

from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import Reason
from tiering_assets.resources.errors import MetadataUnknownError

TOPIC = "t/ns/persistent/orders"


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def site(world):
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    site.broker.produce(TOPIC, [b"first", b"last"])
    site.broker.roll_over(TOPIC)
    return site


def test_a_lost_write_that_a_broker_overtook_is_not_taken_for_ours(world, site, monkeypatch):
    process = Process(world, "offload", site)
    really_set = process.metadata.set
    asked = []

    def lost_once(path, data, **options):
        asked.append(path)
        if len(asked) == 1:
            assert site.broker.offload(TOPIC)
            raise MetadataUnknownError("the request was lost, and who asked cannot know")
        return really_set(path, data, **options)

    monkeypatch.setattr(process.metadata, "set", lost_once)
    [outcome] = offload_batch(process.stack(), [0])
    assert outcome.published is None
    assert outcome.wait is not None
    assert outcome.wait.reason is Reason.PUBLISHED
    assert not [key for key in world.objects.peek_keys() if "/publications/" in key]
    assert world.monitor.found == []
