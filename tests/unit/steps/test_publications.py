"""Whose publication takes another's place: of the same ledger, of another attempt, and named now."""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.records.models import Publication
from tiering_assets.steps.publications import Publications

OURS, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture(scope="module")
def stored():
    """A confirmed publication of ledger 0."""
    scene = Scene()
    scene.publish()
    [found] = scene.publications()
    assert isinstance(found.record, Publication)
    return found


def published(stored, ledger_id, uid):
    [entry] = stored.record.ledgers
    entry = replace(entry, ledger_id=ledger_id, uid=uid)
    return Publications([replace(stored, record=replace(stored.record, ledgers=(entry,)))])


@pytest.mark.parametrize(
    ("ledger_id", "uid", "contexts", "replaced"),
    [
        (0, OTHER, {OTHER}, True),
        (0, OTHER, {OURS}, False),  # not what the topic names now
        (0, OURS, {OURS}, False),  # our own
        (1, OTHER, {OTHER}, False),  # another ledger's
    ],
)
def test_an_attempt_is_replaced_by_what_its_topic_names(stored, ledger_id, uid, contexts, replaced):
    found = published(stored, ledger_id, uid).replaced_at(0, OURS, contexts)
    assert found == (stored.stored_at if replaced else None)
