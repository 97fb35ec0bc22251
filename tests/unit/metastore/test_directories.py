import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.metastore_sim import Cluster
from tiering_assets.resources._proto.BookKeeperDataFormats_pb2 import BookieServiceInfoFormat
from tiering_assets.resources._proto.MLDataFormats_pb2 import ManagedCursorInfo, ManagedLedgerInfo
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.ledger_metadata import encode_ledger_metadata
from tiering_assets.resources.errors import BookieError, FormatError, MetadataError
from tiering_assets.resources.metastore.bookie_registration import decode_registration
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.topics import TopicDirectory

# {bookie, 3181, bk1.example, bookie-rpc}, as a bookie registers itself.
REGISTRATION = bytes.fromhex(
    "32240a06626f6f6b696510ed181a0b626b312e6578616d706c65220a626f6f6b69652d727063"
)
HIERARCHICAL = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
FLAT = b"2\norg.apache.bookkeeper.meta.FlatLedgerManagerFactory:1"


@pytest.fixture
def cluster():
    cluster = Cluster(clock_ms=lambda: 1700000000000)
    cluster.put("/ledgers/LAYOUT", HIERARCHICAL)
    cluster.put("/ledgers/INSTANCEID", b"e4c8b6a0-0000-4000-8000-000000000000")
    cluster.put("/ledgers/available/readonly", b"")
    return cluster


@pytest.fixture
def ledgers(cluster):
    return LedgerDirectory(cluster.client())


def ledger(ledger_id, **changes):
    values = {
        "ledger_id": ledger_id,
        "state": BookKeeperState.CLOSED,
        "last_entry_id": 0,
        "length": 5,
        "ensemble_size": 1,
        "write_quorum": 1,
        "ack_quorum": 1,
        "segments": (EnsembleFragment(0, ("bk1:3181",)),),
        "password": b"secret",
    }
    return LedgerMetadata(**(values | changes))


def test_a_ledger_is_read_with_its_node(cluster, ledgers):
    cluster.put("/ledgers/00/0000/L0005", encode_ledger_metadata(ledger(5)))
    found = ledgers.read(5)
    assert found.metadata == ledger(5)
    assert (found.path, found.stat.version) == ("/ledgers/00/0000/L0005", 0)
    assert found.ctime_ms == 1700000000000
    assert "secret" not in repr(found)
    assert ledgers.read(6) is None


def test_the_creation_time_in_the_value_comes_first(cluster, ledgers):
    cluster.put("/ledgers/00/0000/L0005", encode_ledger_metadata(ledger(5, ctime_ms=7)))
    assert ledgers.read(5).ctime_ms == 7


def test_absence_needs_an_answer(cluster):
    store = cluster.client()
    ledgers = LedgerDirectory(store)
    assert ledgers.layout.value == "hierarchical"
    store.fail_reads(1)
    with pytest.raises(MetadataError):
        ledgers.read(6)


def test_all_ledgers_are_listed(cluster, ledgers):
    ids = [0, 5, 12345678, 2**31 - 2, 2**31 - 1, 2**62]
    for ledger_id in ids:
        cluster.put(ledgers.path(ledger_id), b"")
    for other in ("idgen/ID-0000000009", "underreplication/ledgers", "cookies/bk1:3181", "00/0001"):
        cluster.put(f"/ledgers/{other}", b"")
    assert ledgers.list_ledger_ids() == ids
    assert ledgers.existing([*ids, max(ids) + 1]) == {*ids}


def test_a_flat_layout_is_listed(cluster, ledgers):
    cluster.put("/ledgers/LAYOUT", FLAT)
    cluster.put("/ledgers/L0000000042", b"")
    assert ledgers.list_ledger_ids() == [42]


def test_under_replication_is_found_by_the_hex_path(cluster, ledgers):
    cluster.put(
        "/ledgers/underreplication/ledgers/0000/0000/0000/0119/urL0000000281", b'replica: "a:1"\n'
    )
    assert ledgers.under_replicated(281)
    assert not ledgers.under_replicated(282)


