"""What a scrub run takes up: by properties over any fleet and any budget."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.scrub.plan import (
    BLOCK_BYTES_LEAST,
    LOOK_REQUESTS,
    Candidate,
    Depth,
    DueLook,
    Intervals,
    RunBudget,
    due_looks,
    plan_scrub,
    to_heal,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MIB = 1 << 20
INTERVALS = Intervals(shallow_s=3600, deep_s=86400)
times = st.none() | st.integers(-7200, 400_000).map(lambda s: NOW - timedelta(seconds=s))


@st.composite
def fleets(draw):
    fleet = []
    for ledger_id in range(draw(st.integers(0, 12))):
        deep, shallow = draw(times), draw(times)
        fleet.append(
            Candidate(
                ledger_id=ledger_id,
                uid=UUID(int=ledger_id + 1),
                ml_name="public/default/persistent/t",
                object_bytes=draw(st.integers(0, 200 * MIB)),
                certified=draw(st.booleans()),
                in_bookkeeper=draw(st.booleans()),
                published_at_ms=draw(st.integers(0, 5)),
                shallow_at=max((t for t in (deep, shallow) if t), default=None),
                deep_at=deep,
                failed_at=draw(st.none() | times),
            )
        )
    return fleet


budgets = st.builds(
    RunBudget,
    requests=st.integers(0, 200),
    bytes=st.integers(0, 500 * MIB),
    range_bytes=st.integers(64 * 1024, 16 * MIB),
)


def plan(fleet, budget, now=NOW, intervals=INTERVALS):
    return plan_scrub(fleet, now=now, intervals=intervals, budget=budget)


@given(fleets(), budgets)
def test_everything_due_is_taken_or_deferred_and_nothing_else(fleet, budget):
    found = plan(fleet, budget)
    healed = {c.ledger_id for c in found.heal}
    due = {
        (c.ledger_id, depth)
        for c in fleet
        for depth in Depth
        if c.ledger_id not in healed
        and (
            (last := c.last(depth)) is None
            or not 0 <= (NOW - last).total_seconds() < INTERVALS.of(depth)
        )
    }
    taken = [(look.candidate.ledger_id, look.depth) for look in (*found.looks, *found.deferred)]
    assert len(taken) == len(set(taken))
    assert set(taken) == due
    assert healed == {c.ledger_id for c in fleet if c.failing and c.in_bookkeeper}


@given(fleets(), budgets)
def test_budgets_hold_but_for_the_reads_of_one_block(fleet, budget):
    found = plan(fleet, budget)
    assert found.bytes <= budget.bytes
    assert found.requests <= max(0, budget.requests) + 2
    assert sum(look.bytes_max for look in found.looks) == found.bytes
    for look in found.looks:
        assert look.bytes_max <= look.candidate.object_bytes
        assert look.depth is Depth.DEEP or look.bytes_max == 0


@given(fleets(), budgets)
def test_of_one_depth_the_oldest_verification_comes_first(fleet, budget):
    found = plan(fleet, budget)
    for depth in Depth:
        last = [look.candidate.last(depth) for look in found.looks if look.depth is depth]
        known = [at for at in last if at is not None]
        assert last[: len(last) - len(known)] == [None] * (len(last) - len(known))
        past = [at for at in known if at <= NOW]
        assert past == sorted(past)


@given(fleets())
def test_a_deep_look_is_never_passed_over_for_one_behind_it(fleet):
    """A ledger larger than the budget is taken in parts, not starved by the small ones."""
    budget = RunBudget(requests=100, bytes=MIB, range_bytes=MIB)
    found = plan(fleet, budget)
    first = next(
        (
            look
            for look in due_looks(
                [c for c in fleet if c not in found.heal], now=NOW, intervals=INTERVALS
            )
            if look.depth is Depth.DEEP
        ),
        None,
    )
    deep = [look for look in found.looks if look.depth is Depth.DEEP]
    if first is not None and deep:
        assert deep[0].candidate == first.candidate
        assert all(look.whole for look in deep[:-1])


@given(fleets(), st.integers(1, 60), st.integers(1, 30 * MIB))
def test_runs_with_small_budgets_reach_everything_in_the_end(fleet, requests, size):
    """Each run records what it did with the store's time; no ledger waits for ever."""
    budget = RunBudget(requests=LOOK_REQUESTS + requests, bytes=size, range_bytes=8 * MIB)
    fleet = [replace(c, failed_at=None) for c in fleet]
    progress = dict.fromkeys((c.ledger_id for c in fleet), 0)
    now = NOW
    long = Intervals(shallow_s=1e9, deep_s=1e9)
    for _run in range(12_000):
        found = plan(fleet, budget, now, long)
        if not found.looks:
            break
        now += timedelta(seconds=1)
        by_id = {c.ledger_id: c for c in fleet}
        for look in found.looks:
            c = by_id[look.candidate.ledger_id]
            if look.depth is Depth.DEEP:
                progress[c.ledger_id] += max(look.bytes_max, min(c.object_bytes, BLOCK_BYTES_LEAST))
                if progress[c.ledger_id] >= c.object_bytes:
                    c = replace(c, deep_at=now, shallow_at=now)
            else:
                c = replace(c, shallow_at=now)
            by_id[c.ledger_id] = c
        fleet = [*by_id.values()]
    assert plan(fleet, budget, now, long).deferred == ()
    assert all(c.deep_at is not None for c in fleet)


