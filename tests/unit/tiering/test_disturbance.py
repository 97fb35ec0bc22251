from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.tiering.disturbance import Pending, sealed_by_us, worth_disturbing

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


def pending(ledger_id, *, size=1, age=HOUR):
    return Pending(ledger_id=ledger_id, bytes=size, closed_at=NOW - age)


def decide(waiting, *, ours=(), last=None, bytes_min=100, age_max=4 * HOUR):
    return worth_disturbing(
        waiting,
        ours=frozenset(ours),
        now=NOW,
        last_disturbed_at=last,
        bytes_min=bytes_min,
        age_max=age_max,
    )


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


def test_a_ledger_sealed_by_us_never_triggers_and_its_bytes_do_not_count():
    waiting = [pending(1, size=1000, age=9 * HOUR), pending(2, size=99)]
    assert not decide(waiting, ours={1})
    assert decide(waiting, ours={2})


def test_our_unload_sealed_the_first_ledger_closed_after_it_however_late_that_was_written():
    closed = {1: NOW - 9 * HOUR, 2: NOW - 3 * HOUR, 3: NOW - HOUR}
    assert sealed_by_us(closed, [NOW - 8 * HOUR]) == {2}
    assert sealed_by_us(closed, [NOW - 8 * HOUR, NOW - 2 * HOUR]) == {2, 3}
    assert sealed_by_us(closed, [NOW - HOUR / 2]) == frozenset()


def test_a_closing_time_slightly_before_our_record_is_still_ours():
    assert sealed_by_us({1: NOW - timedelta(seconds=4)}, [NOW]) == {1}
    assert sealed_by_us({1: NOW - timedelta(seconds=6)}, [NOW]) == frozenset()


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=8, unique=True))
def test_publishing_does_not_cause_publishing(minutes):
    """Each unload seals one ledger; however many there were, they alone never ask for another."""
    disturbed = [NOW - timedelta(minutes=m) for m in minutes]
    sealed = {i: at + timedelta(seconds=1) for i, at in enumerate(sorted(disturbed))}
    ours = sealed_by_us(sealed, disturbed)
    waiting = [Pending(ledger_id=i, bytes=10**12, closed_at=at) for i, at in sealed.items()]
    assert not decide(waiting, ours=ours, last=max(disturbed), bytes_min=1)
