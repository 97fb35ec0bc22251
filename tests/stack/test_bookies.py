"""Our reader, writer and admin client against the real bookies, with metadata in the real
ZooKeeper.
"""

from contextlib import ExitStack
from dataclasses import replace
from itertools import count

import pytest

from tests.support import bookie_contract
from tests.support.bookie_admin import CollectingBookie
from tests.support.bookie_proxy import BookieProxy
from tests.support.tiered_cluster import tiered_cluster, wait_until
from tiering_assets.resources.bookkeeper.ledger import DigestType, EnsembleFragment
from tiering_assets.resources.bookkeeper.ledger_metadata import encode_ledger_metadata
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.errors import BookieError, EntryUnavailableError
from tiering_assets.resources.settings import BookieSettings

pytestmark = pytest.mark.stack
SETTINGS = BookieSettings()
IDS = count(60_000_000)  # far above the ids that the broker gets


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


@pytest.fixture
def contract(cluster):
    """The contract's cluster; its ledgers' nodes are gone afterwards, so bookies collect them."""
    store, ledgers = cluster.steps.metadata, cluster.steps.ledgers
    made = {}

    def create(metadata):
        path = ledgers.path(metadata.ledger_id)
        made[path] = store.create(path, encode_ledger_metadata(metadata)).version

    def close(metadata):
        path = ledgers.path(metadata.ledger_id)
        data = encode_ledger_metadata(metadata)
        made[path] = store.set(path, data, expected_version=made[path]).version

    with BookiePool(SETTINGS, ledgers.resolve) as pool:
        yield bookie_contract.Cluster(
            pool=pool,
            bookies=sorted(cluster.endpoints.bookies),
            next_ledger_id=lambda: next(IDS),
            create=create,
            close=close,
            settings=SETTINGS,
        )
    for path, version in made.items():
        store.delete(path, expected_version=version)


@pytest.mark.parametrize("check", bookie_contract.ALL_CHECKS, ids=lambda check: check.__name__)
def test_contract(contract, check):
    check(contract)


@pytest.mark.parametrize("digest_type", list(DigestType), ids=lambda d: d.name)
def test_each_digest_type_reads_back_by_what_metadata_says(cluster, contract, digest_type):
    written = bookie_contract.write_ledger(contract, entries=200, digest_type=digest_type)
    found = cluster.ledger(written.ledger_id)
    assert found.digest_type is digest_type
    bookie_contract.check_reads_back(contract, found)


def test_a_striped_ledger_is_read_although_a_bookie_lacks_a_third_of_it(contract):
    """Asks each bookie for each entry: two have it, the third says so, and single reads cope."""
    written = bookie_contract.write_ledger(contract, entries=30, ensemble_size=3, write_quorum=2)
    reader = LedgerReader(written, contract.pool, SETTINGS)
    for entry_id in range(30):
        replicas = [reader.read_entry(entry_id, replica=n) for n in range(2)]
        assert {bytes(r.payload) for r in replicas} == {bookie_contract.payload_of(entry_id)}
    bookie_contract.check_reads_back(contract, written)


def test_a_change_of_ensemble_is_in_metadata_and_read_across(cluster, contract):
    written = bookie_contract.write_ledger(
        contract, entries=120, ensemble_size=2, write_quorum=2, change_ensemble_at=50
    )
    found = cluster.ledger(written.ledger_id)
    assert [s.first_entry_id for s in found.segments] == [0, 50]
    assert set(found.segments[0].bookies) != set(found.segments[1].bookies)
    bookie_contract.check_reads_back(contract, found)


def test_bookies_that_advertise_what_does_not_resolve_are_read_through_the_map(cluster, contract):
    written = bookie_contract.write_ledger(contract, entries=120)
    real = {f"bookie-{n}.invalid": bookie for n, bookie in enumerate(written.segments[0].bookies)}
    moved = replace(
        written, segments=(EnsembleFragment(0, tuple(f"{host}:3181" for host in real)),)
    )
    with ExitStack() as exits:
        resolve = cluster.steps.ledgers.resolve  # nobody registered them: the id is the address
        proxies = [exits.enter_context(BookieProxy(resolve(id_))) for id_ in real.values()]
        ways = [
            f"{host}:3181=127.0.0.1:{proxy.address[1]}"
            for host, proxy in zip(real, proxies, strict=True)
        ]
        mapped = replace(SETTINGS, address_map=", ".join(ways))
        pool = exits.enter_context(BookiePool(mapped, resolve))
        for replica in range(3):
            bookie_contract.check_reads_back(replace(contract, pool=pool), moved, replica=replica)
        assert all(proxy.answers for proxy in proxies)
        unmapped = exits.enter_context(BookiePool(SETTINGS, resolve))
        with pytest.raises(EntryUnavailableError) as caught:
            LedgerReader(moved, unmapped, SETTINGS).read_entry(0)
        assert all(f"no connection to {host}:3181:" in str(caught.value) for host in real)


@pytest.fixture
def admins(cluster):
    made = [
        CollectingBookie(f"http://{host}:{port}")
        for host, port in cluster.endpoints.bookie_http.values()
    ]
    yield made
    for admin in made:
        admin.close()


def test_a_bookie_tells_its_state_disks_and_files(admins):
    for admin in admins:
        state, disk = admin.state(), admin.disk_info()
        assert (state.running, state.read_only, state.shutting_down) == (True, False, False)
        assert 0 < disk.free_bytes < disk.total_bytes
        assert len(admin.gc_details()) == 1
        assert all(name.endswith(".log") for name in admin.entry_log_files())


def test_a_forced_major_collection_runs_and_ends(admins):
    [admin, *_others] = admins
    [before] = admin.gc_details()

    def has_run():
        if not admin.gc_running():
            admin.trigger_gc(force_major=True)
        return admin.gc_details()[0].last_major_compaction_ms > before.last_major_compaction_ms

    wait_until(has_run, "a major compaction")
    wait_until(lambda: not admin.gc_running(), "the end of the forced collection")


def test_a_deleted_ledger_is_gone_from_every_bookie(cluster, contract):
    written = bookie_contract.write_ledger(contract, entries=20)
    bookie_contract.check_reads_back(contract, written)
    node = cluster.steps.ledgers.read(written.ledger_id)
    cluster.steps.metadata.delete(node.path, expected_version=node.stat.version)
    cluster.require_gone_from_bookies([written.ledger_id])
    cluster.steps.metadata.create(node.path, node.data)  # the fixture deletes it
    cluster.steps.metadata.set(node.path, node.data, expected_version=0)


def test_an_http_port_that_nobody_serves_is_an_error():
    with CollectingBookie("http://127.0.0.1:9", timeout_s=2) as admin, pytest.raises(BookieError):
        admin.state()
