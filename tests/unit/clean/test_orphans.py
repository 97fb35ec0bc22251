from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.clean.orphans import LeavingsEvidence, Sweep, decide_sweep
from tiering_assets.ground.reasons import NotNow, not_now

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GUARD = timedelta(hours=24)
TICK = timedelta(microseconds=1)
UID = UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a")
OTHER = UUID("317fad33-457f-4d7d-8c56-29d2d4e6f21e")
READY = LeavingsEvidence(
    ledger_id=42,
    uid=UID,
    attempt_stored_at=NOW - 2 * GUARD,
    store_now=NOW,
    contexts=frozenset({OTHER}),
    outcome=None,
    release_intended=False,
    claimed_live=False,
    listed=True,
    in_bookkeeper=True,
    proven=False,
    waits=False,
    served=False,
)
ONLY_COPY = "its topic lists the ledger and BookKeeper does not have it: it may be the only copy"
SINGLE_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"release_intended": True}, "a release was intended from it: it may be the only copy"),
    ({"contexts": None}, "the topic's metadata could not be read"),
    ({"contexts": frozenset({OTHER, UID})}, "an offload context names it"),
    ({"in_bookkeeper": False}, ONLY_COPY),
    ({"outcome": "publish"}, "it won the right to be published"),
    ({"waits": True}, "it is proven, and its publication waits"),
    ({"claimed_live": True}, "a run holds a live claim on the ledger"),
    (
        {"attempt_stored_at": NOW - GUARD},  # exactly the guard age
        "younger than the guard age (1 day, 0:00:00 of 1 day, 0:00:00)",
    ),
    (
        {"store_now": NOW - 3 * GUARD},  # the store's clock stepped back
        "younger than the guard age (-1 day, 0:00:00 of 1 day, 0:00:00)",
    ),
]


LET_GO = {
    "context",
    "doubted",
    "listed",
    "served",
    "proven",
    "replaced_at",
    "never_stood_since",
}  # and never keep by themselves


def decide(evidence):
    return decide_sweep(evidence, guard_age=GUARD)


@pytest.mark.parametrize("outcome", [None, "abandon"])
@pytest.mark.parametrize("contexts", [frozenset(), frozenset({OTHER})])
def test_what_nothing_refers_to_is_swept(outcome, contexts):
    evidence = replace(READY, outcome=outcome, contexts=contexts)
    assert decide(evidence) == Sweep(42, UID, unserved=True)


@pytest.mark.parametrize("known", [{"listed": False}, {"served": True}])
def test_bookies_need_not_give_what_nobody_lists_or_what_is_read_from_the_store(known):
    assert decide(replace(READY, **known)) == Sweep(42, UID, unserved=False)


@pytest.mark.parametrize(("change", "reason"), SINGLE_CHANGES)
def test_one_condition_is_enough_to_keep(change, reason):
    assert decide(replace(READY, **change)) == not_now(reason)


def test_every_field_of_the_evidence_can_keep():
    assert {name for change, _reason in SINGLE_CHANGES for name in change} == {
        field.name for field in fields(LeavingsEvidence)
    } - {"ledger_id", "uid", *LET_GO}


def test_a_ledger_that_bookkeeper_lost_may_go_once_its_topic_has_let_go_or_is_served():
    lost = replace(READY, in_bookkeeper=False)
    assert decide(replace(lost, listed=False)) == Sweep(42, UID)
    served = replace(lost, served=True, context=OTHER)
    assert decide(served) == Sweep(42, UID, read_alone=OTHER)
    assert decide(replace(served, in_bookkeeper=True)) == Sweep(42, UID)
    assert decide(replace(served, doubted=True)) == Sweep(42, UID)
    assert decide(replace(served, listed=False)) == Sweep(42, UID)
    assert decide(replace(lost, served=True, proven=True)) == not_now(ONLY_COPY)


