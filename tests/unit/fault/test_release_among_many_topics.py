"""A release in a cluster of 100,000 topics, on a metadata store that answers slowly, comes to its
end.
"""

from dataclasses import replace

from tests.support.sim_scene import Scene
from tiering_assets.batch.release_batch import release_batch
from tiering_assets.release.work import Released
from tiering_assets.resources.metastore.store import READS_AT_ONCE
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

TOPICS = 100_000
ANSWER_S = 0.02  # a ZooKeeper behind a busy network
DUE = [f"t/ns/persistent/due-{number}" for number in range(3)]


class SlowStore:
    """Every answer takes 20 ms; those to reads that are on their way together, together."""

    def __init__(self, scene, metadata):
        self._scene, self._metadata = scene, metadata

    def __getattr__(self, name):
        self._scene.wait(ANSWER_S)
        return getattr(self._metadata, name)

    def get_many(self, paths):
        for path in paths:
            self._scene.wait(ANSWER_S / READS_AT_ONCE)
            yield self._metadata._target.get(path)


def slow(scene, stack):
    metadata = SlowStore(scene, stack.metadata)
    return replace(
        stack,
        metadata=metadata,
        topics=type(stack.topics)(metadata),
        ledgers=type(stack.ledgers)(metadata),
    )


def test_a_release_among_100_000_topics_ends_with_one_reload_a_topic():
    scene = Scene(1)
    ledgers = []
    for ml_name in DUE:
        scene.broker.create_topic(ml_name)
        ledgers.append(scene.fill(ml_name))
        scene.publish(ledgers[-1])
    scene.past_the_lag()
    node = scene.cluster.metadata.nodes[managed_ledger_path(DUE[0])]
    for number in range(TOPICS):
        path = managed_ledger_path(f"t/ns/persistent/many-{number:06d}")
        scene.cluster.metadata.nodes[path] = node
    told = []
    scene.broker._told = lambda what, ml_name: told.append((what, ml_name))
    began_s = scene.world.scheduler.now
    outcomes = release_batch(slow(scene, scene.process("release")), ledgers).outcomes
    assert [type(one.result) for one in outcomes] == [Released] * len(DUE)
    unloaded = [ml_name for what, ml_name in told if what == "unloaded"]
    assert sorted(unloaded) == DUE
    assert scene.world.scheduler.now - began_s < 600
    assert scene.world.monitor.found == []
