"""The simulated broker keeps the contract of the real one (tests/stack/test_broker_contract.py)."""

import itertools

import pytest

from tests.support.broker_contract import BrokerContract, BrokerLab
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.resources.errors import BrokerError


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def site(world):
    return world.add_site("alpha", lag_s=None, bookkeeper_first=False)


@pytest.fixture
def lab(world, site):
    numbers = itertools.count(1)

    def fill():
        ml_name = f"t/ns/persistent/contract-{next(numbers)}"
        site.broker.create_topic(ml_name)
        site.broker.produce(ml_name, [b"first", b"", b"x" * 700, b"last"])
        site.broker.roll_over(ml_name)
        return ml_name

    return BrokerLab(Process(world, "contract", site).stack(), fill)


class TestSimulatedBroker(BrokerContract):
    pass


def test_its_own_write_after_ours_fences_the_topic_and_loses_nothing(lab, site):
    ml_name = lab.fill()
    ledger_id = lab.copy_and_write_context(ml_name)
    site.broker.produce(ml_name, [b"more"])
    site.broker.roll_over(ml_name)
    assert ml_name not in site.broker.topics
    assert lab.offloaded(ml_name)[ledger_id]
    newest = [i.ledger_id for i in lab.node(ml_name)[0].ledgers if not i.is_open][-1]
    assert lab.stack.broker.read_entry(f"persistent://t/ns/{ml_name[-10:]}", newest, 0) == b"more"


def test_a_ledger_deleted_before_the_reload_stalls_its_readers(lab, site):
    ml_name = lab.fill()
    ledger_id = lab.copy_and_write_context(ml_name)
    topic = f"persistent://t/ns/{ml_name.rpartition('/')[2]}"
    site.cluster.delete_ledger(ledger_id)
    with pytest.raises(BrokerError):
        lab.stack.broker.read_entry(topic, ledger_id, 0)
    lab.stack.broker.unload_topic(topic)
    assert lab.stack.broker.read_entry(topic, ledger_id, 0) == b"first"
