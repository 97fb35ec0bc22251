"""Who looks at bookies' pages, how often, and what a worker's reads wait for."""

import threading
from dataclasses import replace
from statistics import median

import pytest

from tiering_assets.resources.bookkeeper.add_latency import AddLatency
from tiering_assets.resources.errors import BookieError
from tiering_assets.resources.settings import BudgetSettings
from tiering_assets.tasks.polite_share import SENDS_OVER_READS, SHARE_MIN, UNREAD_AGAIN_S
from tiering_assets.tasks.politeness import (
    FORGET_S,
    SENT_BYTES,
    Politeness,
    PoliteReads,
    PoliteSends,
)
from tiering_assets.tasks.rates import Rates

EVERY_S = 5.0
A, B, C = ("a", 8000), ("b", 8000), ("c", 8000)
SLOW = AddLatency(p99_s=0.2, count=0, total_s=0.0)
FAST = AddLatency(p99_s=0.001, count=0, total_s=0.0)


class Bookies:
    """Pages by address, on a clock that only waiting moves."""

    def __init__(self, **pages):
        self.pages = {(name, 8000): page for name, page in pages.items()}
        self.now, self.asked, self.sleeps = 1000.0, [], []
        self.adds_per_s = 100.0

    def read(self, address):
        self.asked.append(address[0])
        page = self.pages[address]
        if page is None:
            raise BookieError("silent")
        return replace(page, count=int(self.now * self.adds_per_s))

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.sleeps.append(seconds)
        self.now += seconds

    def take(self, reads, count):
        """So many reads, each of which takes 0.1 s."""
        for _ in range(count):
            reads.take_reads(1)
            self.now += 0.1

    def politeness(self):
        return Politeness(bound_s=0.05, every_s=EVERY_S, read=self.read, clock=self.clock)

    def reads(self, politeness, *pages):
        rates = Rates(BudgetSettings(), parts=lambda: 1)
        made = PoliteReads(rates, politeness, sleep=self.sleep)
        made.pages = pages
        return made


def test_one_page_each_five_seconds_in_turn_and_a_new_one_twice():
    bookies = Bookies(a=FAST, b=FAST, c=FAST)
    polite = bookies.politeness()
    for _ in range(500):
        polite.share([A, B, C])
        bookies.now += 0.1
    assert "".join(bookies.asked) == "aabbccabca"


def test_the_slowest_of_a_task_s_bookies_counts_and_others_do_not():
    bookies = Bookies(a=FAST, b=SLOW, c=FAST)
    polite = bookies.politeness()
    for _ in range(6):
        polite.share([A, B, C])
        bookies.now += EVERY_S
    assert polite.share([A, B]) == 0.5
    assert polite.share([A, C]) == 1
    assert polite.share([]) == 1


def test_a_page_that_is_silent_costs_one_look_a_minute_and_others_are_looked_at():
    bookies = Bookies(a=None, b=FAST)
    polite = bookies.politeness()
    for _ in range(int(UNREAD_AGAIN_S / EVERY_S)):
        assert polite.share([A, B]) == 1
        bookies.now += EVERY_S
    assert bookies.asked.count("a") == 1
    assert bookies.asked.count("b") == len(bookies.asked) - 1 > 5


def test_pages_that_are_all_silent_are_left_alone_for_a_minute():
    bookies = Bookies(a=None)
    polite = bookies.politeness()
    for _ in range(10):
        polite.share([A])
        bookies.now += EVERY_S
    assert bookies.asked == ["a"]


def test_what_nobody_looked_at_for_long_says_nothing():
    bookies = Bookies(a=SLOW, b=FAST)
    polite = bookies.politeness()
    polite.share([A])
    bookies.now += EVERY_S
    assert polite.share([A]) == 0.5
    bookies.now += FORGET_S
    polite.share([B])
    assert polite.share([A, B]) == 1


def test_nobody_waits_for_another_one_s_look():
    bookies, looking, done = Bookies(a=SLOW), threading.Event(), threading.Event()

    def slow_page(address):
        looking.set()
        done.wait(10)
        return bookies.read(address)

    polite = Politeness(bound_s=0.05, every_s=EVERY_S, read=slow_page, clock=bookies.clock)
    done.set()
    polite.share([A])
    bookies.now += EVERY_S
    looking.clear()
    done.clear()
    thread = threading.Thread(target=polite.share, args=([A],))
    thread.start()
    assert looking.wait(10)
    assert polite.share([A]) == 1  # what is known by now
    done.set()
    thread.join()
    assert polite.share([A]) == 0.5


