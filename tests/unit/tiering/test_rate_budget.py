"""Shares of a rate: whatever arrives when, no 10 s see more than the part of the budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from resources.errors import SettingsError
from resources.settings import BudgetSettings
from tiering_assets.tiering.rate_budget import (
    NAMES,
    REREAD_REQUESTS,
    WINDOW_S,
    Bucket,
    Rate,
    limit_of,
    smallest_rate,
    wanted_rates,
)

SETTINGS = BudgetSettings()
MIB = 1024 * 1024
KINDS = st.sampled_from(Rate)


def part_of(rate, parts, kind):
    """What one part may spend in 10 s, by the budget's own words."""
    return rate * WINDOW_S / parts - (REREAD_REQUESTS if kind is Rate.REQUESTS else 0)


def most_in_a_window(spent):
    """The largest sum of operations (began, ended, amount) that any 10 s touch.

    An operation's bytes may cross at any time between its two ends; a window that holds most begins
    just before one of them ended.
    """
    return max(
        (
            sum(amount for began, ended, amount in spent if ended >= start > began - WINDOW_S)
            for start in (ended for _, ended, _ in spent)
        ),
        default=0.0,
    )


@given(KINDS, st.integers(1, 64), st.floats(1.0, 200.0))
def test_burst_and_refill_fill_the_part_and_no_more(kind, parts, times):
    rate = int(smallest_rate(kind.value, SETTINGS, parts=parts) * times)
    limit = limit_of(kind.value, rate, SETTINGS, parts=parts)
    assert limit.step <= limit.burst
    assert 0 < limit.refill <= rate / parts
    aside = limit.step if kind is Rate.UPLOAD else 0
    assert limit.burst + WINDOW_S * limit.refill + aside == pytest.approx(
        part_of(rate, parts, kind)
    )


@given(KINDS, st.integers(1, 64))
def test_what_is_refused_names_a_rate_that_is_not(kind, parts):
    least = smallest_rate(kind.of_topic, SETTINGS, parts=parts)
    assume(least > 1)
    assert limit_of(kind.of_topic, least, SETTINGS, parts=parts) is not None
    with pytest.raises(SettingsError, match=f"{kind.of_topic}.* at least {least}"):
        limit_of(kind.of_topic, least - 1, SETTINGS, parts=parts)


def test_zero_is_no_bound():
    assert limit_of("upload_bytes_per_s", 0, SETTINGS, parts=6) is None
    bucket = Bucket(None, 0.0)
    assert bucket.wait_s(1e12, 0.0) == 0.0


ACTIONS = st.fixed_dictionaries(
    {
        "pause_s": st.sampled_from([0.0, 0.001, 0.3, 2.0, 9.0, 30.0]),
        "budget": st.integers(0, 2),
        "size": st.floats(0, 1),  # of the most that may be taken at once
        "for_s": st.sampled_from([0.0, 0.01, 1.0, 12.0]),  # until the answer is there
        "spent": st.floats(0, 1),  # of what was taken
        "restart": st.sampled_from([False, False, False, True]),
    }
)


@given(
    KINDS,
    st.integers(1, 12),
    st.lists(st.floats(1.0, 50.0), min_size=3, max_size=3),
    st.lists(ACTIONS, max_size=40),
)
def test_no_window_holds_more_than_the_part_whatever_arrives_when(kind, parts, times, actions):
    """Random sizes, pauses, slow answers, changed budgets, and a restart every now and then."""
    least = smallest_rate(kind.value, SETTINGS, parts=parts)
    rates = [least * each for each in times]
    limits = [limit_of(kind.value, int(rate), SETTINGS, parts=parts) for rate in rates]
    bucket, now, spent = Bucket(limits[0], 0.0), 0.0, []
    for action in actions:
        now += action["pause_s"]
        limit = limits[action["budget"]]
        if action["restart"]:  # a new process in the place of the one before
            bucket = Bucket(limit, now)
            assert bucket.wait_s(1, now) > 0  # it begins with nothing
        bucket.set_limit(limit, now)
        amount = max(1, int(action["size"] * limit.step))
        while (wait := bucket.wait_s(amount, now)) > 0:
            now += max(wait, 1e-6)
        bucket.take(amount, now)
        began, now = now, now + action["for_s"]
        actual = max(1, int(amount * action["spent"]))
        bucket.settle(amount, actual, now)
        spent.append((began, now, actual))
    assert most_in_a_window(spent) <= part_of(max(rates), parts, kind) + 1e-3