@given(fleets())
def test_the_longest_published_is_healed_first(fleet):
    times = [c.published_at_ms for c in to_heal(fleet)]
    assert times == sorted(times)


@given(budgets, st.integers(0, 10**9))
def test_what_is_admitted_needs_no_more_reads_than_are_left(budget, size):
    candidate = Candidate(
        ledger_id=1,
        uid=UUID(int=1),
        ml_name="a/b/persistent/c",
        object_bytes=size,
        certified=True,
        in_bookkeeper=True,
        published_at_ms=0,
        shallow_at=None,
        deep_at=None,
        failed_at=None,
    )
    admitted = budget.admit(DueLook(candidate=candidate, depth=Depth.DEEP))
    if admitted is None:
        assert budget.requests <= LOOK_REQUESTS or budget.bytes <= 0
    else:
        assert budget.estimate(admitted) <= budget.requests + 2
        assert admitted.whole == (admitted.bytes_max == size)


# ----- the same by example


ONE = Candidate(
    ledger_id=1,
    uid=UUID(int=1),
    ml_name="public/default/persistent/t",
    object_bytes=10 * MIB,
    certified=True,
    in_bookkeeper=True,
    published_at_ms=0,
    shallow_at=NOW - timedelta(hours=1),
    deep_at=NOW - timedelta(days=2),
    failed_at=None,
)
DEEP, SHALLOW = (
    DueLook(candidate=ONE, depth=Depth.DEEP),
    DueLook(candidate=ONE, depth=Depth.SHALLOW),
)


def budget(requests, bytes_):
    return RunBudget(requests=requests, bytes=bytes_, range_bytes=MIB)


@pytest.mark.parametrize(
    ("look", "left", "admitted"),
    [
        (SHALLOW, budget(LOOK_REQUESTS, 0), True),
        (SHALLOW, budget(LOOK_REQUESTS - 1, 9 * MIB), False),
        (DEEP, budget(LOOK_REQUESTS + 1, 1), True),
        (DEEP, budget(LOOK_REQUESTS, 9 * MIB), False),
        (DEEP, budget(99, 0), False),
    ],
)
def test_a_look_is_admitted_while_requests_and_bytes_are_left(look, left, admitted):
    found = left.admit(look)
    assert (found is not None) is admitted
    if look is SHALLOW and found is not None:
        assert found.bytes_max == 0


def test_each_depth_has_its_own_last_look_and_a_failure_counts_for_both():
    assert (ONE.last(Depth.SHALLOW), ONE.last(Depth.DEEP)) == (ONE.shallow_at, ONE.deep_at)
    failed = replace(ONE, failed_at=NOW)
    assert failed.last(Depth.SHALLOW) == failed.last(Depth.DEEP) == NOW


def test_only_a_broken_copy_whose_ledger_bookies_have_can_be_healed():
    broken = replace(ONE, failed_at=NOW)
    assert to_heal([ONE, broken, replace(broken, ledger_id=2, in_bookkeeper=False)]) == (broken,)
