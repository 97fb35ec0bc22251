"""A simulated cluster without random faults, laid out and disturbed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.support.sim_clients import Process
from tests.support.sim_cluster import ROOT
from tests.support.sim_world import World
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import LedgerOutcome, offload_batch
from tiering_assets.ground.reasons import NotNow
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.broker_models import Undo
from tiering_assets.records.models import Canary, Publication, Quarantine
from tiering_assets.records.stored import Stored
from tiering_assets.release.work import Released, ReleaseResult
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import (
    SHADOW_SOURCE_PROPERTY,
    managed_ledger_path,
)
from tiering_assets.resources.pulsar.offload_policies import EffectiveOffloadPolicies

TOPIC = "t/ns/persistent/orders"


class Scene:
    """`stack` is that of a process of ours that nothing strikes."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.site = self.world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        self.broker, self.cluster = self.site.broker, self.site.cluster
        self._policy: dict[str, Any] = {}
        self._answer_policies()
        self.broker.create_topic(TOPIC)
        self.fill(TOPIC)
        self.stack = self.process()

    def process(self, name: str = "run") -> Stack:
        """Another run's view of the same servers."""
        return Process(self.world, name, self.site).stack()

    def fill(self, ml_name: str, *payloads: bytes) -> int:
        """Write to a topic's open ledger and close it; returns its id."""
        self.broker.produce(ml_name, list(payloads) or [b"first", b"last"])
        ledger_id = int(self.broker.load(ml_name).open_id)
        self.broker.roll_over(ml_name)
        return ledger_id

    def idle(self) -> None:
        """Nobody has a topic loaded, and all brokers know it."""
        self.broker.restart()
        self.wait(120)

    def wait(self, seconds: float) -> None:
        self.world.scheduler.now += seconds

    def offload(self, ledger_id: int = 0, **how: Any) -> LedgerOutcome:
        [outcome] = offload_batch(self.process(), [ledger_id], **how)
        return outcome

    def certify(self, ledger_id: int = 0) -> LedgerOutcome:
        outcome = self.offload(ledger_id, publish=False)
        assert outcome.state == "verified", outcome
        return outcome

    def publish(self, ledger_id: int = 0) -> LedgerOutcome:
        outcome = self.offload(ledger_id)
        assert outcome.state == "published", outcome
        return outcome

    def release(
        self, ledger_id: int = 0, ml_name: str = TOPIC, *, stack: Stack | None = None
    ) -> ReleaseResult:
        return release_topic(stack or self.process("release"), ml_name, [ledger_id])[ledger_id]

    def release_and_collect(self) -> dict[str, Any]:
        """Release ledger 0, which is not the last, and let the bookies collect it.

        Returns the nodes of the metadata store as they are then, its topic still listing it.
        """
        self.fill(TOPIC)
        self.publish()
        self.past_the_lag()
        assert is_released(self.release())
        self.broker.load(TOPIC)
        backup = dict(self.cluster.metadata.nodes)
        self.cluster.collect()
        return backup

    def trim(self) -> None:
        """As retention does, by a broker that cannot delete the objects."""
        with patch.object(self.broker.objects, "delete", lambda _key: None):
            assert self.broker.trim(TOPIC) == 0

    def past_the_lag(self) -> None:
        self.wait(self.stack.settings.release.deletion_lag_s + 60)

    def context(self, ledger_id: int = 0, ml_name: str = TOPIC) -> Any:
        found = self.stack.topics.read(ml_name)
        assert found is not None
        listed = found[0].ledger(ledger_id)
        return None if listed is None else listed.offload

    def publications(self) -> list[Stored[Publication]]:
        return list(self.stack.book.iter_records(Publication, keys.publications_of(TOPIC)))

    def canary(self, ml_name: str = TOPIC) -> Canary:
        return self.stack.book.require(Canary, keys.canary(ml_name)).record

    def withdrawals(self) -> list[Undo]:
        """What was taken back that was published."""
        keys_of_undos = [k for k in self.stack.book.keys(keys.UNDOS) if "confirmed" not in k]
        undos = [self.stack.book.require(Undo, key).record for key in keys_of_undos]
        return [one for one in undos if one.withdrawn]

    def is_quarantined(self, ledger_id: int, uid: Any) -> bool:
        return self.stack.book.read(Quarantine, keys.quarantine(ledger_id, uid)) is not None

    # ----- what happens to the cluster

    def set_policy(self, **changes: Any) -> None:
        """The offload policy in force becomes another one."""
        self._policy = changes

    def _answer_policies(self) -> None:
        ask = self.broker.effective_offload_policies

        def effective(topic: str) -> EffectiveOffloadPolicies:
            return replace(ask(topic), **self._policy)

        self.broker.effective_offload_policies = effective  # type: ignore[method-assign]

    def set_config(self, **changes: str) -> None:
        """Every broker is configured anew."""
        before = dict(self.broker.runtime_config())
        config = {k: v for k, v in {**before, **changes}.items() if v}
        self.broker.runtime_config = lambda: config  # type: ignore[method-assign]

    def make_shadow(self, source: str = "persistent://t/ns/orders") -> None:
        name = "t/ns/persistent/shadow"
        self.broker.create_topic(name)
        path = managed_ledger_path(name)
        stored = self.cluster.metadata.nodes[path]
        found = decode_managed_ledger(stored.data)
        message = found.message_copy()
        message.properties.add(key=SHADOW_SOURCE_PROPERTY, value=source)
        self.cluster.metadata.put(path, encode_managed_ledger(found.with_message(message)))
        self.broker.topics.pop(name, None)

    def under_replicate(self, ledger_id: int = 0) -> None:
        digits = f"{ledger_id:016x}"
        parts = "/".join(digits[start : start + 4] for start in range(0, 16, 4))
        path = f"{ROOT}/underreplication/ledgers/{parts}/urL{ledger_id:010d}"
        self.cluster.metadata.put(path, b"")

    def at_call(self, room: str, method: str, act: Callable[[], None], *, nth: int = 1) -> None:
        """Let something happen right before the nth such call of ours."""
        target = {"broker": self.broker, "objects": self.world.objects}[room]
        really, seen = getattr(target, method), [0]

        def call(*args: Any, **kwargs: Any) -> Any:
            seen[0] += 1
            if seen[0] == nth:
                act()
            return really(*args, **kwargs)

        setattr(target, method, call)


