"""What attempts leave in a simulated bucket, for tests of what clean-up may take."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

PATH = managed_ledger_path(TOPIC)
DAYS_S = 3 * 86400  # past the guard age


def leave_unproven(scene: Scene, ledger_id: int = 0) -> Stored[Attempt]:
    """Both objects of an attempt that nobody could prove, a guard age old; its record."""
    before = set(scene.stack.book.keys(keys.attempts_of(ledger_id)))
    away = {ledger_id: ObjectStoreError("the store is away")}
    with patch("tiering_assets.batch.pipeline.verify_attempts", lambda *_a: away):
        assert scene.offload(ledger_id).error is not None
    [key] = set(scene.stack.book.keys(keys.attempts_of(ledger_id))) - before
    scene.wait(DAYS_S)
    return scene.stack.book.require(Attempt, key)


def set_stat(scene: Scene, **changes: int) -> None:
    """The topic's node has other versions, as a restored one has."""
    nodes = scene.cluster.metadata.nodes
    nodes[PATH] = replace(nodes[PATH], stat=replace(nodes[PATH].stat, **changes))


def made_again_from_a_backup(scene: Scene) -> None:
    """The very list, in a new node, of which no broker knows more."""
    set_stat(scene, czxid=scene.cluster.metadata.nodes[PATH].stat.czxid + 1)
    scene.broker.restart()
