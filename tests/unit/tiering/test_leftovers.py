from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.tiering.leftovers import (
    Collect,
    Leave,
    LeftoverEvidence,
    Note,
    decide_leftover,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GUARD = timedelta(hours=24)
DEAD = LeftoverEvidence(
    ledger_id=42,
    uid=UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a"),
    named_unfinished=True,
    named_complete=False,
    noted_at=NOW - 2 * GUARD,
    last_sent_at=NOW - 3 * GUARD,
    store_now=NOW,
    listed=True,
    in_bookkeeper=True,
    never_touched=None,
)
SINGLE_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"named_complete": True}, "finished it"),
    ({"never_touched": "a system topic"}, "a system topic"),
    ({"listed": False}, "may be the only copy"),
    ({"in_bookkeeper": False}, "may be the only copy"),
    ({"noted_at": NOW - GUARD}, "may be at work"),
    ({"last_sent_at": NOW - GUARD}, "is at work"),
    ({"store_now": NOW - 3 * GUARD}, "may be at work"),
]


def decide(evidence):
    return decide_leftover(evidence, guard_age=GUARD)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("sent", [None, NOW - 2 * GUARD])
def test_what_a_dead_broker_left_is_taken_out_and_collected(named, sent):
    evidence = replace(DEAD, named_unfinished=named, last_sent_at=sent)
    assert decide(evidence) == Collect(take_out=named)


def test_the_first_sight_is_only_noted():
    assert decide(replace(DEAD, noted_at=None)) == Note()


@pytest.mark.parametrize(("change", "reason"), SINGLE_CHANGES)
def test_one_condition_is_enough_to_leave_it(change, reason):
    found = decide(replace(DEAD, **change))
    assert isinstance(found, Leave)
    assert reason in found.reason


def test_every_fact_can_leave_it():
    facts = {f.name for f in fields(LeftoverEvidence)} - {"ledger_id", "uid", "named_unfinished"}
    assert {name for change, _reason in SINGLE_CHANGES for name in change} == facts


@given(
    st.builds(
        LeftoverEvidence,
        ledger_id=st.just(1),
        uid=st.just(DEAD.uid),
        named_unfinished=st.booleans(),
        named_complete=st.booleans(),
        noted_at=st.none() | st.datetimes(timezones=st.just(UTC)),
        last_sent_at=st.none() | st.datetimes(timezones=st.just(UTC)),
        store_now=st.datetimes(timezones=st.just(UTC)),
        listed=st.booleans(),
        in_bookkeeper=st.booleans(),
        never_touched=st.none() | st.just("no"),
    )
)
def test_nothing_goes_while_it_may_be_the_only_copy_or_in_use(evidence):
    if isinstance(decide(evidence), Collect):
        assert evidence.listed
        assert evidence.in_bookkeeper
        assert not evidence.named_complete
        assert evidence.noted_at is not None
        assert evidence.store_now - evidence.noted_at > GUARD