TAIL = 1


def scene_with_a_tail() -> Scene:
    """A loaded topic whose ledger 1 was closed by the unload of our publication of ledger 0."""
    scene = Scene()
    scene.wait(600)
    scene.broker.produce(TOPIC, [b"written before our unload"])
    scene.publish()
    scene.broker.load(TOPIC)
    scene.certify(TAIL)
    scene.wait(300)  # by then its broker says that it has it
    return scene


def flip_reads(scene: Scene, monkeypatch: Any, times: int) -> list[int]:
    """As many ranged reads of objects as said come with a bit flipped; `[0]` is how many are
    left.
    """
    store = type(scene.world.objects)
    really, left = store.get_range, [times]

    def altered(self: Any, key: str, *args: Any, **how: Any) -> bytes:
        answer, into = really(self, key, *args, **how), how.get("into")
        if left[0] and "-ledger-" in key:
            left[0] -= 1
            if into is not None:
                into[-1] ^= 1
            else:
                answer = answer[:-1] + bytes([answer[-1] ^ 1])
        return answer

    monkeypatch.setattr(store, "get_range", altered)
    return left


def reasons_of(result: ReleaseResult) -> str:
    assert isinstance(result, NotNow), result
    return str(result)


def is_released(result: ReleaseResult) -> bool:
    return isinstance(result, Released)
