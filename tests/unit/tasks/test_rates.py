"""One spender on a clock that only its own waiting moves: budgets looked up, kept and changed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest

from tiering_assets.resources import ending
from tiering_assets.resources.errors import FormatError, ObjectStoreError, SettingsError
from tiering_assets.resources.settings import BudgetSettings, Settings, SparkSettings
from tiering_assets.tasks.rate_budget import REREAD_S, WINDOW_S
from tiering_assets.tasks.rates import Rates, parts_of

MIB = 1024 * 1024


class Time:
    def __init__(self):
        self.now, self.sleeps = 1000.0, []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        self.sleeps.append(seconds)
        self.now += seconds


class Office:
    """What says the wanted budget; `looks` are the times at which it was asked."""

    def __init__(self, time, **rates):
        self.time, self.rates, self.looks = time, rates, []
        self.error = None

    def __call__(self):
        self.looks.append(self.time.now)
        if self.error is not None:
            raise self.error
        return self.rates


@pytest.fixture
def time():
    return Time()


def spender(time, office, *, parts=1, **settings):
    return Rates(
        BudgetSettings(**settings),
        parts=lambda: parts,
        read=office,
        clock=time.clock,
        sleep=time.sleep,
    )


def send(rates, time, size):
    """Send so much as a client does; (when, how much) of each slice."""
    sent = []
    while size > 0:
        piece = rates.upload(size)
        sent.append((time.now, piece))
        size -= piece
    return sent


def most(sent):
    return max(
        sum(size for when, size in sent if start <= when < start + WINDOW_S) for start, _ in sent
    )


def test_without_a_budget_nothing_waits_and_it_is_looked_up_every_ten_seconds(time):
    office = Office(time)
    rates = spender(time, office)
    assert not rates.bounds_uploads()
    assert rates.upload(100 * MIB) == 100 * MIB
    assert rates.take_reads(7) == []
    assert rates.reads_at_once() is None
    rates.request()
    assert time.sleeps == []
    assert len(office.looks) == 1
    time.now += REREAD_S
    rates.request()
    assert len(office.looks) == 2


def test_a_spender_beside_another_need_not_read_what_that_one_has_just_read(time):
    office, own = Office(time, upload_bytes_per_s=MIB), Office(time)
    first = spender(time, office)
    second = Rates(
        BudgetSettings(),
        parts=lambda: 1,
        read=own,
        known=first.newest,
        clock=time.clock,
        sleep=time.sleep,
    )
    first.request()
    time.now += REREAD_S - 1
    assert second.bounds_uploads()
    assert own.looks == []
    assert second.newest() == first.newest()
    time.now += 1
    assert not second.bounds_uploads()  # as old as the reading is, however late it was heard of
    assert len(own.looks) == 1


@pytest.mark.parametrize("read_before", [False, True], ids=["never read", "too old"])
def test_a_spender_reads_for_itself_what_nobody_knows_any_more(time, read_before):
    office, own = Office(time), Office(time)
    first = spender(time, office)
    if read_before:
        first.request()
        time.now += REREAD_S
    second = Rates(
        BudgetSettings(), parts=lambda: 1, read=own, known=first.newest, clock=time.clock
    )
    second.request()
    assert len(own.looks) == 1


def test_a_block_larger_than_ten_seconds_of_its_part_goes_out_slowly_and_whole(time):
    rates = spender(time, Office(time, upload_bytes_per_s=4 * MIB), parts=4)
    began = time.now
    sent = send(rates, time, 64 * MIB)
    assert sum(size for _, size in sent) == 64 * MIB
    assert most(sent) <= 10 * MIB
    assert 64 < time.now - began < 75


def test_a_topics_budget_bounds_its_own_bytes_and_no_other_topics(time):
    rates = spender(time, Office(time, topic_upload_bytes_per_s=MIB))
    with rates.of_topic("t/n/persistent/a"):
        slow = send(rates, time, 20 * MIB)
    assert most(slow) <= 10 * MIB
    before = time.now
    assert rates.upload(500 * MIB) == 500 * MIB  # no topic
    assert time.now == before
    with rates.of_topic("t/n/persistent/b"):
        assert send(rates, time, MIB)[0][0] > before  # its bucket, too, begins empty


def test_of_both_bounds_the_tighter_one_holds(time):
    office = Office(time, upload_bytes_per_s=8 * MIB, topic_upload_bytes_per_s=2 * MIB)
    rates = spender(time, office, parts=2)
    with rates.of_topic("t"):
        assert most(send(rates, time, 30 * MIB)) <= 10 * MIB


def test_requests_leave_room_for_the_readings_of_the_budget(time):
    rates = spender(time, Office(time, store_requests_per_s=12), parts=6)
    sent = []
    for _ in range(100):
        rates.request()
        sent.append((time.now, 1))
    assert most(sent) <= 20 - 4


def test_tries_of_the_reading_itself_are_not_asked_for_but_paid_back(time):
    class Busy(Office):
        def __call__(self):
            for _ in range(5):
                rates.request()
            return super().__call__()

    rates = spender(time, Busy(time, store_requests_per_s=2))
    rates.request()
    assert time.now - 1000.0 > 3 / 1.5  # three tries more than were set aside, at 1.5 a second


def test_a_change_counts_within_ten_seconds_even_in_the_middle_of_a_wait(time):
    office = Office(time, store_requests_per_s=1)
    rates = spender(time, office)
    rates.request()
    office.rates = {"store_requests_per_s": 1000}
    changed = time.now
    for _ in range(500):
        rates.request()
    assert time.now - changed <= REREAD_S + 1
    assert max(time.sleeps) <= REREAD_S
    office.rates = {"store_requests_per_s": 0}
    time.now += REREAD_S
    before = len(time.sleeps)
    for _ in range(10_000):
        rates.request()
    assert len(time.sleeps) == before


def test_a_record_says_more_than_settings_and_settings_where_it_is_silent(time):
    office = Office(time, upload_bytes_per_s=None)
    rates = spender(time, office, upload_bytes_per_s=MIB)
    assert rates.bounds_uploads()
    office.rates = {"upload_bytes_per_s": 0}
    time.now += REREAD_S
    assert not rates.bounds_uploads()


def test_an_unknown_budget_is_not_unbounded_but_a_known_one_outlives_an_outage(time):
    office = Office(time, store_requests_per_s=1)
    office.error = ObjectStoreError("away")
    rates = spender(time, office)
    with pytest.raises(ObjectStoreError, match="away"):
        rates.request()
    office.error = None
    rates.request()
    office.error = ObjectStoreError("away")
    time.now += 1000.0
    began = time.now
    for _ in range(30):
        rates.request()
    assert time.now - began > 30


@pytest.mark.parametrize("error", [FormatError("record x: damaged"), None])
def test_a_record_that_cannot_be_kept_stops_what_would_spend(time, error):
    office = Office(time)
    rates = spender(time, office, parts=6)
    rates.request()
    office.error, office.rates = error, {"bookie_read_bytes_per_s": 1}
    time.now += REREAD_S
    for _ in range(2):
        with pytest.raises(FormatError if error else SettingsError, match=r"damaged|at least"):
            rates.upload(1)


def test_reads_take_the_largest_answer_and_give_back_what_it_was_not(time):
    rates = spender(time, Office(time, bookie_read_bytes_per_s=8 * MIB))
    assert rates.reads_at_once() == 3
    read = []
    for _ in range(60):
        for taken in rates.take_reads(rates.reads_at_once()):
            assert taken.bytes_max == BudgetSettings().bookie_answer_bytes_max + 4
            taken.settle(MIB)
            read.append((time.now, MIB))
    assert most(read) <= 80 * MIB
    assert time.now - 1000.0 < 180 / 8 * 1.5


def test_parts_are_the_tasks_and_drivers_of_all_runs():
    settings = Settings(spark=SparkSettings(master="local[4,2]"))
    assert parts_of(settings) == settings.budget.runs_max * 5
    assert parts_of(replace(settings, budget=BudgetSettings(runs_max=1))) == 5


def test_a_spark_master_that_nobody_uses_is_no_ones_business(time):
    def parts():
        raise SettingsError("spark.master is odd")

    rates = Rates(BudgetSettings(), parts=parts, clock=time.clock, sleep=time.sleep)
    rates.request()
    bounded = Rates(BudgetSettings(store_requests_per_s=9), parts=parts)
    with pytest.raises(SettingsError, match="odd"):
        bounded.request()


class TestAfterCtrlC:
    """What waited for a budget that allows next to nothing."""

    @pytest.fixture
    def asked(self, monkeypatch):
        flag = threading.Event()
        monkeypatch.setattr(ending, "_asked", flag)
        return flag

    @pytest.fixture
    def rates(self):
        small = BudgetSettings(
            store_requests_per_s=5, upload_bytes_per_s=100_000, bookie_read_bytes_per_s=MIB
        )
        return Rates(small, parts=lambda: 1)

    def test_who_waits_stops_at_once_in_whatever_thread(self, asked, rates):
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(lambda: [rates.upload(MIB) for _ in range(1000)])
            assert wait([waiting], 0.2).not_done
            asked.set()
            with pytest.raises(KeyboardInterrupt):
                waiting.result(5)

    def test_the_main_thread_gives_up_what_it_holds_without_waiting(self, asked, rates):
        asked.set()
        for _ in range(1000):
            rates.request()
        assert rates.upload(50 * MIB) == 50 * MIB
        with pytest.raises(KeyboardInterrupt):
            rates.take_reads(1)