def test_the_instance_id(cluster, ledgers):
    assert ledgers.instance_id() == "e4c8b6a0-0000-4000-8000-000000000000"
    cluster.put("/ledgers/INSTANCEID", b"a/b")
    with pytest.raises(MetadataError, match="expected an id"):
        ledgers.instance_id()
    del cluster.nodes["/ledgers/INSTANCEID"]
    with pytest.raises(MetadataError, match="INSTANCEID does not exist"):
        ledgers.instance_id()


def with_http(host="0.0.0.0"):
    message = BookieServiceInfoFormat()
    message.ParseFromString(REGISTRATION)
    message.endpoints.add(id="httpserver", port=8000, host=host, protocol="http")
    return message.SerializeToString()


def test_bookies_are_resolved_by_what_they_register(cluster, ledgers):
    cluster.put("/ledgers/available/bk-one", REGISTRATION)
    cluster.put("/ledgers/available/bk2.example:3182", b"")
    cluster.put("/ledgers/available/readonly/bk-three", with_http())
    available = ledgers.available_bookies()
    assert available.writable == ("bk-one", "bk2.example:3182")
    assert available.readonly == ("bk-three",)
    assert ledgers.bookie_addresses() == {
        "bk-one": ("bk1.example", 3181),
        "bk2.example:3182": ("bk2.example", 3182),
        "bk-three": ("bk1.example", 3181),
    }
    assert ledgers.resolve("bk-three") == ("bk1.example", 3181)
    assert ledgers.bookie("bk-three").http == ("bk1.example", 8000)
    assert ledgers.bookie("bk-one").http is None


def test_a_bookie_that_is_down_is_tried_only_if_its_id_is_an_address(ledgers):
    assert ledgers.resolve("bk9.example:3181") == ("bk9.example", 3181)
    assert ledgers.bookie("bk9.example:3181").http is None
    with pytest.raises(BookieError, match="bookie bk9: not registered"):
        ledgers.resolve("bk9")


def test_a_registration_without_an_address_is_refused():
    for data in (
        b"",
        b"\x32\x00",
        REGISTRATION[:-1],
        REGISTRATION.replace(b"bk1.", b"\xff\xff\xff."),
    ):
        with pytest.raises(FormatError, match="bookie name"):
            decode_registration("name", data)


@given(st.binary())
def test_any_registration_gives_an_address_or_a_format_error(data):
    try:
        found = decode_registration("name", data)
    except FormatError:
        return
    assert 0 < found.rpc[1] < 65536


@pytest.fixture
def topics(cluster):
    return TopicDirectory(cluster.client())


def test_topics_are_found_by_their_parent(cluster, topics):
    names = [
        "public/default/persistent/a",
        "public/default/persistent/b+c",
        "pulsar/lab/127.0.0.1:18080/persistent/healthcheck",
    ]
    for name in names:
        cluster.put(f"/managed-ledgers/{name}/sub", b"")
    cluster.put("/managed-ledgers/loose/managed/ledger/cursor", b"")
    cluster.put("/managed-ledgers/public/empty/persistent", b"")
    assert sorted(topics.iter_managed_ledgers()) == sorted(names)


def test_a_topic_is_read_with_its_node(cluster, topics):
    message = ManagedLedgerInfo()
    message.ledgerInfo.add(ledgerId=3, timestamp=0)
    stat = cluster.put("/managed-ledgers/t/n/persistent/a", message.SerializeToString())
    ml, node = topics.read("t/n/persistent/a")
    assert ml.ledgers[0].ledger_id == 3
    assert node.stat == stat
    assert topics.read("t/n/persistent/b") is None


def test_cursors_are_named_by_their_subscription(cluster, topics):
    info = ManagedCursorInfo(cursorsLedgerId=-1, markDeleteLedgerId=3, markDeleteEntryId=4)
    cluster.put("/managed-ledgers/t/n/persistent/a/sp+ace%2Fsl", info.SerializeToString())
    (name, cursor) = topics.cursors("t/n/persistent/a").popitem()
    assert name == "sp ace/sl"
    assert cursor.mark_delete.entry_id == 4
    assert topics.cursors("t/n/persistent/none") == {}
