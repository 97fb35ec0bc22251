"""The broker's addresses against ours: refused by name, told apart by what lies there, never
guessed.
"""

from dataclasses import replace
from typing import Any, cast

import pytest

from tests.support.metastore_sim import Cluster
from tiering_assets.doctor import stores as doctor_stores
from tiering_assets.doctor.stores import check_stores
from tiering_assets.ground.finding import Level
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.metastore.identity import Identity, identity_of
from tiering_assets.resources.pulsar.admin import BrokerAdmin
from tiering_assets.resources.settings import MetadataSettings, Settings

BROKER = "b1:8080"
OURS = "zk:z1:2181,z2:2181"


class Broker:
    def __init__(self, **config):
        self.config = {"metadataStoreUrl": OURS} | config

    def runtime_config(self):
        return self.config

    def list_brokers(self):
        return [BROKER]


@pytest.fixture
def store():
    made = Cluster().client()
    made.create("/ledgers/INSTANCEID", b"one")
    made.create("/admin/clusters/local", b"{}")
    made.create("/admin/clusters/global", b"{}")
    made.create(f"/loadbalance/brokers/{BROKER}", b"")
    return made


@pytest.fixture
def theirs(monkeypatch):
    """What another address tells; an error is raised."""
    answers: dict[str, Any] = {}

    def ask(_settings, address):
        found = answers[str(address)]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(doctor_stores, "identity_at", ask)
    return answers


def look(store, **config):
    settings = replace(Settings(), metadata=MetadataSettings(store=OURS))
    found = check_stores(settings, cast(BrokerAdmin, Broker(**config)), store)
    return {finding.check: finding for finding in found}


def test_identity_is_what_lies_there(store):
    assert identity_of(store, "/ledgers") == Identity("one", ("local",))
    assert identity_of(store, "/elsewhere") == Identity(None, ("local",))


def test_three_addresses_of_one_cluster_are_well(store):
    found = look(
        store,
        configurationMetadataStoreUrl="zk:z2:2181,z1:2181",
        bookkeeperMetadataServiceUri="zk+hierarchical://z1:2181;z2:2181/ledgers",
    )
    assert {finding.level for finding in found.values()} == {Level.OK}
    assert len(found) == 4


@pytest.mark.parametrize(
    ("uri", "name"), [("oxia://o:1/ns", "Oxia"), ("etcd:e:1", "etcd"), ("rocksdb:///x", "RocksDB")]
)
@pytest.mark.parametrize("setting", ["metadataStoreUrl", "configurationMetadataStoreUrl"])
def test_another_kind_of_store_is_refused_by_name(store, setting, uri, name):
    failed = [one for one in look(store, **{setting: uri}).values() if one.level is Level.FAIL]
    assert len(failed) == 1
    assert f"{name} is not supported" in failed[0].text
    assert failed[0].next_step


def test_another_name_of_the_same_cluster_is_well_and_another_cluster_is_not(store, theirs):
    theirs["zk:alias:2181"] = Identity("one", ("local",))
    assert look(store, metadataStoreUrl="zk:alias:2181")["broker metadata"].level is Level.OK
    for other in (Identity("two", ("local",)), Identity("one", ("west",)), Identity(None, ())):
        theirs["zk:alias:2181"] = other
        found = look(store, metadataStoreUrl="zk:alias:2181")["broker metadata"]
        assert found.level is Level.FAIL
        assert str(other) in found.text
        assert "TIERKEEPER_METADATA_STORE" in found.next_step
    theirs["zk:alias:2181"] = MetadataError("no connection")
    found = look(store, metadataStoreUrl="zk:alias:2181")["broker metadata"]
    assert (found.level, "cannot be asked" in found.text) == (Level.FAIL, True)


def test_ledgers_below_another_root_are_named_with_the_setting(store):
    found = look(store, bookkeeperMetadataServiceUri="zk+null://z1:2181;z2:2181/bk/ledgers")
    bookkeeper = found["broker BookKeeper metadata"]
    assert bookkeeper.level is Level.FAIL
    assert "metadata.ledgers_root to /bk/ledgers" in bookkeeper.next_step
