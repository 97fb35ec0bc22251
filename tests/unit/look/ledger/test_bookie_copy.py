"""Whether the bookies give a whole ledger, so that no object is the only copy of it."""

import pytest

from tests.support.copies import Copy
from tests.support.sim_scene import TOPIC
from tiering_assets.look.ledger.bookie_copy import why_only_copy


@pytest.fixture
def copy():
    return Copy()


def why(copy):
    return why_only_copy(copy.scene.process(), copy.ledger_id, ml_name=TOPIC, uid=copy.uid)


def test_a_ledger_that_they_give_is_no_reason(copy):
    assert why(copy) is None


def test_without_its_metadata_they_give_nothing(copy):
    copy.lose_ledger()
    assert why(copy) == (
        f"the bookies do not give the ledger: ledger {copy.ledger_id}: no BookKeeper metadata; "
        f"it may be the only copy"
    )


def test_without_its_entries_they_give_nothing(copy):
    copy.excused()
    del copy.scene.cluster.bookies[copy.ledger_id]
    assert "it may be the only copy" in why(copy)


def test_fewer_entries_than_it_has_are_not_the_ledger(copy, monkeypatch):
    monkeypatch.setattr(type(copy.scene.world), "runner_fault", lambda *_a: "row lost")
    assert "expected 6 entries of 1560 bytes, found 0 of 0" in why(copy)


def test_a_ledger_without_entries_is_given_by_having_none(copy):
    """Nothing of it can be lost, and none of it is read."""
    cluster = copy.scene.cluster
    cluster.written[copy.ledger_id] = []
    cluster._write(copy.ledger_id, cluster._metadata(copy.ledger_id, closed=True))
    del cluster.bookies[copy.ledger_id]
    assert why(copy) is None