def test_a_worker_reads_at_its_share_of_the_speed():
    """Each read takes 0.1 s while bookies are fast; at the floor its share is as many."""
    bookies = Bookies(a=FAST)
    reads = bookies.reads(bookies.politeness(), A)
    with reads.working():
        bookies.take(reads, 100)
        assert bookies.sleeps == []
        for number in range(900):
            bookies.pages[A] = replace(SLOW, p99_s=0.2 + number * 1e-6)
            bookies.take(reads, 1)
    late = bookies.sleeps[len(bookies.sleeps) // 2 :]
    assert late == pytest.approx([0.1 * (1 / SHARE_MIN - 1)] * len(late), rel=0.05)


def test_what_a_process_does_between_its_tasks_is_no_speed_of_reads():
    """Tasks of half a second, five seconds apart; reads of a share are not fewer for that."""
    bookies = Bookies(a=FAST)
    reads = bookies.reads(bookies.politeness(), A)

    def tasks(count):
        for _ in range(count):
            with reads.working():
                bookies.take(reads, 5)
            bookies.now += EVERY_S

    tasks(20)
    for number in range(20):
        bookies.pages[A] = replace(SLOW, p99_s=0.2 + number * 1e-6)
        tasks(1)
    late = bookies.sleeps[len(bookies.sleeps) // 2 :]
    assert len(late) > 20
    assert late == pytest.approx([0.1 * (1 / SHARE_MIN - 1)] * len(late), rel=0.05)


def test_tasks_side_by_side_count_their_time_once():
    bookies = Bookies(a=FAST)
    polite = bookies.politeness()
    with polite.working():
        for _ in range(40):
            with polite.working():
                polite.wait_s([], 2)
                bookies.now += 0.1
    assert polite._speed.most == pytest.approx(20.0, rel=0.05)


def test_a_topic_that_was_filled_and_is_quiet_now_is_read_at_full_speed():
    bookies = Bookies(a=SLOW)
    bookies.adds_per_s = 0.0
    reads = bookies.reads(bookies.politeness(), A)
    with reads.working():
        bookies.take(reads, 300)
    assert bookies.sleeps == []


def test_fast_bookies_and_switched_off_politeness_are_waited_for_by_nobody():
    bookies = Bookies(a=FAST)
    for politeness in (bookies.politeness(), None):
        reads = bookies.reads(politeness, A)
        for _ in range(100):
            bookies.now += 0.1
            assert reads.take_reads(1) == []
    assert bookies.sleeps == []


MB = 1_000_000


class Sending:
    """A worker that reads a block, and sends it as a store's client asks for it."""

    def __init__(self, bookies, politeness, **budget):
        self.bookies = bookies
        self.reads = bookies.reads(politeness, A)
        rates = Rates(
            BudgetSettings(**budget), parts=lambda: 1, clock=bookies.clock, sleep=bookies.sleep
        )
        self.sends = PoliteSends(rates, politeness, sleep=self.sleep)
        self.waits, self.largest = [], 0

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.bookies.now += seconds

    def blocks(self, count):
        """So many of 8 MB: 0.2 s of reading, then 0.2 s of sending."""
        for _ in range(count):
            with self.reads.working():
                self.bookies.take(self.reads, 2)
                left = 8 * MB
                while left:
                    allowed = self.sends.upload(left)
                    self.largest = max(self.largest, allowed)
                    self.bookies.now += 0.2 * allowed / (8 * MB)
                    left -= allowed


def slow_down(bookies, sending, blocks):
    for number in range(blocks):
        bookies.pages[A] = replace(SLOW, p99_s=0.2 + number * 1e-6)
        sending.blocks(1)


def test_what_was_read_at_a_share_is_sent_as_evenly_and_at_once_before():
    bookies = Bookies(a=FAST)
    sending = Sending(bookies, bookies.politeness())
    sending.sends.adopt([A])
    sending.blocks(50)
    assert (sending.waits, sending.largest) == ([], 8 * MB)
    slow_down(bookies, sending, 50)  # to the floor
    sending.waits.clear()
    sending.largest = 0
    slow_down(bookies, sending, 50)
    assert sending.largest == SENT_BYTES
    spaced = SENT_BYTES / (SHARE_MIN * SENDS_OVER_READS * 20 * MB)
    taken = 0.2 * SENT_BYTES / (8 * MB)
    assert median(sending.waits) == pytest.approx(spaced - taken, rel=0.05)
    assert len(sending.waits) > 0.8 * 50 * 8 * MB / SENT_BYTES


@pytest.mark.parametrize("who", ["nobody's pages", "no politeness"])
def test_what_no_bookie_is_read_for_is_sent_at_once(who):
    bookies = Bookies(a=FAST)
    politeness = bookies.politeness() if who == "nobody's pages" else None
    sending = Sending(bookies, politeness)
    if politeness is None:
        sending.sends.adopt([A])
    sending.blocks(50)
    slow_down(bookies, sending, 100)
    assert sending.waits == []
    assert not sending.sends.bounds_uploads()


def test_budgets_bound_what_is_sent_politely_too():
    bookies = Bookies(a=FAST)
    sending = Sending(bookies, bookies.politeness(), upload_bytes_per_s=MB)
    sending.sends.adopt([A])
    began = bookies.now
    sending.blocks(3)
    assert bookies.now - began > 3 * 8 * 0.9
    assert sending.sends.bounds_uploads()


def test_a_thread_adopts_pages_for_itself_alone():
    bookies = Bookies(a=FAST)
    sends = Sending(bookies, bookies.politeness()).sends
    thread = threading.Thread(target=sends.adopt, args=([A],))
    thread.start()
    thread.join()
    assert not sends.bounds_uploads()
