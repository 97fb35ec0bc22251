"""May a published copy go after its ledger? Each condition alone keeps it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tiering_assets.clean.expired_rules import Expired, ExpiredEvidence, decide_expired
from tiering_assets.clean.gone_rules import KEPT, Fate, GoneEvidence
from tiering_assets.ground.reasons import NotNow

NOW = datetime(2026, 3, 1, tzinfo=UTC)
UID = UUID(int=7)
GUARD = timedelta(days=1)
TRIMMED = ExpiredEvidence(
    gone=GoneEvidence(
        ledger_id=5,
        node_czxid=100,
        listed=frozenset({6, 9}),
        elsewhere=None,
        in_bookkeeper=False,
        store_now=NOW,
        claimed_live=False,
        held=None,
        planned_at=NOW - timedelta(hours=2),
    ),
    uid=UID,
    outcome="publish",
    published_czxid=100,
    attempt_stored_at=NOW - timedelta(days=2),
)


def changed(**changes):
    """Some of it otherwise, whether it is of the ledger that is gone or of what it left."""
    of_ledger = {name: changes.pop(name) for name in [*changes] if name in GoneEvidence.__slots__}
    return replace(TRIMMED, gone=replace(TRIMMED.gone, **of_ledger), **changes)


def decide(**changes):
    return decide_expired(changed(**changes), guard_age=GUARD)


@pytest.mark.parametrize(
    ("changes", "fate"),
    [
        ({}, Fate.TRIMMED),
        ({"planned_at": None}, Fate.TRIMMED),  # while the plan is made
        ({"node_czxid": None, "listed": frozenset()}, Fate.TOPIC_DELETED),
        ({"node_czxid": 200, "listed": frozenset({50})}, Fate.TOPIC_MADE_AGAIN),
        ({"planned_at": NOW - KEPT - timedelta(seconds=1)}, Fate.TRIMMED),
        ({"attempt_stored_at": NOW - GUARD - timedelta(seconds=1)}, Fate.TRIMMED),
    ],
)
def test_it_goes_when_all_conditions_hold(changes, fate):
    assert decide(**changes) == Expired(5, UID, fate)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"outcome": None}, "never published"),
        ({"outcome": "abandon"}, "never published"),
        ({"published_czxid": None}, "no record of its confirmed publication"),
        ({"listed": frozenset({5, 6})}, "lists the ledger"),
        ({"listed": frozenset({4, 6})}, "lists the older ledger 4"),
        ({"listed": frozenset()}, "no ledger at all"),
        ({"node_czxid": 200, "listed": frozenset({4, 6})}, "lists the older ledger 4"),
        ({"elsewhere": "t/ns/persistent/shadow"}, "t/ns/persistent/shadow may read it"),
        ({"in_bookkeeper": True}, "BookKeeper has the ledger"),
        ({"held": "court"}, "held: court"),
        ({"claimed_live": True}, "live claim"),
        ({"attempt_stored_at": NOW - GUARD}, "younger than the guard age"),
        ({"attempt_stored_at": NOW + timedelta(days=3)}, "younger than the guard age"),
        ({"planned_at": NOW - KEPT}, "planned 1:00:00 ago"),
        ({"planned_at": NOW + timedelta(days=3)}, "planned"),
    ],
)
def test_each_condition_alone_keeps_it(changes, said):
    decision = decide(**changes)
    assert isinstance(decision, NotNow)
    assert said in str(decision)


@pytest.mark.parametrize("node", [None, 200])
def test_a_topic_that_is_gone_does_not_make_up_for_what_else_keeps_it(node):
    gone = {"node_czxid": node, "listed": frozenset() if node is None else frozenset({50})}
    for changes in ({"in_bookkeeper": True}, {"elsewhere": "x"}, {"published_czxid": None}):
        assert isinstance(decide(**gone, **changes), NotNow)
