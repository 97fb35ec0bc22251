"""What a scope covers is told by names alone; what covers a partition covers partitions to come."""

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.look.brakes.scopes import (
    EVERYTHING,
    Scope,
    ledger_scope,
    namespace_scope,
    require_topics,
    scopes_of,
    still_braked,
    topic_scope,
    topics_covered,
)
from tiering_assets.resources.errors import FormatError, RefusedError

WHOLE = "t/ns/persistent/parts"
PARTITION = f"{WHOLE}-partition-3"


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        (ledger_scope(7), "ledger 7"),
        (topic_scope("t/ns/parts"), "topic persistent://t/ns/parts"),
        (namespace_scope("t/ns"), "namespace t/ns"),
        (EVERYTHING, "everything"),
    ],
)
def test_each_is_told_in_words(scope, said):
    assert str(scope) == said


def test_a_partition_is_covered_by_all_that_is_wider_the_widest_first():
    assert scopes_of(PARTITION) == (
        EVERYTHING,
        Scope("namespace", "t/ns"),
        Scope("topic", WHOLE),
        Scope("topic", PARTITION),
    )
    assert scopes_of(WHOLE) == (EVERYTHING, Scope("namespace", "t/ns"), Scope("topic", WHOLE))


@pytest.mark.parametrize("name", ["", "t", "t/", "/ns", "t/ns/topic"])
def test_what_is_no_namespace_is_refused(name):
    with pytest.raises(FormatError, match="expected tenant/namespace"):
        namespace_scope(name)


def test_topics_are_found_by_what_covers_them():
    scene = Scene()
    for name in (PARTITION, "t/other/persistent/x"):
        scene.broker.create_topic(name)
    scene.cluster.metadata.put("/managed-ledgers/no/topic", b"")
    assert topics_covered(scene.stack, topic_scope("t/ns/parts")) == [PARTITION]
    assert topics_covered(scene.stack, Scope("topic", TOPIC)) == [TOPIC]
    assert topics_covered(scene.stack, namespace_scope("t/ns")) == [TOPIC, PARTITION]
    assert topics_covered(scene.stack, EVERYTHING) == [TOPIC, PARTITION, "t/other/persistent/x"]


def test_a_topic_that_nobody_knows_is_refused_and_a_namespace_without_topics_is_not():
    scene = Scene()
    require_topics(scene.stack, [Scope("topic", TOPIC), namespace_scope("t/empty"), EVERYTHING])
    with pytest.raises(RefusedError, match="no such topic"):
        require_topics(scene.stack, [topic_scope("t/ns/ordres")])


def test_only_what_is_still_braked_is_told():
    whys = {TOPIC: "court (ops)", PARTITION: None}
    assert still_braked(whys, whys.__getitem__) == {"persistent://t/ns/orders": "court (ops)"}
