"""Doctor names the bookies that are not there; those that are say nothing of them."""

import pytest

from tests.support.sim_cluster import BOOKIE
from tests.support.sim_world import World
from tiering_assets.doctor.cluster import check_absent
from tiering_assets.resources.metastore.ledgers import LedgerDirectory

TOPIC = "t/ns/persistent/orders"
OTHER = "10.0.0.2:3181"


@pytest.fixture
def site():
    site = World(1).add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    return site


def absent(site):
    ledgers = LedgerDirectory(site.cluster.metadata.client())
    return [*check_absent(ledgers, {*ledgers.available_bookies().writable})]


def test_bookies_that_are_all_there_are_no_finding(site):
    site.cluster.metadata.put(f"/ledgers/cookies/{BOOKIE}", b"")
    assert absent(site) == []


def test_a_bookie_that_only_its_cookie_knows_fails(site):
    site.cluster.metadata.put(f"/ledgers/cookies/{OTHER}", b"")
    [found] = absent(site)
    assert found.level == "fail"
    assert OTHER in found.check
    assert "it has a cookie" in found.text
    assert "decommission" in found.next_step


def test_a_bookie_that_only_ledgers_know_fails(site):
    del site.cluster.metadata.nodes[f"/ledgers/available/{BOOKIE}"]
    [found] = absent(site)
    assert BOOKIE in found.check
    assert "in the ensembles of 1 of 1 ledgers" in found.text
