"""The share of its time for which a task reads, by what bookies say: properties and a bookie that
answers to load.
"""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.bookkeeper.add_latency import AddLatency
from tiering_assets.tasks.polite_share import (
    BUSY_S_MAX,
    SHARE_MIN,
    UNREAD_AGAIN_S,
    UNREAD_MAX,
    BookiePace,
    look_every_s,
    may_look,
    next_pace,
    pause_s,
)

BOUND_S = 0.05
SLOW, FAST = 0.2, 0.004


def seen(p99_s, *, count=0, total_s=0.0):
    return AddLatency(p99_s=p99_s, count=count, total_s=total_s)


def adding(looks):
    """The same, with an add between each two of them."""
    return [look and replace(look, count=10**9 + i) for i, look in enumerate(looks, 1)]


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
        assert 0 <= pause_s(pace.share, number * every_s) <= BUSY_S_MAX * (1 / SHARE_MIN - 1)


@given(before=st.lists(st.none() | figures, max_size=30))
def test_whatever_was_seen_fast_adds_bring_the_whole_back_in_two_minutes(before):
    fast = adding([seen(FAST)] * 25)
    assert follow(fast, follow(before)).share == 1


@given(before=st.lists(st.none() | figures, max_size=30))
def test_whatever_was_seen_a_new_slow_window_halves_at_once(before):
    pace = follow(before)
    after = follow(adding([seen(SLOW + 100)]), pace)
    assert after.share == max(SHARE_MIN, pace.share / 2)


def test_the_same_window_seen_again_halves_once_and_nothing_rises_meanwhile():
    assert follow(adding([seen(SLOW)] * 12)).share == 0.5
    assert follow(adding([seen(SLOW), seen(SLOW + 0.1)])).share == 0.25


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
    assert follow(adding([seen(SLOW), seen(None)])).share > 0.5
    assert follow(adding([seen(SLOW), seen(SLOW)])).share == 0.5
    assert follow([seen(SLOW), seen(SLOW)]).share == 1


def test_an_unknown_figure_slows_nothing_and_never_raises_a_share():
    assert follow([None] * 10).share == 1
    slowed = follow(adding([seen(SLOW), seen(SLOW + 0.1)]))
    for silent in range(1, UNREAD_MAX):
        assert follow([None] * silent, slowed).share == slowed.share
    assert follow([None] * UNREAD_MAX, slowed).share == 1
    assert follow([None] * (UNREAD_MAX - 1) + [seen(SLOW, count=2)] + [None], slowed).share < 1


def test_a_silent_page_is_asked_again_after_a_while_and_a_known_one_always():
    silent = next_pace(BookiePace(), None, 100.0, bound_s=BOUND_S)
    assert not may_look(silent, 100.0 + UNREAD_AGAIN_S - 1)
    assert may_look(silent, 100.0 + UNREAD_AGAIN_S)
    assert may_look(next_pace(BookiePace(), seen(FAST), 100.0, bound_s=BOUND_S), 100.0)
    assert may_look(BookiePace(at=-inf), 0.0)


@pytest.mark.parametrize(("spenders", "looks_per_s"), [(1, 0.2), (50, 10), (100, 10), (5000, 10)])
def test_all_spenders_together_look_ten_times_a_second_at_most(spenders, looks_per_s):
    assert spenders / look_every_s(spenders) == pytest.approx(looks_per_s)


@pytest.mark.parametrize("knee", [0.3, 0.5, 0.7, 0.9])
def test_it_settles_around_the_load_that_the_bookie_bears(knee):
    """A queue: adds take 4 ms / (1 - load), told once a minute, and we are the load."""
    pace, shares, window = BookiePace(), [], seen(None)
    for step in range(720):
        if step % 12 == 0:
            load = min(0.99, pace.share / knee * 0.9)
            window = seen(0.004 / (1 - load) + step * 1e-9)
        pace = next_pace(pace, replace(window, count=step), step * 5.0, bound_s=BOUND_S)
        shares.append(pace.share)
    late = shares[360:]
    mean = sum(late) / len(late)
    assert max(SHARE_MIN, knee / 2) <= mean <= min(1.0, knee * 1.3)