def test_a_decision_stands_on_more_when_something_is_to_be_read_that_was_not():
    plain, bookies = Sweep(42, UID), Sweep(42, UID, unserved=True)
    copy, another = Sweep(42, UID, read_alone=OTHER), Sweep(42, UID, read_alone=UID)
    every = [plain, bookies, copy, another]
    assert [one.stands_on_more_than(plain) for one in every] == [False, True, True, True]
    assert [one.stands_on_more_than(bookies) for one in every] == [False, False, True, True]
    assert [one.stands_on_more_than(copy) for one in every] == [False, True, False, True]


@pytest.mark.parametrize(
    "change", [{"listed": False}, {"outcome": "abandon"}], ids=["trimmed", "given up"]
)
def test_a_proven_copy_waits_only_while_it_may_be_published(change):
    unserved = change.get("listed", True)
    assert decide(replace(READY, waits=True, **change)) == Sweep(42, UID, unserved=unserved)


@pytest.mark.parametrize("ended", ["replaced_at", "never_stood_since"])
def test_what_won_stays_until_something_sound_has_taken_its_place(ended):
    change: dict[str, Any] = {ended: NOW - 2 * GUARD}
    won = replace(PUBLISHED_ONCE, **change)
    assert isinstance(decide(won), Sweep)
    assert "nothing sound has taken its place" in str(decide(replace(won, served=False)))
    assert isinstance(decide(replace(won, served=False, listed=False)), Sweep)


def test_what_won_and_never_stood_goes_an_hour_or_the_guard_age_after_its_quarantine():
    def at(age):
        return decide(replace(PUBLISHED_ONCE, never_stood_since=NOW - age))

    assert at(GUARD + TICK) == Sweep(42, UID, replaced=True)
    assert str(at(GUARD)).startswith("quarantined, never read, 1 day, 0:00:00 ago")


def test_the_moment_after_the_guard_age_sweeps():
    assert decide(replace(READY, attempt_stored_at=NOW - GUARD - TICK)) == Sweep(
        42, UID, unserved=True
    )


def test_a_release_intent_is_told_before_anything_else():
    """It is the one reason that never goes away by waiting."""
    worst = READY
    for change, _reason in reversed(SINGLE_CHANGES):
        worst = replace(worst, **change)
    assert decide(worst) == not_now(SINGLE_CHANGES[0][1])


@given(changes=st.lists(st.sampled_from([change for change, _reason in SINGLE_CHANGES])))
def test_swept_only_if_every_condition_holds(changes):
    evidence = READY
    for change in changes:
        evidence = replace(evidence, **change)
    assert (decide(evidence) == Sweep(42, UID, unserved=True)) is (evidence == READY)


@given(age_s=st.integers(-(10**7), 10**7))
def test_the_age_is_the_stores_alone(age_s):
    stored_at = NOW - timedelta(seconds=age_s)
    swept = isinstance(decide(replace(READY, attempt_stored_at=stored_at)), Sweep)
    assert swept is (age_s > GUARD.total_seconds())


PUBLISHED_ONCE = replace(READY, outcome="publish", served=True)


@pytest.mark.parametrize(
    ("guard", "kept"),
    [(timedelta(seconds=1), timedelta(hours=1)), (timedelta(hours=2), timedelta(hours=2))],
)
def test_a_replaced_attempt_goes_an_hour_or_the_guard_age_after_its_replacement(guard, kept):
    def at(age):
        evidence = replace(PUBLISHED_ONCE, replaced_at=NOW - age)
        return decide_sweep(evidence, guard_age=guard)

    assert at(kept + TICK) == Sweep(42, UID, replaced=True)
    for age in (kept, timedelta(0), -kept):
        decision = at(age)
        assert isinstance(decision, NotNow)
        assert str(decision).startswith(f"replaced {age} ago; brokers may still read it")


@pytest.mark.parametrize(
    "change",
    [
        change
        for change, _reason in SINGLE_CHANGES
        if not change.keys() & {"outcome", "waits", "in_bookkeeper"}
    ],
    ids=str,
)
def test_nothing_but_the_outcome_is_forgiven_a_replaced_attempt(change):
    evidence = replace(PUBLISHED_ONCE, replaced_at=NOW - 2 * GUARD)
    assert isinstance(decide(evidence), Sweep)
    assert isinstance(decide(replace(evidence, **change)), NotNow)
