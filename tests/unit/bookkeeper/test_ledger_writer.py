"""The writer against simulated bookies, and the contract that real bookies run too."""

from __future__ import annotations

import contextlib
from itertools import count

import pytest

from tests.support import bookie_contract
from tests.support.bookie_sim import BookieSim
from tests.support.ledger_writer import LedgerWriter
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState, DigestType, LedgerMetadata
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.errors import BookieError, BookieNotAuthorizedError
from tiering_assets.resources.settings import BookieSettings

SETTINGS = BookieSettings(batch_bytes_max=20_000, window=16)


@pytest.fixture
def sims():
    with contextlib.ExitStack() as stack:
        yield {f"bk{i}": stack.enter_context(BookieSim(f"bk{i}")) for i in range(3)}


@pytest.fixture
def pool(sims):
    with BookiePool(SETTINGS, {name: sim.address for name, sim in sims.items()}) as made:
        yield made


@pytest.fixture
def cluster(sims, pool):
    ids = count(100)
    return bookie_contract.Cluster(
        pool=pool,
        bookies=list(sims),
        next_ledger_id=lambda: next(ids),
        create=lambda metadata: None,
        close=lambda metadata: None,
        settings=SETTINGS,
    )


@pytest.mark.parametrize("digest_type", list(DigestType), ids=lambda d: d.name)
def test_contract_digest_round_trip(cluster, digest_type):
    bookie_contract.check_digest_round_trip(cluster, digest_type)


@pytest.mark.parametrize("check", bookie_contract.ALL_CHECKS, ids=lambda check: check.__name__)
def test_contract(cluster, check):
    check(cluster)


def writer(pool, saved, **options):
    return LedgerWriter(
        pool,
        ledger_id=5,
        ensemble=["bk0", "bk1", "bk2"],
        write_quorum=2,
        ack_quorum=2,
        create=saved.append,
        close=saved.append,
        custom={"application": b"pulsar"},
        **options,
    )


def test_the_first_entry_is_the_stored_entry_of_the_java_client(sims, pool):
    made = LedgerWriter(
        pool,
        ledger_id=1,
        ensemble=["bk0"],
        write_quorum=1,
        ack_quorum=1,
        create=lambda metadata: None,
        close=lambda metadata: None,
    )
    made.add(b"hello")
    made.close()
    assert sims["bk0"].entries[1, 0].hex() == (
        "00000000000000010000000000000000ffffffffffffffff0000000000000005e3a5f74d68656c6c6f"
    )


def test_metadata_is_created_before_the_first_add_and_closed_after_the_last(sims, pool):
    saved, adds = [], []

    def create(metadata):
        adds.append(sum(len(sim.seen) for sim in sims.values()))
        saved.append(metadata)

    made = LedgerWriter(
        pool,
        ledger_id=5,
        ensemble=["bk0", "bk1", "bk2"],
        write_quorum=2,
        ack_quorum=1,
        create=create,
        close=create,
    )
    for _ in range(10):
        made.add(b"xyz")
    closed = made.close()
    assert adds == [0, 20]
    assert [m.state for m in saved] == [BookKeeperState.OPEN, BookKeeperState.CLOSED]
    assert (saved[0].last_entry_id, saved[0].length) == (-1, 0)
    assert saved[1] == closed
    assert (closed.last_entry_id, closed.length, closed.ack_quorum) == (9, 30, 1)
    assert {e for _, e in sims["bk1"].entries} == {e for e in range(10) if e % 3 in (0, 1)}


def test_a_change_before_the_first_entry_replaces_the_first_segment(pool):
    made = writer(pool, [])
    made.change_ensemble(["bk2", "bk1", "bk0"])
    made.add(b"a")
    made.change_ensemble(["bk0", "bk1", "bk2"])
    segments = made.close().segments
    assert [(s.first_entry_id, s.bookies[0]) for s in segments] == [(0, "bk2"), (1, "bk0")]


@pytest.mark.parametrize("status", [104, 105])
def test_a_refused_add_leaves_the_ledger_open(sims, pool, status):
    saved: list[LedgerMetadata] = []
    made = writer(pool, saved)
    sims["bk1"].faults.status_for_all = status
    made.add(b"a")
    with pytest.raises(BookieError, match=str(status)):
        made.close()
    assert [m.state for m in saved] == [BookKeeperState.OPEN]


def test_another_password_is_refused_by_the_bookie(pool):
    first = writer(pool, [], password=b"one")
    first.add(b"a")
    first.close()
    second = writer(pool, [], password=b"two")
    second.add(b"a")
    with pytest.raises(BookieNotAuthorizedError) as caught:
        second.close()
    assert "two" not in str(caught.value)


def test_adds_in_flight_are_bounded(sims, pool):
    made = writer(pool, [], in_flight_max=4)
    for _ in range(50):
        made.add(b"a")
    last = max(sims["bk0"].entries)
    lac = int.from_bytes(sims["bk0"].entries[last][16:24], "big", signed=True)
    made.close()
    assert last[1] - 4 <= lac < last[1]


def test_a_closed_ledger_takes_no_more(pool):
    made = writer(pool, [])
    made.close()
    with pytest.raises(ValueError, match="closed"):
        made.add(b"a")


@pytest.mark.parametrize(("write_quorum", "ack_quorum"), [(4, 1), (2, 3), (0, 0)])
def test_impossible_quorums_are_refused(pool, write_quorum, ack_quorum):
    with pytest.raises(ValueError, match="quorums"):
        LedgerWriter(
            pool,
            ledger_id=5,
            ensemble=["bk0", "bk1", "bk2"],
            write_quorum=write_quorum,
            ack_quorum=ack_quorum,
            create=lambda metadata: None,
            close=lambda metadata: None,
        )
