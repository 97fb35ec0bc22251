"""The share of its time for which a task reads, by what bookies say: properties and a bookie that
answers to load.
"""

from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.bookkeeper.add_latency import AddLatency
from tiering_assets.tasks.polite_share import (
    FRESH_S,
    RECOVERY_S,
    SHARE_MIN,
    SPAN_S,
    UNREAD_AGAIN_S,
    UNREAD_MAX,
    BookiePace,
    Speed,
    fresh_for,
    look_every_s,
    may_look,
    next_pace,
    next_use,
)

BOUND_S = 0.05
SLOW, FAST = 0.2, 0.004


def seen(p99_s, *, count=0, total_s=0.0):
    return AddLatency(p99_s=p99_s, count=count, total_s=total_s)


def adding(looks):
    """The same, with a hundred adds between each two of them."""
    return [look and replace(look, count=10**9 + 100 * i) for i, look in enumerate(looks, 1)]


def follow(looks, pace=None, *, every_s=5.0):
    pace, now = pace or BookiePace(), 0.0
    for look in looks:
        now += every_s
        pace = next_pace(pace, look, now, bound_s=BOUND_S)
    return pace


figures = st.builds(
    AddLatency,
    p99_s=st.none() | st.floats(0, 100),
    count=st.integers(0, 10**9),
    total_s=st.floats(0, 10**6),
)


@given(looks=st.lists(st.none() | figures, max_size=60), every_s=st.floats(0, 10_000))
def test_the_share_stays_between_the_floor_and_the_whole(looks, every_s):
    pace = BookiePace()
    for number, look in enumerate(looks):
        pace = next_pace(pace, look, number * every_s, bound_s=BOUND_S)
        assert SHARE_MIN <= pace.share <= 1


@given(before=st.lists(st.none() | figures, max_size=30))
def test_whatever_was_seen_fast_adds_bring_the_whole_back_in_ten_minutes(before):
    fast = adding([seen(FAST)] * int(RECOVERY_S / 5 + 1))
    assert follow(fast, follow(before)).share == 1


@given(before=st.lists(st.none() | figures, max_size=30))
def test_whatever_was_seen_a_new_slow_window_halves_at_once(before):
    pace = follow(before)
    now, [first, second] = 1e6, adding([seen(FAST), seen(SLOW + 100)])
    waiting = next_pace(pace, first, now, bound_s=BOUND_S)
    after = next_pace(waiting, second, now + 5, bound_s=BOUND_S)
    assert after.share == max(SHARE_MIN, pace.share / 2)


def test_the_same_window_seen_again_halves_once_and_nothing_rises_meanwhile():
    assert follow(adding([seen(SLOW)] * 12)).share == 0.5
    assert follow(adding([seen(SLOW), seen(SLOW + 0.1), seen(SLOW + 0.2)])).share == SHARE_MIN


def test_one_look_alone_slows_nothing_however_old_the_one_before_it():
    """A window of a minute tells of a topic that was filled, and is quiet now."""
    assert follow(adding([seen(SLOW)])).share == 1
    idle = follow(adding([seen(FAST), seen(FAST)]))
    filled = next_pace(idle, seen(SLOW, count=10**10), 10 + FRESH_S + 1, bound_s=BOUND_S)
    assert (filled.share, filled.waits) == (1, True)
    quiet = next_pace(filled, seen(SLOW, count=10**10), 10 + FRESH_S + 3, bound_s=BOUND_S)
    assert (quiet.share, quiet.waits) == (1, False)
    busy = next_pace(filled, seen(SLOW, count=10**10 + 200), 10 + FRESH_S + 3, bound_s=BOUND_S)
    assert (busy.share, busy.waits) == (0.5, False)


def test_a_topic_filled_half_a_minute_ago_slows_nothing_but_looks_that_come_rarely_still_judge():
    assert FRESH_S < 30 < fresh_for(30.0)
    assert fresh_for(2.0) == FRESH_S
    looks = {"bound_s": BOUND_S, "fresh_s": fresh_for(30.0)}
    first = next_pace(BookiePace(), seen(SLOW, count=0), 1.0, **looks)
    assert next_pace(first, seen(SLOW, count=10**6), 31.0, **looks).share == 0.5


def test_a_look_after_long_keeps_what_was_known_until_the_next_one():
    slowed = follow(adding([seen(SLOW), seen(SLOW)]))
    later = next_pace(slowed, seen(FAST, count=10**10), 10 + FRESH_S + 1, bound_s=BOUND_S)
    assert (later.share, later.waits) == (0.5, True)


def test_looks_that_failed_in_between_do_not_make_few_adds_many():
    first = follow([seen(SLOW, count=0)])
    missed = next_pace(first, None, 10.0, bound_s=BOUND_S)
    assert next_pace(missed, seen(SLOW, count=5), 11.0, bound_s=BOUND_S).share == 1


def test_at_the_bound_nothing_is_slowed():
    assert follow([seen(BOUND_S)]).share == 1


def test_the_mean_since_the_last_look_is_known_before_the_next_window():
    """Ten adds of 20 ms on average; exponential waits with that mean have a p99 of 92 ms."""
    first = seen(FAST, count=1000, total_s=2.0)
    assert follow([first, seen(FAST, count=1010, total_s=2.2)]).share == 0.5
    assert follow([first, seen(FAST, count=1010, total_s=2.1)]).share == 1


