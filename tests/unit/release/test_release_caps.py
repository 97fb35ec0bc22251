from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.release.caps import Caps, DueLedger, apply_caps, tripwire

NOW = datetime(2026, 1, 2, tzinfo=UTC)
WIDE = Caps(per_run=99, per_hour=99, per_topic=99, per_bookie=99)


def candidate(ledger_id, *, topic="a", bookies=("b1", "b2"), age_h=0):
    return DueLedger(
        ledger_id=ledger_id,
        ml_name=topic,
        published_at=NOW - timedelta(hours=age_h),
        bookies=frozenset(bookies),
    )


def caps(**changes):
    return Caps(**{"per_run": 99, "per_hour": 99, "per_topic": 99, "per_bookie": 99, **changes})


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (caps(per_run=2), "release.per_run_max = 2"),
        (caps(per_topic=2), "release.per_topic_run_max = 2"),
        (caps(per_bookie=2), "release.per_bookie_run_max = 2 for b1, b2"),
        (caps(per_hour=7), "release.per_hour_max = 7, 5 were released in the last hour"),
    ],
)
def test_each_cap_lets_the_oldest_go_and_names_itself(limit, said):
    waiting = [candidate(1, age_h=1), candidate(2, age_h=3), candidate(3, age_h=2)]
    assert apply_caps(waiting, limit, last_hour=5) == {1: f"capped: {said}"}


def test_a_full_bookie_does_not_hold_up_ledgers_elsewhere():
    waiting = [
        candidate(1, bookies=["b1"], age_h=3),
        candidate(2, bookies=["b1"], age_h=2),
        candidate(3, bookies=["b2"], age_h=1),
    ]
    assert [*apply_caps(waiting, caps(per_bookie=1, per_run=2), last_hour=0)] == [2]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sets(st.sampled_from(["b1", "b2", "b3", "b4"]), min_size=1),
            st.integers(0, 9),
        ),
        max_size=30,
    ),
    st.tuples(*[st.integers(0, 6)] * 4),
    st.integers(0, 4),
)
def test_no_cap_is_ever_exceeded_and_none_holds_back_without_need(found, limits, last_hour):
    run, hour, topic, bookie = limits
    waiting = [candidate(i, topic=t, bookies=b, age_h=a) for i, (t, b, a) in enumerate(found)]
    limit = Caps(per_run=run, per_hour=hour, per_topic=topic, per_bookie=bookie)
    capped = apply_caps(waiting, limit, last_hour=last_hour)
    going = [one for one in waiting if one.ledger_id not in capped]
    assert len(going) <= run
    assert not going or len(going) + last_hour <= hour
    for name in "abc":
        assert sum(one.ml_name == name for one in going) <= topic
    for name in ("b1", "b2", "b3", "b4"):
        assert sum(name in one.bookies for one in going) <= bookie
    for one in waiting:  # whoever waits would have broken a cap at the end
        if one.ledger_id in capped:
            more = [*going, one]
            assert (
                len(more) > run
                or len(more) + last_hour > hour
                or sum(m.ml_name == one.ml_name for m in more) > topic
                or any(sum(b in m.bookies for m in more) > bookie for b in one.bookies)
            )


@pytest.mark.parametrize(
    ("ledgers", "fleet", "trips"),
    [(100, 100, False), (101, 101, True), (101, 1010, False), (101, 1009, True), (0, 0, False)],
)
def test_the_tripwire_needs_many_ledgers_and_a_large_share(ledgers, fleet, trips):
    said = tripwire(ledgers, fleet=fleet, share_max=0.1)
    assert (said is not None) is trips
    if said is not None:
        assert f"{ledgers} of {fleet}" in said
