from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.figures.lag_figures import Counted
from tiering_assets.explain.figures.objectives import ObjectiveLevel, decide_objectives, worst_level
from tiering_assets.explain.reasons.backlog_reason import BacklogReason as R
from tiering_assets.look.ledger.states import LedgerState as S
from tiering_assets.resources.settings import ObjectiveSettings

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NONE = ObjectiveSettings(copy_lag_age_s_max=0, delete_lag_age_s_max=0)


def fleet(*ledgers):
    """Ledgers as (topic, reason, state, bytes, age in seconds)."""
    return count_figures(
        [
            Counted(
                topic=f"persistent://t/ns/{topic}",
                namespace="t/ns",
                reason=reason,
                state=state,
                bytes=size,
                closed_at=NOW - timedelta(seconds=age_s),
                due_at=NOW - timedelta(seconds=age_s),
                certified=False,
            )
            for topic, reason, state, size, age_s in ledgers
        ],
        disturbances_last_hour=0,
        now=NOW,
    )


LAGGING = fleet(
    ("orders", R.NOT_ADMITTED, S.SEALED, 60, 500),
    ("payments", R.FAILED, S.SEALED, 40, 900),
    ("payments", R.CAPPED, S.RELEASE_DUE, 7, 300),
)


def test_without_objectives_nothing_is_judged():
    assert decide_objectives(LAGGING, NONE) == ()
    assert worst_level(()) is ObjectiveLevel.MET


def test_a_deployment_that_sets_none_is_told_of_lags_of_more_than_a_day():
    day_s = 24 * 3600
    found = decide_objectives(LAGGING, ObjectiveSettings())
    assert {one.figure: one.limit for one in found} == {
        "copy_lag_age_s": day_s,
        "delete_lag_age_s": day_s,
    }


@pytest.mark.parametrize(
    ("limit", "level"),
    [
        (99, ObjectiveLevel.ERROR),
        (100, ObjectiveLevel.WARN),  # a maximum may be reached
        (125, ObjectiveLevel.WARN),
        (126, ObjectiveLevel.MET),
    ],
)
def test_the_limit_is_an_error_beyond_it_and_a_warning_near_it(limit, level):
    [found] = decide_objectives(LAGGING, replace(NONE, copy_lag_bytes_max=limit))
    assert (found.figure, found.level, found.found, found.limit) == (
        "copy_lag_bytes",
        level,
        100,
        limit,
    )


def test_every_objective_names_value_limit_and_worst_topics():
    found = decide_objectives(
        LAGGING,
        ObjectiveSettings(
            copy_lag_bytes_max=50, copy_lag_age_s_max=1000, delete_lag_age_s_max=9999, stuck_max=1
        ),
    )
    assert [str(one) for one in found] == [
        "copy_lag_bytes is 100, beyond objectives.copy_lag_bytes_max = 50; "
        "most in persistent://t/ns/orders",
        "copy_lag_age_s is 900, near objectives.copy_lag_age_s_max = 1000; "
        "most in persistent://t/ns/payments",
        "delete_lag_age_s is 300, within objectives.delete_lag_age_s_max = 9999; "
        "most in persistent://t/ns/payments",
        "stuck is 1, near objectives.stuck_max = 1; most in persistent://t/ns/payments",
    ]
    assert [(one.topic, one.found) for one in found[0].worst] == [
        ("persistent://t/ns/orders", 60),
        ("persistent://t/ns/payments", 40),
    ]
    assert worst_level(found) is ObjectiveLevel.ERROR


def test_an_empty_fleet_meets_everything():
    everything = ObjectiveSettings(
        copy_lag_bytes_max=1, copy_lag_age_s_max=0.1, delete_lag_age_s_max=0.1, stuck_max=1
    )
    assert {one.level for one in decide_objectives(fleet(), everything)} == {ObjectiveLevel.MET}


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.01, 1.0))
def test_a_higher_limit_is_never_harder_to_meet(limit, more, warn_at):
    def level(maximum):
        [found] = decide_objectives(
            LAGGING, replace(NONE, copy_lag_bytes_max=maximum, warn_at=warn_at)
        )
        return found.level

    assert level(limit + more) <= level(limit)


def test_no_more_than_five_topics_are_named():
    many = fleet(*((f"t{i:02}", R.FAILED, S.SEALED, 1, i) for i in range(9)))
    [found] = decide_objectives(many, replace(NONE, copy_lag_age_s_max=1))
    assert [one.found for one in found.worst] == [8, 7, 6, 5, 4]
