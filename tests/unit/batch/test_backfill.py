"""A backfill of 200 ledgers on simulated servers, where time passes by a cost that is known: its
finish, a kill at 40 %, a pause in the middle.
"""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.batch import backfill
from tiering_assets.batch.backfill_rules import LOT_LEDGERS_MIN
from tiering_assets.batch.offload_prefix import offload_prefix, offload_prefix_until, plan_prefix
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.copy.ask_first import AskFirst
from tiering_assets.ground.own_policy import TieringMode
from tiering_assets.look.brakes import pauses
from tiering_assets.look.brakes.scopes import topic_scope
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.metastore.ledger_info import Position
from tiering_assets.tasks.descriptors import TaskKind

LEDGERS = 200
LEDGER_S, BYTE_S = 3.0, 2e-3


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


class Paced:
    """The simulated runner, whose tasks take a known time, with noise; counts what it copied."""

    def __init__(self, scene: Any, runner: Any, *, kill_at: float = 2.0) -> None:
        self._scene, self._runner, self._kill_at = scene, runner, kill_at
        self._random = random.Random(7)
        self.copied: Counter[int] = Counter()
        self.bytes = 0
        self.between: Any = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)

    def run(self, tasks: Any, *, progress: Any = None) -> Any:
        for task in tasks:
            noise = self._random.uniform(0.9, 1.1)
            self._scene.wait(noise * (LEDGER_S + BYTE_S * task.source.length) / 2)
            if task.kind is TaskKind.COPY:
                self.copied[task.source.ledger_id] += 1
                self.bytes += task.source.length
        if self.bytes > self._kill_at * self._scene.bytes:
            raise Killed
        rows = self._runner.run(tasks, progress=progress)
        self.between()
        return rows


class Backfilled(Scene):
    """200 closed ledgers of sizes over three decades."""

    def __init__(self) -> None:
        super().__init__()
        source = random.Random(3)
        self.bytes = 0
        for _ in range(LEDGERS):
            size = int(10 ** source.uniform(1, 4))
            self.fill(TOPIC, b"x" * size)
            self.bytes += size


@pytest.fixture
def scene():
    return Backfilled()


def opened(scene, name="run", **how):
    """A process, what it says, and its runner."""
    said: list[Any] = []
    stack = scene.process(name)
    runner = Paced(scene, stack.runner, **how)
    return replace(stack, runner=runner, narrate=said.append, sleep=scene.wait), said, runner


def plan_of(scene, stack):
    return plan_prefix(stack, TOPIC, Position(scene.broker.load(TOPIC).open_id, 0))


def finishes(scene, said_at):
    return [at + told["seconds_left"] for at, told in said_at if told["seconds_left"] is not None]


def noting(scene, stack):
    """The stack, and (when, figures) of each line about the backfill."""
    noted: list[tuple[float, dict[str, Any]]] = []

    def narrate(line: Any) -> None:
        told = getattr(line, "event", {}).get("backfill")
        if told:
            noted.append((scene.world.scheduler.now, told))

    return replace(stack, narrate=narrate), noted


def test_the_finish_is_known_after_a_tenth_and_again_after_a_kill_at_40_percent(scene):
    stack, _said, runner = opened(scene, "first", kill_at=0.4)
    stack, before = noting(scene, stack)
    began = scene.world.scheduler.now
    with pytest.raises(Killed):
        offload_prefix(stack, plan_of(scene, stack))
    killed_after = scene.world.scheduler.now - began
    scene.wait(stack.settings.offload.claim_ttl_s + 1)

    stack, _said, again = opened(scene, "second")
    stack, after = noting(scene, stack)
    resumed = scene.world.scheduler.now
    found = offload_prefix(stack, plan_of(scene, stack))
    took = scene.world.scheduler.now - resumed
    assert found.reached

    first_run = finishes(scene, before)[0] - began
    assert first_run == pytest.approx(killed_after + took, rel=0.15)
    assert finishes(scene, after)[0] - resumed == pytest.approx(took, rel=0.15)
    twice = [i for i, count in (runner.copied + again.copied).items() if count > 1]
    assert len(twice) <= LOT_LEDGERS_MIN


