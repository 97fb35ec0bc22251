"""An index agrees with its certificate in digest, data size and table; each alone makes it
differ.
"""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.verify.reverify import IndexNow, look_at_index


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def copy(scene):
    """(certificate, HEAD of the data object, index object, what the topic lists) of ledger 0."""
    record = scene.publish().certificate.record
    topic, _node = scene.stack.topics.read(TOPIC)
    objects = scene.world.objects
    return record, objects.head(record.data.key), objects.get(record.index.key), topic.ledger(0)


def moved(record):
    """The table that it should have, one byte further on."""
    return replace(record, blocks=(replace(record.blocks[0], first_entry_id=1), *record.blocks[1:]))


DIFFERENT = {
    "digest": lambda record: replace(record, index=replace(record.index, sha256="0" * 64)),
    "data size": lambda record: replace(
        record, data=replace(record.data, size=record.data.size + 1)
    ),
    "table": moved,
}


def test_an_index_that_is_the_certified_one_agrees(scene, copy):
    assert look_at_index(scene.stack, *copy).agrees


@pytest.mark.parametrize("what", DIFFERENT)
def test_each_difference_is_one(scene, copy, what):
    record, *rest = copy
    found = look_at_index(scene.stack, DIFFERENT[what](record), *rest)
    assert found.facts is not None
    assert not found.agrees


@pytest.mark.parametrize("missing", range(3))
def test_without_certificate_or_object_nothing_agrees(scene, copy, missing):
    parts = [None if number == missing else part for number, part in enumerate(copy)]
    assert look_at_index(scene.stack, *parts) == IndexNow(None, agrees=False)


@pytest.mark.parametrize("listed", [True, False])
def test_what_the_topic_counts_is_told_where_it_lists_the_ledger(scene, copy, listed):
    record, data, index, info = copy
    facts = look_at_index(scene.stack, record, data, index, info if listed else None).facts
    assert facts is not None
    assert (facts.topic_entries, facts.topic_bytes) == (
        (info.entries, info.size) if listed else (None, None)
    )
