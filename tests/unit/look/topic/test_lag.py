from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.ground.evidence import lag_elapsed

T = datetime(2026, 1, 2, tzinfo=UTC)
LAG = timedelta(hours=4)
TICK = timedelta(microseconds=1)
STEP = timedelta(days=365)
spans = st.timedeltas(min_value=timedelta(days=-900), max_value=timedelta(days=900))


def elapsed(*, ours, stores, lag=LAG):
    """`ours` and `stores` are the publication's ages by either clock."""
    return lag_elapsed(lag=lag, recorded_at=T, now=T + ours, stored_at=T, store_now=T + stores)


@pytest.mark.parametrize(
    ("ours", "stores", "expected"),
    [
        (LAG + TICK, LAG + TICK, True),
        (LAG, LAG, False),  # exactly the lag is not past it
        (LAG, LAG + TICK, False),
        (LAG + TICK, LAG, False),
        (STEP, timedelta(0), False),  # our clock stepped forward
        (timedelta(0), STEP, False),  # the store's did
        (-STEP, 2 * LAG, False),  # ours stepped back
        (2 * LAG, -STEP, False),  # the store's did
    ],
)
def test_both_clocks_must_have_passed_the_lag(ours, stores, expected):
    assert elapsed(ours=ours, stores=stores) is expected


@given(true_age=spans, ours_off=spans, stores_off=spans)
def test_one_wrong_clock_never_releases_before_the_lag(true_age, ours_off, stores_off):
    assert not (true_age <= LAG and elapsed(ours=true_age + ours_off, stores=true_age))
    assert not (true_age <= LAG and elapsed(ours=true_age, stores=true_age + stores_off))


@given(ours=spans, stores=spans, lag=spans)
def test_waiting_longer_never_takes_the_answer_back(ours, stores, lag):
    if elapsed(ours=ours, stores=stores, lag=lag):
        assert elapsed(ours=ours + LAG, stores=stores + LAG, lag=lag)
