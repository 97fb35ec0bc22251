"""A broker's admin API that answers from a table, and ours that asks it."""

import pytest

from tests.support.admin_sim import running_admin_simulator
from tiering_assets.resources.pulsar.admin import HttpBrokerAdmin
from tiering_assets.resources.settings import BrokerSettings

TOKEN = "tok-5f1c2a"


@pytest.fixture
def broker():
    with running_admin_simulator() as simulator:
        simulator.get(
            "/brokers/configuration/runtime", {"clusterName": "c1", "webServicePort": "8"}
        )
        simulator.get("/brokers/c1", [simulator.address])
        simulator.get("/broker-stats/topics", {})
        simulator.own([])
        yield simulator


@pytest.fixture
def admin(broker):
    admin = HttpBrokerAdmin(BrokerSettings(admin_url=broker.url, token=TOKEN, timeout_s=5))
    yield admin
    admin.close()
