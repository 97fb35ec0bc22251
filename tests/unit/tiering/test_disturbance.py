from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.tiering.disturbance import Pending, worth_disturbing

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
LIMIT = 1000


def pending(*, size=1, age=HOUR, ledger_id=1):
    return Pending(ledger_id=ledger_id, bytes=size, closed_at=NOW - age)


def worth(*found, last=None, before=()):
    return worth_disturbing(
        found,
        now=NOW,
        last_disturbed_at=None if last is None else NOW - last,
        bytes_min=LIMIT,
        age_max=4 * HOUR,
        disturbed_before=[NOW - age for age in before],
    )


def test_nothing_pending_is_no_reason():
    assert not worth()
    assert not worth(last=1000 * HOUR)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((999,), False), ((1000,), True), ((500, 499), False), ((500, 500), True)],
)
def test_enough_bytes_together_are_a_reason(sizes, expected):
    assert worth(*(pending(size=size) for size in sizes)) is expected


@pytest.mark.parametrize(
    ("age", "expected"), [(4 * HOUR - SECOND, False), (4 * HOUR, True), (5 * HOUR, True)]
)
def test_an_old_ledger_is_a_reason(age, expected):
    assert worth(pending(age=age)) is expected
    assert worth(pending(age=age), pending(age=SECOND)) is expected


@pytest.mark.parametrize(
    ("last", "expected"), [(1 * HOUR, False), (4 * HOUR - SECOND, False), (4 * HOUR, True)]
)
def test_an_old_ledger_waits_since_our_last_disturbance(last, expected):
    assert worth(pending(age=9 * HOUR), last=last) is expected


@pytest.mark.parametrize("off", [-5 * SECOND, timedelta(0), 5 * SECOND])
def test_a_ledger_sealed_by_our_own_unload_never_triggers(off):
    assert not worth(pending(size=10 * LIMIT, age=99 * HOUR + off), last=99 * HOUR)


@pytest.mark.parametrize("off", [-6 * SECOND, 6 * SECOND])
def test_a_ledger_sealed_at_another_time_does(off):
    assert worth(pending(size=LIMIT, age=99 * HOUR + off), last=99 * HOUR)


def test_a_ledger_sealed_by_an_earlier_unload_of_ours_never_triggers():
    """A publication sealed it, a release followed: else the two would go on for ever."""
    sealed = pending(size=10 * LIMIT, age=20 * HOUR)
    assert not worth(sealed, last=10 * HOUR, before=[20 * HOUR])
    assert worth(sealed, last=10 * HOUR, before=[30 * HOUR])


def test_the_bytes_of_our_own_ledger_do_not_count():
    own = pending(size=LIMIT, age=HOUR)
    assert not worth(own, pending(size=LIMIT - 1, age=HOUR / 2), last=HOUR)
    assert worth(own, pending(size=LIMIT, age=HOUR / 2), last=HOUR)


@given(
    ages=st.lists(st.integers(0, 100_000), max_size=5),
    disturbed=st.lists(st.integers(0, 100_000), min_size=1, max_size=3),
)
def test_ledgers_sealed_by_us_alone_never_trigger(ages, disturbed):
    """However many there are: every one of them is dated by one of our unloads."""
    spans = sorted(timedelta(seconds=s) for s in disturbed)
    own = [
        pending(size=10 * LIMIT, age=spans[age % len(spans)], ledger_id=i)
        for i, age in enumerate(ages)
    ]
    assert not worth(*own, last=spans[0], before=spans[1:])
