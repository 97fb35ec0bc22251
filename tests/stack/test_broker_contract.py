"""The real broker keeps the contract that the simulated one passes."""

import itertools

import pytest

from tests.support.broker_contract import BrokerContract, BrokerLab
from tests.support.tiered_cluster import ml_names, tiered_cluster
from tiering_assets.resources.devstack.traffic import TopicSpec

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def lab(stack):
    numbers = itertools.count(1)
    with tiered_cluster(stack) as cluster:

        def fill():
            topic = f"public/default/contract-{next(numbers)}"
            spec = TopicSpec(topic=topic, messages=4, payload_bytes=300)
            cluster.fill(spec)
            [ml_name] = ml_names(spec)
            return ml_name

        yield BrokerLab(cluster.steps, fill)


class TestRealBroker(BrokerContract):
    pass
