"""Reads that ask before they are sent: what is in flight, what is told back, what is refused."""

from __future__ import annotations

import contextlib

import pytest

from tests.unit.bookkeeper.test_reader import SETTINGS, Cluster, expected, read_all
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.errors import EntryUnavailableError


class Taken:
    def __init__(self, meter, bytes_max):
        self.meter, self.bytes_max, self.settled = meter, bytes_max, []

    def settle(self, spent):
        assert not self.settled, "settled twice"
        assert spent <= self.bytes_max
        self.settled.append(spent)
        self.meter.in_flight -= 1


class Meter:
    """Lets everything through, and keeps the books."""

    def __init__(self, *, answer_max=5000, at_once=3):
        self.answer_max, self.at_once = answer_max, at_once
        self.taken, self.in_flight, self.most = [], 0, 0

    def take_reads(self, count):
        found = [Taken(self, self.answer_max) for _ in range(count)]
        self.taken += found
        self.in_flight += count
        self.most = max(self.most, self.in_flight)
        return found

    def reads_at_once(self):
        return self.at_once


@pytest.fixture
def cluster():
    with contextlib.ExitStack() as stack:
        yield Cluster(stack)


def metered(cluster, metadata, meter):
    return LedgerReader(metadata, cluster.pool(SETTINGS, meter=meter), SETTINGS)


def test_batches_are_one_at_a_time_and_told_as_they_came(cluster):
    metadata, meter = cluster.ledger(200), Meter()
    assert read_all(metered(cluster, metadata, meter)) == expected(0, 199)
    assert meter.most == 1
    assert meter.in_flight == 0
    stored = sum(len(s) for (_, entry), s in cluster.sims["bk0"].entries.items() if entry < 200)
    told = sum(taken.settled[0] for taken in meter.taken)
    assert stored < told < stored + 4 * 200 + 100 * len(meter.taken)


@pytest.mark.parametrize("at_once", [1, 3])
def test_single_reads_fit_what_may_be_on_its_way_together(cluster, at_once):
    metadata, meter = cluster.ledger(90, write_quorum=2), Meter(at_once=at_once)
    assert read_all(metered(cluster, metadata, meter)) == expected(0, 89)
    assert meter.most == at_once
    assert meter.in_flight == 0
    assert len(meter.taken) == 90


def test_without_a_bound_the_window_is_that_of_the_settings(cluster):
    metadata, meter = cluster.ledger(90, write_quorum=2), Meter(at_once=None)
    assert read_all(metered(cluster, metadata, meter)) == expected(0, 89)
    assert meter.most == SETTINGS.window


@pytest.mark.parametrize("fault", [{"drop_after_bytes": 300}, {"silent": True}])
@pytest.mark.parametrize("write_quorum", [2, 3])
def test_what_a_dying_bookie_never_told_counts_as_spent_in_full(cluster, write_quorum, fault):
    metadata, meter = cluster.ledger(90, write_quorum=write_quorum), Meter()
    for name, value in fault.items():
        setattr(cluster.sims["bk0"].faults, name, value)
    assert read_all(metered(cluster, metadata, meter)) == expected(0, 89)
    assert meter.in_flight == 0
    assert [meter.answer_max] in [taken.settled for taken in meter.taken]


def test_an_answer_above_what_was_taken_for_it_is_refused(cluster):
    metadata, meter = cluster.ledger(30), Meter(answer_max=120)
    with pytest.raises(EntryUnavailableError) as raised:
        read_all(metered(cluster, metadata, meter))
    assert "frame" in str(raised.value)
    assert meter.in_flight == 0