def test_a_paused_topic_s_ledgers_are_not_begun_and_go_on_after_resume(scene):
    stack, said, runner = opened(scene)
    plan = plan_of(scene, stack)
    scope = topic_scope("persistent://t/ns/orders")
    state = {"paused_at": 0, "copied": 0}

    def between():
        if len(runner.copied) >= 60 and not state["paused_at"]:
            pauses.pause(stack, scope, TieringMode.PAUSED, reason="r", author="ops")
            state["paused_at"] = len(runner.copied)

    def sleep(seconds):
        scene.wait(seconds)
        state["copied"] = len(runner.copied)
        if scene.world.scheduler.now > state.setdefault("until", scene.world.scheduler.now + 60):
            pauses.resume(stack, scope, reason="r", author="ops")

    runner.between = between
    found = offload_prefix_until(replace(stack, sleep=sleep), plan, timeout_s=1e6)
    assert state["paused_at"] == state["copied"] < LEDGERS
    assert any("paused" in str(line) for line in said)
    assert found.reached
    assert len(runner.copied) == len(plan.prefix.to_offload)


def test_a_topic_that_is_paused_before_the_first_pass_is_refused(scene):
    stack, _said, runner = opened(scene)
    plan = plan_of(scene, stack)
    pauses.pause(
        stack, topic_scope("persistent://t/ns/orders"), TieringMode.PAUSED, reason="r", author="ops"
    )
    with pytest.raises(RefusedError, match="paused"):
        offload_prefix_until(stack, plan, timeout_s=1e6)
    assert not runner.copied


@pytest.mark.parametrize(
    ("room", "batches"),
    [
        ({"batch_ledgers_max": 60}, range(4, 8)),
        ({"batch_ledgers_max": 1000, "batch_bytes_max": 100_000}, range(3, 10)),
        ({"batch_ledgers_max": 1000}, range(2, 3)),
    ],
    ids=["by number", "by bytes", "the first tenth and the rest"],
)
def test_a_backfill_is_published_by_batches_as_large_as_a_run_s(scene, room, batches):
    stack, _said, _runner = opened(scene)
    auto = replace(stack.settings.auto, **room)
    stack = replace(stack, settings=replace(stack.settings, auto=auto))
    published = []
    whole = offload_batch

    def noted(stack, ids, **how):
        if how.get("publish", True):
            published.append(len(ids))
        return whole(stack, ids, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backfill, "offload_batch", noted)
        found = offload_prefix(stack, plan_of(scene, stack))
    assert found.reached
    assert sum(published) == len(found.outcomes)
    assert max(published) <= auto.batch_ledgers_max
    assert len(published) in batches
    assert published[0] >= min(len(found.outcomes) / 10, auto.batch_ledgers_max)
    assert {one.state for one in found.outcomes} == {"published"}
    assert all(one.copied and one.verified and not one.noop for one in found.outcomes)


def test_without_publication_every_ledger_is_proven_and_none_is_published(scene):
    stack, _said, _runner = opened(scene)
    found = offload_prefix(stack, plan_of(scene, stack), publish=False)
    assert {one.state for one in found.outcomes} == {"verified"}
    assert {one.wait for one in found.outcomes} == {None}


def test_what_cannot_be_published_is_not_copied(scene, monkeypatch):
    def refused(_self, plan):
        raise RefusedError(f"{plan.ml_name} would not be readable")

    monkeypatch.setattr(AskFirst, "require", refused)
    stack, _said, runner = opened(scene)
    found = offload_prefix(stack, plan_of(scene, stack))
    assert {str(one.error) for one in found.outcomes} == {f"{TOPIC} would not be readable"}
    assert not runner.copied


def test_few_ledgers_are_one_batch_and_nothing_is_told_of_a_backfill():
    scene = Scene()
    stack, noted = noting(scene, scene.process())
    assert offload_prefix(stack, plan_of(scene, stack)).reached
    assert noted == []
