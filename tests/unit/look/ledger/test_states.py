from dataclasses import fields, replace
from itertools import product

import pytest

from tiering_assets.look.ledger.states import LedgerState, StateEvidence, decide_state

NAMES = [field.name for field in fields(StateEvidence)]
NOTHING = StateEvidence(**dict.fromkeys(NAMES, False))
SEALED = replace(NOTHING, listed=True, in_bookkeeper=True)
PUBLISHED = replace(SEALED, context_complete=True, certified=True, published=True)
RECORDS = ["claimed", "has_index_object", "certified", "quarantined", "published", "lag_elapsed"]


def every_evidence():
    for values in product((False, True), repeat=len(NAMES)):
        yield StateEvidence(**dict(zip(NAMES, values, strict=True)))


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        (NOTHING, LedgerState.EXPIRED),
        (replace(SEALED, open=True), LedgerState.OPEN),
        (SEALED, LedgerState.SEALED),
        (replace(SEALED, claimed=True), LedgerState.COPYING),
        (replace(SEALED, context_other=True), LedgerState.COPYING),
        (replace(SEALED, has_index_object=True), LedgerState.COPIED),
        (replace(SEALED, has_index_object=True, certified=True), LedgerState.VERIFIED),
        (replace(SEALED, has_index_object=True, quarantined=True), LedgerState.QUARANTINED),
        (replace(SEALED, certified=True, quarantined=True), LedgerState.QUARANTINED),
        (replace(SEALED, in_bookkeeper=False), LedgerState.UNSAFE),
        (replace(SEALED, context_complete=True), LedgerState.PUBLISHED),  # by a broker
        (PUBLISHED, LedgerState.PUBLISHED),
        (replace(PUBLISHED, lag_elapsed=True), LedgerState.RELEASE_DUE),
        (replace(PUBLISHED, lag_elapsed=True, certified=False), LedgerState.PUBLISHED),
        (replace(PUBLISHED, lag_elapsed=True, published=False), LedgerState.PUBLISHED),
        (replace(PUBLISHED, lag_elapsed=True, quarantined=True), LedgerState.PUBLISHED),
        (replace(PUBLISHED, lag_elapsed=True, held=True), LedgerState.HELD),
        (replace(PUBLISHED, marked_deleted=True), LedgerState.RELEASING),
        (replace(PUBLISHED, marked_deleted=True, in_bookkeeper=False), LedgerState.RELEASED),
    ],
)
def test_state_of_a_ledger(evidence, state):
    assert decide_state(evidence) is state


def test_every_combination_has_exactly_one_state_and_every_state_is_reached():
    reached = set()
    for evidence in every_evidence():
        state = decide_state(evidence)
        assert isinstance(state, LedgerState)
        assert decide_state(evidence) is state
        reached.add(state)
    assert reached == set(LedgerState)


def test_metadata_wins_over_records():
    """Where metadata alone decides, no record changes the answer."""
    decided_by_metadata = {
        LedgerState.EXPIRED,
        LedgerState.OPEN,
        LedgerState.UNSAFE,
        LedgerState.RELEASED,
        LedgerState.RELEASING,
    }
    for evidence in every_evidence():
        without = replace(evidence, **dict.fromkeys(RECORDS, False))
        if decide_state(without) in decided_by_metadata:
            assert decide_state(evidence) is decide_state(without), evidence


def test_a_ledger_is_due_only_if_everything_speaks_for_it():
    due = [e for e in every_evidence() if decide_state(e) is LedgerState.RELEASE_DUE]
    assert due
    for evidence in due:
        assert evidence.context_complete
        assert evidence.in_bookkeeper
        assert evidence.certified
        assert evidence.published
        assert evidence.lag_elapsed
        assert not evidence.held
        assert not evidence.quarantined
