"""A bookie whose id is a name and that is down has no address: its replicas are read elsewhere."""

from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.support.metastore_sim import Cluster
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_ledger import IDS, PASSWORD, SimBookies, SimLedger
from tiering_assets.look.ledger import plan
from tiering_assets.look.ledger.plan import lay_out
from tiering_assets.resources._proto.BookKeeperDataFormats_pb2 import BookieServiceInfoFormat
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.ledger_metadata import encode_ledger_metadata
from tiering_assets.resources.errors import EntryUnavailableError, MetadataError
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.settings import BookieSettings, BudgetSettings, Settings
from tiering_assets.tasks.descriptors import TaskKind, decode_task, encode_task
from tiering_assets.tasks.point_reads import stored_points
from tiering_assets.tasks.runner import LocalRunner
from tiering_assets.tasks.worker import Worker

SETTINGS = Settings(
    bookies=BookieSettings(request_timeout_s=1.5, connect_timeout_s=1.5, password="pw")
)
LEDGER_ID = 7
PAYLOADS = [bytes([number]) * 100 for number in range(20)]


class Stack:
    """What resolving and planning touch."""

    settings = SETTINGS
    open_points = staticmethod(stored_points)

    def __init__(self, ledgers):
        self.ledgers = ledgers
        self.tell = lambda _line, *_ledger_ids: None


@pytest.fixture
def bookies():
    with ExitStack() as stack:
        yield SimBookies(stack)


@pytest.fixture
def metadata():
    cluster = Cluster(lambda: 0)
    cluster.put("/ledgers/LAYOUT", b"2\norg.apache.bookkeeper.meta.FlatLedgerManagerFactory:1")
    ledger = LedgerMetadata(
        ledger_id=LEDGER_ID,
        state=BookKeeperState.CLOSED,
        last_entry_id=len(PAYLOADS) - 1,
        length=sum(map(len, PAYLOADS)),
        ensemble_size=3,
        write_quorum=3,
        ack_quorum=2,
        digest_type=DigestType.CRC32C,
        password=PASSWORD,
        segments=(EnsembleFragment(0, IDS),),
    )
    cluster.put(f"/ledgers/L{LEDGER_ID:010d}", encode_ledger_metadata(ledger))
    return cluster


@pytest.fixture
def stack(metadata):
    return Stack(LedgerDirectory(metadata.client()))


@pytest.fixture
def register(metadata, bookies):
    def put(*names):
        for name in names:
            host, port = bookies.addresses[name]
            message = BookieServiceInfoFormat()
            message.endpoints.add(id="bookie", port=port, host=host, protocol="bookie-rpc")
            metadata.put(f"/ledgers/available/{name}", message.SerializeToString())

    return put


def source_of(stack):
    return plan.source_of(stack, stack.ledgers.read(LEDGER_ID))


@pytest.mark.parametrize("down", IDS)
def test_one_of_three_that_is_down_costs_neither_the_plan_nor_a_reading(
    stack, bookies, register, down
):
    ledger = SimLedger.store(bookies, LEDGER_ID, PAYLOADS, block_bytes=4096)
    register(*(name for name in IDS if name != down))
    source = source_of(stack)
    assert down not in source.addresses
    blocks = lay_out(stack, source, 4096)
    assert [b.payload_bytes for b in blocks] == [b.payload_bytes for b in ledger.blocks]
    task = SimLedger(source, PAYLOADS, blocks, "key").task(TaskKind.READ_SOURCE)
    objects = SimulatedObjectStore(part_bytes_min=1)
    runner = LocalRunner(SETTINGS, make_worker=lambda: Worker(SETTINGS, store=objects))
    rows = runner.run([decode_task(encode_task(task))])
    assert [row.error for row in rows] == [""]
    assert sum(row.entries for row in rows) == len(PAYLOADS)


def test_a_registration_that_cannot_be_read_is_like_none(stack, bookies, register, metadata):
    SimLedger.store(bookies, LEDGER_ID, PAYLOADS, block_bytes=4096)
    register(*IDS[1:])
    metadata.put(f"/ledgers/available/{IDS[0]}", b"\xff\xff")
    assert sorted(source_of(stack).addresses) == sorted(IDS[1:])


def test_without_any_replica_the_error_names_every_bookie(stack, bookies):
    SimLedger.store(bookies, LEDGER_ID, PAYLOADS, block_bytes=4096)
    with pytest.raises(EntryUnavailableError) as failed:
        lay_out(stack, source_of(stack), 4096)
    for name in IDS:
        assert f"bookie {name}: not registered" in str(failed.value)


def test_a_store_that_does_not_answer_says_nothing_about_a_bookie(stack, monkeypatch):
    node = stack.ledgers.read(LEDGER_ID)

    def silent(_bookie):
        raise MetadataError("no answer")

    monkeypatch.setattr(stack.ledgers, "bookie", silent)
    with pytest.raises(MetadataError):
        plan.source_of(stack, node)


def test_pages_are_those_that_bookies_registered_or_the_port_that_is_set(
    stack, bookies, register, metadata
):
    register(*IDS)
    message = BookieServiceInfoFormat()
    message.endpoints.add(id="bookie", port=3181, host="bk.example", protocol="bookie-rpc")
    message.endpoints.add(id="http", port=8000, host="0.0.0.0", protocol="http")
    metadata.put(f"/ledgers/available/{IDS[0]}", message.SerializeToString())
    assert source_of(stack).pages == {IDS[0]: ("bk.example", 8000)}

    stack.settings = replace(SETTINGS, bookies=replace(SETTINGS.bookies, http_port=9000))
    hosts = {name: host for name, (host, _) in source_of(stack).addresses.items()}
    assert source_of(stack).pages == {name: (hosts[name], 9000) for name in IDS}

    stack.settings = replace(SETTINGS, budget=BudgetSettings(add_latency_max_s=0.0))
    assert source_of(stack).pages == {}


def test_pages_travel_with_the_task(bookies):
    ledger = SimLedger.store(bookies, LEDGER_ID, PAYLOADS, block_bytes=4096)
    task = replace(ledger.task(), source=replace(ledger.source, pages={"bk0": ("h", 8000)}))
    assert decode_task(encode_task(task)) == task