@given(st.integers(2, 30), st.lists(st.integers(1, 12), min_size=1, max_size=30))
def test_reads_that_are_on_their_way_together_hold_the_window_too(times, widths):
    """Many answers of unknown size at once: what was taken for them comes back later."""
    rate = times * smallest_rate("bookie_read_bytes_per_s", SETTINGS, parts=1)
    limit = limit_of("bookie_read_bytes_per_s", rate, SETTINGS, parts=1)
    bucket, now, spent = Bucket(limit, 0.0), 0.0, []
    for width in widths:
        count = max(1, min(width, int(limit.burst // limit.step)))
        while (wait := bucket.wait_s(count * limit.step, now)) > 0:
            now += max(wait, 1e-6)
        bucket.take(count * limit.step, now)
        began = now
        for _ in range(count):
            now += 0.7
            bucket.settle(limit.step, limit.step, now)
            spent.append((began, now, limit.step))
    assert most_in_a_window(spent) <= rate * WINDOW_S + 1e-3


@given(st.integers(1, 40), st.floats(3.0, 30.0))
def test_a_busy_spender_gets_most_of_its_part(parts, times):
    rate = int(smallest_rate("upload_bytes_per_s", SETTINGS, parts=parts) * times)
    limit = limit_of("upload_bytes_per_s", rate, SETTINGS, parts=parts)
    bucket, now, spent = Bucket(limit, 0.0), 0.0, 0
    while now < 100.0:
        wait = bucket.wait_s(limit.step, now)
        if wait > 0:
            now += wait
            continue
        bucket.take(limit.step, now)
        bucket.settle(limit.step, limit.step, now)
        spent += limit.step
    assert spent >= 0.6 * 100 * rate / parts
    if rate / parts > MIB:
        assert spent >= 0.9 * 100 * rate / parts


def test_a_smaller_budget_counts_at_once_and_its_first_bytes_come_from_nothing_saved():
    large, small = (
        limit_of("upload_bytes_per_s", rate, SETTINGS, parts=1) for rate in (100 * MIB, MIB)
    )
    bucket = Bucket(large, 0.0)
    assert bucket.wait_s(large.step, 100.0) == 0.0
    bucket.set_limit(small, 100.0)
    assert bucket.level <= small.burst
    bucket.set_limit(None, 100.0)
    assert bucket.wait_s(1e9, 100.0) == 0.0
    bucket.set_limit(small, 200.0)  # what was sent in between was not counted
    assert bucket.wait_s(small.step, 200.0) > 0


def test_what_a_larger_budget_began_does_not_wait_for_ever():
    large, small = (
        limit_of("bookie_read_bytes_per_s", rate, SETTINGS, parts=1)
        for rate in (100 * MIB, 2 * MIB)
    )
    bucket = Bucket(large, 0.0)
    bucket.take(20 * MIB, 10.0)
    bucket.set_limit(small, 10.0)
    assert bucket.wait_s(20 * MIB, 10.0) < WINDOW_S * 100
    bucket.settle(20 * MIB, 20 * MIB, 11.0)
    assert 0 < bucket.wait_s(small.step, 11.0) < 60


def test_a_record_beats_settings_where_it_says_something():
    settings = replace(SETTINGS, upload_bytes_per_s=5, topic_store_requests_per_s=6)
    found = wanted_rates(settings, {"upload_bytes_per_s": 0, "topic_store_requests_per_s": None})
    assert found == dict.fromkeys(NAMES, 0) | {"topic_store_requests_per_s": 6}
