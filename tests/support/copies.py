"""A published copy of six blocks, of ours or of a broker, in a simulated bucket; and how it
breaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.scrub.fleet import find_fleet
from tiering_assets.scrub.plan import Candidate

PAYLOADS = [bytes([65 + i]) * 260 for i in range(6)]  # each fills a block
BLOCK_BYTES = 128 + 12 + 260
OURS, BROKERS = "ours", "a broker's"


class Copy:
    """Of the one closed ledger that the scene's topic lists. `who` wrote its objects."""

    def __init__(
        self, who: str = OURS, *, versions: bool = False, payloads: Sequence[bytes] = PAYLOADS
    ) -> None:
        self.who = who
        self.scene = Scene()
        if versions:
            self.scene.world.objects.keep_versions()
        self.ledger_id = self.scene.fill(TOPIC, *payloads)
        assert self.scene.broker.trim(TOPIC) == 0
        if who == OURS:
            self.scene.publish(self.ledger_id)
        else:
            assert self.scene.broker.offload(TOPIC)

    @property
    def uid(self) -> UUID:
        uid: UUID = self.scene.context(self.ledger_id).uid
        return uid

    @property
    def data_key(self) -> str:
        return data_key(self.uid, self.ledger_id)

    @property
    def index_key(self) -> str:
        return index_key(self.uid, self.ledger_id)

    @property
    def candidate(self) -> Candidate:
        found = find_fleet(self.scene.process()).candidates
        [one] = [one for one in found if one.ledger_id == self.ledger_id]
        return one

    def body(self, key: str) -> bytes:
        found = self.scene.world.objects.peek(key)
        assert found is not None
        return found[0]

    # ----- how it breaks

    def excused(self) -> None:
        """The monitor is told that readers may fail."""
        self.scene.world.monitor.damaged.add(self.uid)
        self.scene.world.monitor.excused.add(("alpha", self.ledger_id))

    def flip(self, block: int = 0) -> None:
        """The last byte of a block's only payload is another one; every frame is right."""
        self.excused()
        body = bytearray(self.body(self.data_key))
        body[(block + 1) * BLOCK_BYTES - 1] ^= 1
        self.scene.world.objects.rot(self.data_key, bytes(body))

    def lose(self, *keys: str) -> None:
        self.excused()
        for key in keys:
            self.scene.world.objects.delete(key)

    def lose_ledger(self) -> None:
        """Its bookie copy is gone, node and all."""
        self.excused()
        self.scene.cluster.delete_ledger(self.ledger_id)
        self.scene.cluster.collect()
