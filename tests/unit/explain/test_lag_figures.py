"""Figures against sums written out here, over fleets that hypothesis draws."""

from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.figures.lag_figures import PLACES, Counted
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.explain.reasons.backlog_reason import BacklogReason as R
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.states import LedgerState as S

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def at(age_s):
    return NOW - timedelta(seconds=age_s)


def ledger(reason=R.NOT_ADMITTED, state=S.SEALED, **changes):
    return Counted(
        **{
            "topic": "persistent://t/ns/orders",
            "namespace": "t/ns",
            "reason": reason,
            "state": state,
            "bytes": 10,
            "closed_at": at(100),
            "due_at": None,
            "certified": False,
            **changes,
        }
    )


def figures(*ledgers, **changes):
    return count_figures(ledgers, **{"disturbances_last_hour": 0, "now": NOW, **changes})


@st.composite
def fleets(draw):
    namespaces = st.sampled_from(["t/a", "t/b", "u/a"])
    ages = st.none() | st.integers(-50, 10**6).map(at)
    return [
        ledger(
            draw(st.sampled_from(BacklogReason)),
            draw(st.sampled_from(LedgerState)),
            topic=f"persistent://{(namespace := draw(namespaces))}/{draw(st.integers(0, 3))}",
            namespace=namespace,
            bytes=draw(st.integers(0, 2**40)),
            closed_at=draw(ages),
            due_at=draw(ages),
            certified=draw(st.booleans()),
        )
        for _ in range(draw(st.integers(0, 30)))
    ]


@given(fleets())
def test_topics_and_namespaces_add_up_to_the_total_and_to_the_backlogs_counts(fleet):
    found = figures(*fleet)
    for parts in (found.topics.values(), found.namespaces.values()):
        for name in ("ledgers", "bytes", "stuck", "offloaded", "verified"):
            assert sum(getattr(part, name) for part in parts) == getattr(found.total, name)
        for lag in ("copy_lag", "delete_lag"):
            whole = getattr(found.total, lag)
            assert sum(getattr(part, lag).ledgers for part in parts) == whole.ledgers
            assert sum(getattr(part, lag).bytes for part in parts) == whole.bytes
            oldest = max((getattr(part, lag).oldest_s for part in parts), default=0.0)
            assert oldest == whole.oldest_s >= 0
        by_reason: Counter[BacklogReason] = Counter()
        for part in parts:
            by_reason.update({row.reason: row.ledgers for row in part.reasons})
        assert by_reason == {row.reason: row.ledgers for row in found.total.reasons}
        by_state = Counter[LedgerState]()
        for part in parts:
            by_state.update({row.state: row.ledgers for row in part.states})
        assert by_state == {row.state: row.ledgers for row in found.total.states}
    assert found.total.ledgers == len(fleet)


@given(fleets())
def test_ledgers_that_are_alike_count_as_each_of_them_would(fleet):
    alike = defaultdict(list)
    for one in fleet:
        alike[replace(one, bytes=0, closed_at=None, due_at=None)].append(one)
    groups = [
        replace(
            one,
            bytes=sum(x.bytes for x in some),
            closed_at=min((x.closed_at for x in some if x.closed_at is not None), default=None),
            due_at=min((x.due_at for x in some if x.due_at is not None), default=None),
            ledgers=len(some),
        )
        for one, some in alike.items()
    ]
    assert figures(*groups) == figures(*fleet)


@given(fleets())
def test_no_ledger_is_in_both_lags(fleet):
    for one in fleet:
        total = figures(one).total
        assert total.copy_lag.ledgers + total.delete_lag.ledgers <= 1
        assert total.verified <= total.offloaded <= 1


def test_every_reason_has_its_place():
    assert set(PLACES) == set(BacklogReason)


def test_the_page_shows_the_same_places():
    page = (Path(__file__).parents[3] / "docs/metrics.md").read_text(encoding="utf-8")
    told: dict[BacklogReason, list[bool]] = {}
    for line in page.partition("| reason |")[2].partition("\n\n")[0].splitlines()[2:]:
        words, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        places = [bool(cell) for cell in cells]
        told |= {BacklogReason(word): places for word in words.split(", ")}
    assert told == {r: [p.copy, p.delete, p.stuck] for r, p in PLACES.items()}


