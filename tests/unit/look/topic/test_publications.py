"""Which publication counts: that of the very context that stands; and whose takes another's
place.
"""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.look.topic.publications import (
    Publications,
    publication_of,
    recorded_publications,
)
from tiering_assets.records.models import Publication

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


def test_of_several_confirmations_the_newest_dates_the_replacement(stored):
    mine = published(stored, 0, OTHER).records[0]
    older = replace(mine, stored_at=mine.stored_at - timedelta(days=1))
    assert Publications([older, mine]).replaced_at(0, OURS, {OTHER}) == mine.stored_at


@pytest.fixture
def scene():
    """Ledgers 0 and 1 are published, one after the other."""
    scene = Scene()
    second = scene.fill(TOPIC)
    scene.publish()
    scene.wait(60)
    scene.publish(second)
    return scene


def listed(scene, ledger_id):
    return scene.stack.topics.read(TOPIC)[0].ledger(ledger_id)


def test_each_ledger_has_its_own_publications(scene):
    found = recorded_publications(scene.stack, TOPIC)
    first, second = found.records
    for ledger_id, own in ((0, first), (1, second)):
        context = listed(scene, ledger_id).offload
        assert found.of(ledger_id, context.uid) == [own]
        assert found.newest(ledger_id, context.uid) == own
        assert found.counted(ledger_id, context) == own
        assert publication_of(scene.stack, TOPIC, listed(scene, ledger_id)).records == [own]
    assert found.of(0, OURS) == []


def test_nothing_counts_for_a_context_that_is_not_complete(scene):
    info = listed(scene, 0)
    begun = replace(info.offload, complete=False)
    assert recorded_publications(scene.stack, TOPIC).counted(0, begun) is None
    incomplete = replace(info, offload=begun)
    assert publication_of(scene.stack, TOPIC, incomplete).records == ()
    assert publication_of(scene.stack, TOPIC, None).records == ()


def test_a_record_that_goes_while_it_is_read_is_none(scene):
    first, _second = scene.publications()
    key = scene.stack.book.prefix + first.key
    scene.at_call("objects", "get", lambda: scene.world.objects.delete(key))
    found = recorded_publications(scene.process(), TOPIC)
    assert [one.record.ledgers[0].ledger_id for one in found.records] == [1]
