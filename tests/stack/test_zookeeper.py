"""The real ZooKeeper passes the contract of the simulator, and holds what a real cluster wrote."""

import re
import threading
import time
import uuid

import pytest

from tests.support.metastore_contract import MetadataStoreContract
from tests.support.zookeeper_proxy import ZooKeeperProxy
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.metastore.ledger_paths import LedgerLayout
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.store import VersionedPath
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore

pytestmark = [pytest.mark.stack, pytest.mark.slow]


@pytest.fixture
def connect(endpoints):
    stores = []

    def make(chroot=""):
        stores.append(ZooKeeperStore(f"zk:{endpoints.zookeeper}{chroot}"))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def store(connect):
    return connect()


@pytest.fixture
def other(connect):
    return connect()


@pytest.fixture
def root():
    return f"/contract-{uuid.uuid4().hex}"


class TestZooKeeperStore(MetadataStoreContract):
    pass


def test_a_chroot_is_in_front_of_every_path(connect, store, root):
    store.create(f"{root}/a", b"")
    below = connect(root)
    assert below.children("/") == ["a"]
    below.create("/b/c", b"x")
    below.check_and_delete(checks=[VersionedPath("/a", 0)], deletes=[VersionedPath("/b/c", 0)])
    assert store.children(f"{root}/b") == []


@pytest.mark.filterwarnings("ignore:No chroot path exists")  # kazoo's, who goes on all the same
@pytest.mark.parametrize(
    ("chroot", "there"),
    [("/ledgers", "what is there is .*INSTANCEID"), ("/no-such-place", "nothing is there")],
)
@pytest.mark.parametrize("ask", [LedgerDirectory.instance_id, lambda found: found.layout])
def test_a_wrong_chroot_is_told_for_what_it_is(connect, chroot, there, ask):
    with pytest.raises(MetadataError) as told:
        ask(LedgerDirectory(connect(chroot)))
    assert re.search(f"no ledgers below /ledgers, {there}", str(told.value))
    assert "correct the chroot of metadata.store" in str(told.value)
    assert "initialise" not in str(told.value)


def test_a_tree_of_ledgers_without_an_instance_id_is_no_wrong_chroot(connect, store, root):
    store.create(f"{root}/ledgers/available", b"")
    with pytest.raises(MetadataError, match="initialise the cluster's metadata"):
        LedgerDirectory(connect(root)).instance_id()


def test_after_an_outage_the_next_read_finds_its_session_at_once(endpoints):
    with ZooKeeperProxy(endpoints.zookeeper) as proxy:
        store = ZooKeeperStore(f"zk:{proxy.connect_string}")
        proxy.go_away()
        time.sleep(20)  # pauses that double would be of about 13 s by now
        proxy.come_back()
        began = time.monotonic()
        assert store.get("/ledgers/INSTANCEID") is not None
        assert time.monotonic() - began < 8  # ours is of one second; the rest is for a busy machine
        store.close()


@pytest.mark.parametrize("ask", ["get_many", "stat_many"])
def test_a_connection_that_dies_under_many_reads_costs_time_and_no_answer(store, endpoints, ask):
    root = f"/many-{uuid.uuid4().hex}"
    paths = [f"{root}/n{number:04d}" for number in range(2000)]
    for path in paths[::10]:
        store.create(path, path.encode())
    cuts = [100, 700, 1500]
    with ZooKeeperProxy(endpoints.zookeeper) as proxy:
        reader = ZooKeeperStore(f"zk:{proxy.connect_string}")
        found = []
        for node in getattr(reader, ask)(paths):
            found.append(node)
            if len(found) in cuts:
                proxy.go_away()
                threading.Timer(1.0, proxy.come_back).start()
        assert [one is None for one in found] == [path not in paths[::10] for path in paths]
        if ask == "get_many":
            assert [one.data.decode() for one in found if one is not None] == paths[::10]
        reader.close()
    for path in paths[::10]:
        store.delete(path, expected_version=0)


def test_the_clusters_own_metadata_is_read(store):
    ledgers = LedgerDirectory(store)
    assert ledgers.layout is LedgerLayout.HIERARCHICAL
    assert uuid.UUID(ledgers.instance_id())
    bookies = ledgers.available_bookies()
    assert len(bookies.writable) == 3
    for host, port in ledgers.bookie_addresses().values():
        assert host == "127.0.0.1"
        assert 0 < port < 65536
    for ledger_id in ledgers.list_ledger_ids():
        node = ledgers.read(ledger_id)
        assert node is None or set(node.metadata.segments[0].bookies) <= set(bookies.writable)
