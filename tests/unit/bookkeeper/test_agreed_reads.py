"""Entries without a digest are believed when at least two replicas give them alike, and none
otherwise.
"""

from __future__ import annotations

import contextlib

import pytest

from tests.support.bookie_sim import NO_ENTRY, NO_LEDGER, UNAUTHORIZED
from tests.unit.bookkeeper.test_reader import LEDGER, Cluster, expected
from tiering_assets.resources.bookkeeper.agreed_reads import replicas_wanted
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.errors import (
    BookieNotAuthorizedError,
    EntryUnavailableError,
    IntegrityError,
)

ENTRIES = 50


@pytest.fixture
def cluster():
    with contextlib.ExitStack() as stack:
        yield Cluster(stack)


def dummy(cluster, write_quorum=3):
    return cluster.ledger(ENTRIES, write_quorum=write_quorum, digest=DigestType.DUMMY)


def read_agreed(reader, first=0, last=ENTRIES - 1):
    return [
        (entry_id, bytes(view), length)
        for run in reader.iter_agreed(first_entry_id=first, last_entry_id=last)
        for entry_id, view, length in run.entries()
    ]


@pytest.mark.parametrize("write_quorum", [1, 2, 3])
def test_every_replica_of_every_entry_is_asked(cluster, write_quorum):
    reader = cluster.reader(dummy(cluster, write_quorum))
    assert read_agreed(reader) == expected(0, ENTRIES - 1)
    asked = [(s.entry_id) for sim in cluster.sims.values() for s in sim.seen]
    assert sorted(asked) == sorted(list(range(ENTRIES)) * write_quorum)
    assert read_agreed(reader, 7, 9) == expected(0, 9)[7:]


@pytest.mark.parametrize("status", [NO_ENTRY, NO_LEDGER])
def test_a_replica_that_lacks_it_says_nothing(cluster, status):
    cluster.sims["bk1"].faults.status_for_all = status
    assert read_agreed(cluster.reader(dummy(cluster))) == expected(0, ENTRIES - 1)


def test_one_of_three_may_be_away_for_each_entry(cluster):
    metadata = dummy(cluster)
    cluster.sims["bk2"].faults.silent = True
    assert read_agreed(cluster.reader(metadata)) == expected(0, ENTRIES - 1)
    assert cluster.sims["bk2"].connections == 1  # one timeout, not one for each window


@pytest.mark.parametrize(("write_quorum", "away"), [(3, ["bk0", "bk1"]), (2, ["bk0"])])
def test_fewer_than_two_wait_by_name(cluster, write_quorum, away):
    metadata = dummy(cluster, write_quorum)
    for name in away:
        cluster.sims[name].faults.status_for_all = NO_LEDGER
    with pytest.raises(EntryUnavailableError, match="DUMMY, so 2 replicas must give it") as raised:
        read_agreed(cluster.reader(metadata))
    assert raised.value.retryable
    assert set(away) <= set(raised.value.failures)


def test_with_a_write_quorum_of_one_there_is_one_to_believe(cluster):
    metadata = dummy(cluster, write_quorum=1)
    cluster.sims["bk1"].faults.flipped = {(LEDGER, 1)}
    [(_id, found, _length)] = read_agreed(cluster.reader(metadata), 1, 1)
    assert found != expected(0, 1)[1][1]  # nobody could tell
    assert [replicas_wanted(quorum) for quorum in (1, 2, 3)] == [1, 2, 2]


@pytest.mark.parametrize("bookie", ["bk0", "bk1", "bk2"])
def test_one_that_differs_ends_the_reading_and_leaves_the_connections_usable(cluster, bookie):
    reader = cluster.reader(dummy(cluster))
    cluster.sims[bookie].faults.flipped = {(LEDGER, 30)}
    assert read_agreed(reader, 0, 29) == expected(0, 29)
    with pytest.raises(
        IntegrityError, match=r"entry 30: its digest type is DUMMY and its replicas"
    ):
        read_agreed(reader, 0)
    assert read_agreed(reader, 31) == expected(0, ENTRIES - 1)[31:]


def test_one_that_gives_another_entry_differs(cluster):
    metadata = dummy(cluster)
    cluster.sims["bk1"].entries[LEDGER, 5] = cluster.sims["bk1"].entries[LEDGER, 6]
    with pytest.raises(IntegrityError, match="asked for ledger 9 entry 5"):
        read_agreed(cluster.reader(metadata))


def test_a_wrong_password_is_said_at_once(cluster):
    metadata = dummy(cluster)
    cluster.sims["bk0"].faults.status_for_all = UNAUTHORIZED
    with pytest.raises(BookieNotAuthorizedError):
        read_agreed(cluster.reader(metadata))
