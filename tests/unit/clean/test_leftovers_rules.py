from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.clean.leftovers_rules import (
    Collect,
    LeftoverEvidence,
    Note,
    decide_leftover,
    take_out_unfinished,
)
from tiering_assets.clean.orphans import REPLACED_KEPT
from tiering_assets.ground.reasons import NotNow
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.metastore.ledger_info import decode_managed_ledger

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
REPLACED = replace(
    DEAD,
    named_unfinished=False,
    noted_at=None,
    damaged=True,
    replaced_at=NOW - 2 * GUARD,
    served=True,
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


OF_REPLACED: list[tuple[dict[str, Any], str]] = [
    ({"named_complete": True}, "finished it"),
    ({"never_touched": "a system topic"}, "a system topic"),
    ({"listed": False}, "may be the only copy"),
    ({"replaced_at": None}, "no copy of ours has taken its place"),
    ({"replaced_at": NOW - GUARD}, "with a sweep after 2026-01-02 00:00:00Z"),
    ({"served": False, "in_bookkeeper": False}, "may be all that is left"),
    ({"last_sent_at": NOW - GUARD}, "is at work"),
    ({"damaged": False, "noted_at": NOW - GUARD}, "may be at work"),
    ({"store_now": NOW - 3 * GUARD}, "with a sweep after"),
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


@pytest.mark.parametrize(
    "alive", [{}, {"served": False}, {"in_bookkeeper": False}, {"last_sent_at": None}]
)
def test_a_broken_copy_in_whose_place_ours_is_read_is_collected(alive):
    assert decide(replace(REPLACED, **alive)) == Collect(take_out=False)


@pytest.mark.parametrize("guard", [timedelta(0), REPLACED_KEPT / 2])
def test_brokers_may_read_what_was_replaced_for_an_hour_however_short_the_guard_age(guard):
    young = replace(REPLACED, replaced_at=NOW - REPLACED_KEPT)
    assert isinstance(decide_leftover(young, guard_age=guard), NotNow)
    assert isinstance(
        decide_leftover(replace(young, store_now=NOW + GUARD), guard_age=guard), Collect
    )


@pytest.mark.parametrize(
    ("was", "change", "reason"),
    [
        *((DEAD, *one) for one in SINGLE_CHANGES),
        *((REPLACED, *one) for one in OF_REPLACED),
        (replace(REPLACED, noted_at=NOW - GUARD), {"named_unfinished": True}, "may be at work"),
    ],
)
def test_one_condition_is_enough_to_leave_it(was, change, reason):
    found = decide(replace(was, **change))
    assert isinstance(found, NotNow)
    assert reason in str(found)


def test_every_fact_can_leave_it():
    facts = {f.name for f in fields(LeftoverEvidence)} - {"ledger_id", "uid", "named_unfinished"}
    assert {name for change, _ in [*SINGLE_CHANGES, *OF_REPLACED] for name in change} == facts


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
        damaged=st.booleans(),
        replaced_at=st.none() | st.datetimes(timezones=st.just(UTC)),
        served=st.booleans(),
    )
)
def test_nothing_goes_while_it_may_be_the_only_copy_or_in_use(evidence):
    if isinstance(decide(evidence), Collect):
        assert evidence.listed
        assert not evidence.named_complete
        replaced = evidence.damaged and not evidence.named_unfinished
        assert evidence.in_bookkeeper or (replaced and evidence.served)
        since = evidence.replaced_at if replaced else evidence.noted_at
        assert since is not None
        assert evidence.store_now - since > GUARD


# ----- taken out of the node

UID = DEAD.uid
MIDDLE = 1 << 64


def topic(*, uid=UID, complete=False, marked=False, bare=False):
    """Ledger 42, closed, with such a context, or none."""
    message = ml_pb2.ManagedLedgerInfo()
    info = message.ledgerInfo.add(ledgerId=42, entries=3, size=30, timestamp=1700000000600)
    if not bare:
        info.offloadContext.uidMsb, info.offloadContext.uidLsb = (
            half - MIDDLE if half >= MIDDLE // 2 else half for half in divmod(uid.int, MIDDLE)
        )
        info.offloadContext.complete = complete
        info.offloadContext.bookkeeperDeleted = marked
    return decode_managed_ledger(message.SerializeToString())


def test_the_unfinished_attempt_is_taken_out_and_nothing_else_changes():
    taken = take_out_unfinished(topic(), {42: UID, 7: UID})
    assert taken is not None
    assert taken.message_copy() == topic(bare=True).message_copy()


@pytest.mark.parametrize(
    "other",
    [
        {"bare": True},
        {"uid": UUID(int=5)},
        {"complete": True},
        {"marked": True},
    ],
)
def test_what_is_not_that_attempt_unfinished_stays_as_it_is(other):
    assert take_out_unfinished(topic(**other), {42: UID}) is None


def test_a_ledger_that_is_not_listed_is_nothing_to_take_out():
    assert take_out_unfinished(topic(), {7: UID}) is None
