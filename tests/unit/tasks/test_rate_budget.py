"""Shares of a rate: whatever arrives when, no 10 s see more than the part of the budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import BudgetSettings
from tiering_assets.tasks.rate_budget import (
    NAMES,
    REREAD_REQUESTS,
    WINDOW_S,
    Bucket,
    Limit,
    Rate,
    limit_of,
    smallest_rate,
    wanted_rates,
)

SETTINGS = BudgetSettings()
MIB = 1024 * 1024
KINDS = st.sampled_from(Rate)


def some_limit(name: str, rate: int, settings: BudgetSettings, *, parts: int) -> Limit:
    """The limit of a rate that is one."""
    limit = limit_of(name, rate, settings, parts=parts)
    assert limit is not None
    return limit


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
    limit = some_limit(kind.value, rate, SETTINGS, parts=parts)
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
        "meanwhile": st.integers(0, 60),  # further ones of a whole step, until the answer is there
        "restart": st.sampled_from([False, False, False, True]),
    }
)


def taken_at(bucket, amount, now):
    """Wait as told, take, and tell when."""
    while (wait := bucket.wait_s(amount, now)) > 0:
        now += max(wait, 1e-6)
    bucket.take(amount, now)
    return now


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
    limits = [some_limit(kind.value, int(rate), SETTINGS, parts=parts) for rate in rates]
    bucket, now, spent = Bucket(limits[0], 0.0), 0.0, []
    for action in actions:
        now += action["pause_s"]
        limit = limits[action["budget"]]
        if action["restart"]:  # a new process in the place of the one before
            bucket = Bucket(limit, now)
        bucket.set_limit(limit, now)
        amount = max(1, int(action["size"] * limit.step))
        began = now = taken_at(bucket, amount, now)
        for _ in range(action["meanwhile"]):
            # What does not fit beside what is held would be let through as an older budget's.
            if limit.burst - bucket.held < limit.step:
                break
            now = taken_at(bucket, limit.step, now)
            bucket.settle(limit.step, limit.step, now)
            spent.append((now, now, limit.step))
        now = max(now, began + action["for_s"])
        actual = max(1, int(amount * action["spent"]))
        bucket.settle(amount, actual, now)
        spent.append((began, now, actual))
    assert most_in_a_window(spent) <= part_of(max(rates), parts, kind) + 1e-3


@given(
    st.integers(2, 30),
    st.lists(st.integers(1, 12), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.7, 4.0]),
)
def test_reads_that_are_on_their_way_together_hold_the_window_too(times, widths, answer_s):
    """Many answers of unknown size at once: what was taken for them comes back later."""
    rate = times * smallest_rate("bookie_read_bytes_per_s", SETTINGS, parts=1)
    limit = some_limit("bookie_read_bytes_per_s", rate, SETTINGS, parts=1)
    bucket, now, spent = Bucket(limit, 0.0), 0.0, []
    for width in widths:
        count = max(1, min(width, int(limit.burst // limit.step)))
        began = now = taken_at(bucket, count * limit.step, now)
        for _ in range(count):
            now += answer_s
            bucket.settle(limit.step, limit.step, now)
            spent.append((began, now, limit.step))
    assert most_in_a_window(spent) <= rate * WINDOW_S + 1e-3


@given(st.integers(1, 40), st.floats(3.0, 30.0))
def test_a_busy_spender_gets_most_of_its_part(parts, times):
    rate = int(smallest_rate("upload_bytes_per_s", SETTINGS, parts=parts) * times)
    limit = some_limit("upload_bytes_per_s", rate, SETTINGS, parts=parts)
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


def test_a_slow_answer_leaves_no_room_that_it_may_still_need():
    """Held until it came: else a full bucket would be spent in the window of its last byte."""
    least = smallest_rate("bookie_read_bytes_per_s", SETTINGS, parts=1)
    limit = some_limit("bookie_read_bytes_per_s", least, SETTINGS, parts=1)
    bucket = Bucket(limit, 0.0)
    began = taken_at(bucket, limit.step, 0.0)
    bucket.settle(limit.step, limit.step, began + 30)
    assert bucket.wait_s(limit.step, began + 30) > WINDOW_S


def test_it_begins_with_nothing():
    limit = some_limit("upload_bytes_per_s", MIB, SETTINGS, parts=1)
    assert Bucket(limit, 50.0).wait_s(1, 50.0) > 0


def test_a_smaller_budget_counts_at_once_and_its_first_bytes_come_from_nothing_saved():
    large, small = (
        some_limit("upload_bytes_per_s", rate, SETTINGS, parts=1) for rate in (100 * MIB, MIB)
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
        some_limit("bookie_read_bytes_per_s", rate, SETTINGS, parts=1)
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