def test_a_bookie_that_was_started_anew_has_no_mean():
    before = seen(FAST, count=1000, total_s=2.0)
    assert follow([before, seen(None, count=10, total_s=90.0)]).share == 1


def test_without_adds_there_is_nobody_to_be_polite_to():
    assert follow(adding([seen(SLOW), seen(SLOW), seen(None)])).share > 0.5
    assert follow(adding([seen(SLOW), seen(SLOW)])).share == 0.5
    assert follow([seen(SLOW), seen(SLOW)]).share == 1
    assert follow([seen(SLOW), seen(SLOW, count=4)]).share == 1
    assert follow([seen(SLOW), seen(SLOW, count=5)]).share == 0.5


def test_an_unknown_figure_slows_nothing_and_never_raises_a_share():
    assert follow([None] * 10).share == 1
    slowed = follow(adding([seen(SLOW), seen(SLOW + 0.1), seen(SLOW + 0.2)]))
    for silent in range(1, UNREAD_MAX):
        assert follow([None] * silent, slowed).share == slowed.share
    assert follow([None] * UNREAD_MAX, slowed).share == 1
    assert (
        follow([None] * (UNREAD_MAX - 1) + [seen(SLOW, count=2 * 10**9)] + [None], slowed).share < 1
    )


def test_a_silent_page_is_asked_again_after_a_while_and_a_known_one_always():
    silent = next_pace(BookiePace(), None, 100.0, bound_s=BOUND_S)
    assert not may_look(silent, 100.0 + UNREAD_AGAIN_S - 1)
    assert may_look(silent, 100.0 + UNREAD_AGAIN_S)
    assert may_look(next_pace(BookiePace(), seen(FAST), 100.0, bound_s=BOUND_S), 100.0)
    assert may_look(BookiePace(at=-inf), 0.0)


@pytest.mark.parametrize(("spenders", "looks_per_s"), [(1, 0.5), (20, 10), (100, 10), (5000, 10)])
def test_all_spenders_together_look_ten_times_a_second_at_most(spenders, looks_per_s):
    assert spenders / look_every_s(spenders) == pytest.approx(looks_per_s)


@pytest.mark.parametrize("knee", [0.3, 0.5, 0.7, 0.9])
def test_it_settles_around_the_load_that_the_bookie_bears(knee):
    """A queue: adds take 4 ms / (1 - load), told once a minute, and we are the load."""
    pace, shares, window = BookiePace(), [], seen(None)
    for step in range(2880):
        if step % 12 == 0:
            load = min(0.99, pace.share / knee * 0.9)
            window = seen(0.004 / (1 - load) + step * 1e-9)
        pace = next_pace(pace, replace(window, count=step * 100), step * 5.0, bound_s=BOUND_S)
        shares.append(pace.share)
    late = shares[720:]
    mean = sum(late) / len(late)
    assert max(SHARE_MIN, knee / 2) <= mean <= min(1.0, knee * 1.3)


READ_S = 0.01


def reads_done(share_at, seconds, speed=None, *, burst=1, gap_s=0.0):
    """Times at which reads began: each takes READ_S. A part has `burst` of them; sending it takes
    `gap_s` longer than they do, while the next one is read.
    """
    speed, now, begun = speed or Speed(), 1000.0, []
    until, free = now + seconds, 0.0
    while now < until:
        speed = next_use(speed, now, worked_s=now - 1000.0, count=1, share=share_at(now - 1000.0))
        begun.append(speed.begins)
        now = speed.begins + READ_S
        if len(begun) % burst == 0:
            now = max(now, free)
            free = now + burst * READ_S + gap_s
    return begun


@pytest.mark.parametrize("share", [SHARE_MIN, 0.5, 0.8])
@pytest.mark.parametrize(("burst", "gap_s"), [(1, 0.0), (8, 0.3), (8, 0.7)])
def test_a_share_is_of_what_a_process_reads_without_it(share, burst, gap_s):
    """Whether reads take all of the time, or uploads most of it."""
    whole = len(reads_done(lambda _at: 1.0, 120.0, burst=burst, gap_s=gap_s))
    begun = reads_done(lambda at: 1.0 if at < 30 else share, 150.0, burst=burst, gap_s=gap_s)
    slowed = sum(at >= 1030.0 for at in begun)
    assert share * 0.9 <= slowed / whole <= share * 1.4


def test_reads_are_spread_evenly():
    begun = reads_done(lambda at: 1.0 if at < 10 else 0.5, 30.0)
    spaces = [b - a for a, b in pairwise(begun) if a > 1011.0]
    assert spaces == pytest.approx([2 * READ_S] * len(spaces), rel=0.01)


def test_a_process_that_begins_beside_slow_adds_is_slowed_once_it_knows_its_speed():
    begun = reads_done(lambda _at: SHARE_MIN, 60.0)
    early = sum(at < 1000.0 + SPAN_S for at in begun)
    assert early == pytest.approx(SPAN_S / READ_S, rel=0.01)
    assert (len(begun) - early) / (60.0 - SPAN_S) == pytest.approx(SHARE_MIN / READ_S, rel=0.01)


def test_reads_of_all_threads_are_one_queue():
    speed = Speed(most=100.0)
    begins = []
    for _ in range(10):
        speed = next_use(speed, 1.0, worked_s=1.0, count=1, share=0.5)
        begins.append(speed.begins)
    assert begins == pytest.approx([1.0 + 0.02 * i for i in range(10)])