NO_LAG = {
    R.OPEN,
    R.BELOW_THRESHOLD,
    R.EXCLUDED,
    R.DISABLED,
    R.PAUSED,
    R.IN_LAG,
    R.HELD,
    R.EXPIRED,
    R.DONE,
    R.PUBLISHED_BY_BROKER,
}


@pytest.mark.parametrize("reason", sorted(NO_LAG))
def test_what_policy_does_not_want_now_is_no_lag_and_not_stuck(reason):
    for state in LedgerState:
        total = figures(ledger(reason, state)).total
        assert (total.copy_lag.ledgers, total.delete_lag.ledgers, total.stuck) == (0, 0, 0)


@pytest.mark.parametrize("reason", sorted(set(BacklogReason) - NO_LAG))
def test_every_other_reason_is_a_lag_of_one_kind_or_the_other(reason):
    place = PLACES[reason]
    assert place.copy or place.delete
    assert figures(ledger(reason, S.SEALED)).total.copy_lag.ledgers == place.copy
    assert figures(ledger(reason, S.RELEASE_DUE)).total.delete_lag.ledgers == place.delete
    assert figures(ledger(reason, S.SEALED)).total.stuck == place.stuck


def test_copy_lag_is_what_no_broker_reads_from_the_bucket_yet():
    found = figures(
        ledger(R.FAILED, S.SEALED, bytes=1, closed_at=at(50)),
        ledger(R.WAITING_TO_DISTURB, S.VERIFIED, bytes=2, closed_at=at(70)),
        ledger(R.BELOW_THRESHOLD, S.SEALED, bytes=4, closed_at=at(900)),
        ledger(R.UNSAFE, S.PUBLISHED, bytes=8, closed_at=at(800)),  # brokers read it already
        ledger(R.UNSAFE, S.RELEASED, bytes=16, closed_at=at(800)),
        ledger(R.UNSAFE, S.UNSAFE, bytes=32, closed_at=at(60)),  # lost, and wanted nevertheless
    ).total
    assert (found.copy_lag.ledgers, found.copy_lag.bytes, found.copy_lag.oldest_s) == (3, 35, 70)
    assert found.stuck == 4


def test_delete_lag_is_what_is_due_and_still_there_since_when_it_was_due():
    found = figures(
        ledger(R.NOT_ADMITTED, S.RELEASE_DUE, bytes=1, due_at=at(5)),
        ledger(R.CAPPED, S.RELEASE_DUE, bytes=2, due_at=at(9)),
        ledger(R.UNCONFIRMED, S.RELEASING, bytes=4, due_at=at(7)),
        ledger(R.IN_LAG, S.PUBLISHED, bytes=8, due_at=at(-60)),
        ledger(R.HELD, S.HELD, bytes=16, due_at=at(1000)),
        ledger(R.UNCONFIRMED, S.PUBLISHED, bytes=32, due_at=None),  # its lag does not run
        ledger(R.DONE, S.RELEASED, bytes=64, due_at=at(2000)),
    ).total
    assert (found.delete_lag.ledgers, found.delete_lag.bytes) == (3, 7)
    assert found.delete_lag.oldest_s == 9
    assert found.copy_lag.ledgers == 0


def test_the_verified_share_is_of_what_brokers_read_and_unknown_without_any():
    found = figures(
        ledger(R.DONE, S.RELEASED, certified=True),
        ledger(R.IN_LAG, S.PUBLISHED, certified=True),
        ledger(R.UNSAFE, S.PUBLISHED),
        ledger(R.WAITING_TO_DISTURB, S.VERIFIED, certified=True),  # no broker reads it
    )
    assert found.total.verified_share == pytest.approx(2 / 3)
    assert figures().total.verified_share is None


def test_clocks_that_differ_make_no_negative_age():
    assert figures(ledger(closed_at=at(-30))).total.copy_lag.oldest_s == 0
