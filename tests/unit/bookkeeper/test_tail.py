"""The tail of an open ledger: what bookies say of it, and that no more is read than is proven."""

import contextlib
from dataclasses import replace

import pytest

from tests.unit.bookkeeper.test_reader import IDS, LEDGER, SETTINGS, Cluster, payload, read_all
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.bookkeeper.readable import BoundBy, proven_bound
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.bookkeeper.tail import look_at_tail
from tiering_assets.resources.errors import (
    BookieNotAuthorizedError,
    BookieUnreachableError,
    IntegrityError,
    LedgerNotOnBookieError,
)


@pytest.fixture
def cluster():
    with contextlib.ExitStack() as stack:
        yield Cluster(stack)


def opened(metadata):
    """As its node is while somebody writes to it."""
    return replace(metadata, state=BookKeeperState.OPEN, last_entry_id=-1, length=-1)


def stored(entry_id, confirmed, digest):
    codec = EntryCodec(ledger_id=LEDGER, digest_type=digest, password=b"pw")
    return codec.encode(
        entry_id=entry_id, last_add_confirmed=confirmed, cumulative_length=0, payload=b"tail"
    )


def test_all_that_is_confirmed_is_read_and_nothing_above(cluster):
    metadata = opened(cluster.ledger(60))
    pool = cluster.pool()
    look = look_at_tail(metadata, pool)
    assert look.confirmed == dict.fromkeys(IDS, 58)
    assert (look.visible, look.failures) == (59, {})
    bound = proven_bound(metadata, confirmed=look.confirmed)
    reader = LedgerReader(metadata, pool, SETTINGS, readable_to=bound)
    found = read_all(reader, last=58)
    assert [(e, p) for e, p, _ in found] == [(e, payload(e)) for e in range(59)]
    for read in (
        lambda: reader.read_entry(59),
        lambda: [*reader.iter_batches(first_entry_id=0, last_entry_id=59)],
    ):
        with pytest.raises(ValueError, match=r"may be read up to 58 \(last add confirmed\)"):
            read()
    flags = {seen.flags for sim in cluster.sims.values() for seen in sim.seen}
    assert flags == {0}


def test_what_is_visible_above_is_not_confirmed(cluster):
    """One bookie got entries that nobody acknowledged: pipelined ones all confirm the same."""
    metadata = opened(cluster.ledger(60))
    for entry_id in range(60, 70):
        entry = stored(entry_id, 58, metadata.digest_type)
        cluster.sims["bk1"].entries[LEDGER, entry_id] = entry
    look = look_at_tail(metadata, cluster.pool())
    assert look.visible == 69
    assert proven_bound(metadata, confirmed=look.confirmed).entry_id == 58


def test_bookies_that_lag_or_fail_cost_nothing_but_newness(cluster):
    metadata = opened(cluster.ledger(60))
    for entry_id in range(50, 60):
        del cluster.sims["bk0"].entries[LEDGER, entry_id]
    cluster.sims["bk1"].entries.clear()
    cluster.sims["bk2"].stop()
    look = look_at_tail(metadata, cluster.pool())
    assert look.confirmed == {"bk0": 48}
    assert isinstance(look.failures["bk1"], LedgerNotOnBookieError)
    assert isinstance(look.failures["bk2"], BookieUnreachableError)
    assert proven_bound(metadata, confirmed=look.confirmed).entry_id == 48


def test_without_an_answer_the_newest_ensemble_is_the_bound(cluster):
    metadata = opened(cluster.ledger(60, segments=[(0, IDS), (40, IDS)]))
    for sim in cluster.sims.values():
        sim.stop()
    look = look_at_tail(metadata, cluster.pool())
    found = proven_bound(metadata, confirmed=look.confirmed)
    assert (look.confirmed, found.entry_id, found.by) == ({}, 39, BoundBy.ENSEMBLE)


@pytest.mark.parametrize("bit", [0, 100, 170, -1])
def test_a_wrong_digest_confirms_nothing(cluster, bit):
    metadata = opened(cluster.ledger(60))
    for sim in cluster.sims.values():
        entry = bytearray(stored(60, 59, metadata.digest_type))
        entry[bit // 8] ^= 1 << bit % 8
        sim.entries[LEDGER, 60] = bytes(entry)
    look = look_at_tail(metadata, cluster.pool())
    assert look.confirmed == {}
    assert {type(one) for one in look.failures.values()} == {IntegrityError}


@pytest.mark.parametrize("confirmed", [60, 61, -2])
def test_an_entry_that_confirms_itself_is_none(cluster, confirmed):
    metadata = opened(cluster.ledger(60))
    for sim in cluster.sims.values():
        sim.entries[LEDGER, 60] = stored(60, confirmed, metadata.digest_type)
    look = look_at_tail(metadata, cluster.pool())
    assert look.confirmed == {}
    assert all("expected one before it" in str(one) for one in look.failures.values())


def test_a_piece_of_an_entry_confirms_nothing(cluster):
    metadata = opened(cluster.ledger(60))
    for sim in cluster.sims.values():
        sim.entries[LEDGER, 60] = b"short"
    assert look_at_tail(metadata, cluster.pool()).confirmed == {}


def test_a_bookie_that_asks_who_we_are_ends_it(cluster):
    metadata = opened(cluster.ledger(60))
    cluster.sims["bk0"].faults.status_for_all = 102
    with pytest.raises(BookieNotAuthorizedError):
        look_at_tail(metadata, cluster.pool())


def test_a_bookie_that_was_replaced_meanwhile_is_looked_up(cluster):
    """Its entries moved between two looks at the metadata: the ledger is open still."""
    after = opened(cluster.ledger(60, write_quorum=1, segments=[(0, ["bk0"]), (30, ["bk1"])]))
    before = replace(after, segments=after.segments[:1])
    pool = cluster.pool()
    bound = proven_bound(after, confirmed=look_at_tail(after, pool).confirmed)
    reader = LedgerReader(before, pool, SETTINGS, readable_to=bound, reresolve=lambda: after)
    assert [e for e, _, _ in read_all(reader, last=58)] == [*range(59)]


def test_a_bound_of_another_ledger_is_refused(cluster):
    metadata = opened(cluster.ledger(60))
    bound = proven_bound(replace(metadata, ledger_id=8), confirmed={})
    with pytest.raises(ValueError, match="a bound of ledger 8 for ledger 9"):
        LedgerReader(metadata, cluster.pool(), SETTINGS, readable_to=bound)
