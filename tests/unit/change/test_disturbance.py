from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.change.disturbance import (
    Patience,
    Pending,
    Recent,
    publication_due_at,
    sealed_by_us,
    why_left_alone,
)
from tiering_assets.ground.reasons import Reason
from tiering_assets.resources.pulsar.activity import TopicActivity
from tiering_assets.resources.settings import DisturbSettings

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def pending(ledger_id, *, size=1, age=HOUR):
    return Pending(ledger_id=ledger_id, bytes=size, closed_at=NOW - age)


def decide(waiting, *, ours=(), last=None, bytes_min=100, age_max=4 * HOUR, idle_tail=24 * HOUR):
    due_at = publication_due_at(
        waiting,
        ours=frozenset(ours),
        last_disturbed_at=last,
        patience=Patience(bytes_min=bytes_min, age_max=age_max, idle_tail=idle_tail),
    )
    return due_at is not None and due_at <= NOW


def test_nothing_pending_is_no_reason():
    assert not decide([], bytes_min=0, age_max=timedelta(0))


@pytest.mark.parametrize(("sizes", "expected"), [([99], False), ([100], True), ([50, 50], True)])
def test_enough_bytes_together_are_a_reason(sizes, expected):
    assert decide([pending(i, size=size) for i, size in enumerate(sizes)]) is expected


@pytest.mark.parametrize(("age", "expected"), [(4 * HOUR, True), (4 * HOUR - HOUR / 60, False)])
def test_an_old_ledger_is_a_reason(age, expected):
    assert decide([pending(1, age=age)]) is expected


@pytest.mark.parametrize(("ago", "expected"), [(4 * HOUR, True), (HOUR, False)])
def test_an_old_ledger_waits_since_our_last_disturbance(ago, expected):
    assert decide([pending(1, age=9 * HOUR)], last=NOW - ago) is expected


@pytest.mark.parametrize(("ago", "expected"), [(24 * HOUR, True), (24 * HOUR - HOUR / 60, False)])
def test_a_tail_asks_for_one_reload_long_after_our_last_disturbance(ago, expected):
    tail = pending(2, size=10**9, age=30 * HOUR)
    assert decide([tail], ours={2}, last=NOW - ago) is expected


def test_a_short_patience_with_tails_hurries_no_other_ledger():
    assert not decide([pending(1, age=2 * HOUR)], idle_tail=HOUR)
    assert decide([pending(1, age=2 * HOUR), pending(2)], ours={2}, idle_tail=HOUR)


def test_a_ledger_sealed_by_us_does_not_trigger_as_others_do_and_its_bytes_do_not_count():
    waiting = [pending(1, size=1000, age=9 * HOUR), pending(2, size=99)]
    assert not decide(waiting, ours={1})
    assert decide(waiting, ours={2})


def sealed(closed, published):
    return sealed_by_us(closed, published, within=MINUTE, clocks_apart=timedelta(seconds=5))


def test_our_unload_sealed_what_was_closed_soon_after_each_publication():
    closed = {1: NOW - 9 * HOUR, 2: NOW - 3 * HOUR, 3: NOW - HOUR}
    assert sealed(closed, [NOW - 3 * HOUR - MINUTE / 2]) == {2}
    assert sealed(closed, [NOW - 3 * HOUR - MINUTE / 2, NOW - HOUR]) == {2, 3}
    assert sealed(closed, [NOW - 2 * HOUR]) == frozenset()  # one closed an hour later is a rollover
    assert sealed(closed, []) == frozenset()


@pytest.mark.parametrize(
    ("after_s", "ours"), [(-6, False), (-5, True), (0, True), (65, True), (66, False)]
)
def test_clocks_may_be_a_little_apart_at_both_ends(after_s, ours):
    closed = {1: NOW + timedelta(seconds=after_s)}
    assert sealed(closed, [NOW]) == ({1} if ours else set())


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=8, unique=True))
def test_publishing_does_not_cause_publishing(minutes):
    """Each unload seals one ledger; however many there were, they alone ask for one a day at
    most.
    """
    disturbed = [NOW - timedelta(minutes=m) for m in minutes]
    closed = {i: at + timedelta(seconds=1) for i, at in enumerate(sorted(disturbed))}
    ours = sealed(closed, disturbed)
    waiting = [Pending(ledger_id=i, bytes=10**12, closed_at=at) for i, at in closed.items()]
    a_day_ago = min(minutes) >= 24 * 60
    assert decide(waiting, ours=ours, last=max(disturbed), bytes_min=1) is a_day_ago


QUIET = TopicActivity(consumers=0, delayed_messages=0, transactions=0)
RARELY = Recent(topic=0, broker=0, cluster=0)
LIMITS = DisturbSettings(
    consumers_max=3,
    delayed_messages_max=2,
    transactions_max=0,
    per_topic_hour_max=2,
    per_broker_hour_max=4,
    per_cluster_hour_max=8,
)


@pytest.mark.parametrize(
    ("field", "most", "setting"),
    [
        ("consumers", 3, "disturb.consumers_max is 3"),
        ("delayed_messages", 2, "disturb.delayed_messages_max is 2"),
        ("transactions", 0, "disturb.transactions_max is 0"),
    ],
)
def test_a_topic_busier_than_its_limit_is_left_alone(field, most, setting):
    assert why_left_alone(replace(QUIET, **{field: most}), RARELY, LIMITS) is None
    wait = why_left_alone(replace(QUIET, **{field: most + 1}), RARELY, LIMITS)
    assert wait is not None
    assert wait.reason is Reason.LEFT_ALONE
    assert setting in wait.detail
    assert f"{most + 1} " in wait.detail


@pytest.mark.parametrize(
    ("field", "budget", "setting"),
    [
        ("topic", 2, "disturb.per_topic_hour_max = 2"),
        ("broker", 4, "disturb.per_broker_hour_max = 4"),
        ("cluster", 8, "disturb.per_cluster_hour_max = 8"),
    ],
)
def test_a_spent_budget_makes_the_topic_wait(field, budget, setting):
    assert why_left_alone(QUIET, replace(RARELY, **{field: budget - 1}), LIMITS) is None
    wait = why_left_alone(QUIET, replace(RARELY, **{field: budget}), LIMITS)
    assert wait is not None
    assert wait.reason is Reason.OVER_BUDGET
    assert setting in wait.detail


def test_what_the_broker_does_not_tell_is_not_taken_for_quiet():
    wait = why_left_alone(None, RARELY, LIMITS)
    assert wait is not None
    assert wait.reason is Reason.LEFT_ALONE


def test_an_unknown_broker_has_no_budget_of_its_own():
    assert why_left_alone(QUIET, replace(RARELY, broker=None), LIMITS) is None
