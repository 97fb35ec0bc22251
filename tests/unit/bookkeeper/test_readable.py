"""How far a ledger may be read: what proves it, and that nothing else does."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.readable import (
    BoundBy,
    ReadableTo,
    of_closed,
    proven_bound,
)
from tiering_assets.resources.errors import IntegrityError, RefusedError

BOOKIES = ("bk0", "bk1", "bk2")
OPEN = LedgerMetadata(
    ledger_id=7,
    state=BookKeeperState.OPEN,
    last_entry_id=-1,
    length=-1,
    ensemble_size=3,
    write_quorum=3,
    ack_quorum=2,
    segments=(EnsembleFragment(0, ("bk0", "bk1", "gone")), EnsembleFragment(40, BOOKIES)),
)
CLOSED = replace(OPEN, state=BookKeeperState.CLOSED, last_entry_id=99, length=990)
confirmations = st.dictionaries(st.sampled_from(BOOKIES), st.integers(-1, 200))


@given(confirmations, st.none() | st.tuples(st.integers(6, 8), st.integers(-1, 200)))
def test_a_bound_is_the_highest_of_what_is_proven_and_never_above(confirmed, acknowledged):
    found = proven_bound(OPEN, confirmed=confirmed, acknowledged=acknowledged)
    proven = {39, *confirmed.values()}
    if acknowledged is not None and acknowledged[0] == 7:
        proven.add(acknowledged[1])
    assert (found.ledger_id, found.entry_id) == (7, max(proven))


@pytest.mark.parametrize(
    ("confirmed", "acknowledged", "by"),
    [
        ({}, None, BoundBy.ENSEMBLE),
        ({"bk0": 39}, None, BoundBy.ENSEMBLE),
        ({"bk0": 40, "bk1": 12}, (7, 40), BoundBy.LAC),
        ({"bk0": 40}, (7, 41), BoundBy.BROKER),
        ({"bk0": 40}, (8, 41), BoundBy.LAC),
    ],
)
def test_what_proves_it_is_said(confirmed, acknowledged, by):
    assert proven_bound(OPEN, confirmed=confirmed, acknowledged=acknowledged).by is by


def test_nothing_of_a_new_ledger_is_proven():
    new = replace(OPEN, segments=(EnsembleFragment(0, BOOKIES),))
    assert proven_bound(new, confirmed={"bk1": -1}).entry_id == -1


def test_of_a_closed_ledger_its_metadata_says_it_whatever_bookies_have():
    found = proven_bound(CLOSED, confirmed={"bk0": 120}, acknowledged=(7, 120))
    assert found == of_closed(CLOSED)
    assert (found.entry_id, found.by) == (99, BoundBy.CLOSED)


def test_a_ledger_in_recovery_has_no_bound():
    recovering = replace(OPEN, state=BookKeeperState.IN_RECOVERY)
    with pytest.raises(RefusedError, match="ledger 7 is IN_RECOVERY: its end is being decided"):
        proven_bound(recovering, confirmed={"bk0": 50})
    for other in (OPEN, recovering):
        with pytest.raises(RefusedError, match="only CLOSED ledgers are read"):
            of_closed(other)


def test_what_no_bookie_of_the_ensemble_says_is_refused():
    with pytest.raises(IntegrityError, match="found 50 of gone"):
        proven_bound(OPEN, confirmed={"gone": 50})
    with pytest.raises(IntegrityError, match="found -2 of bk0"):
        proven_bound(OPEN, confirmed={"bk0": -2})


def test_nobody_else_makes_a_bound():
    with pytest.raises(TypeError, match="alone say how far"):
        ReadableTo(ledger_id=7, entry_id=5, by=BoundBy.LAC)
    with pytest.raises((TypeError, ValueError)):
        replace(of_closed(CLOSED), entry_id=120)
