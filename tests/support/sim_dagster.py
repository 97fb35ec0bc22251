"""Dagster's jobs and sensors on simulated servers: who asks for the stack gets the simulated
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from tiering_assets.defs.shared.resources import TieringStack
from tiering_assets.ground.stack import Stack
from tiering_assets.resources.settings import Settings

if TYPE_CHECKING:
    import pytest

    from tests.support.sim_clients import Site
    from tests.support.sim_world import World


class SimulatedTiering(TieringStack):
    """A resource for one tick or run. Dagster copies resources, so the stack is the class's."""

    now_open: ClassVar[dict[str, Stack]] = {}

    def load(self) -> Settings:
        return self.now_open["stack"].settings

    @contextmanager
    def open(
        self, settings: Settings, *, run_id: str, narrate: Any, command: str, runner: Any = None
    ) -> Iterator[Stack]:
        yield replace(self.now_open["stack"], settings=settings, run_id=run_id, narrate=narrate)


def hand_out(monkeypatch: pytest.MonkeyPatch, stack: Stack) -> None:
    """Let every run of this test have exactly this stack, tasks included."""

    @contextmanager
    def connect(
        _self: object, _context: object, _cluster: object, *, with_tasks: bool = False
    ) -> Iterator[Stack]:
        yield stack

    monkeypatch.setattr(TieringStack, "connect", connect)
    monkeypatch.setattr(TieringStack, "load", lambda _self: stack.settings)


def add_closed_ledgers(world: World, site: Site, ml_name: str, count: int) -> None:
    """A topic with so many closed ledgers of two entries, a minute apart, and an open one."""
    site.broker.create_topic(ml_name)
    for _ledger in range(count):
        site.broker.produce(ml_name, [b"first", b"last"])
        world.scheduler.now += 60
        site.broker.roll_over(ml_name)


def executing(job: str, config: dict[str, Any]) -> dict[str, Any]:
    """A run's config as sensors give it: a release that was not told otherwise is no dry run."""
    return {"dry_run": False, **config} if job == "release" else config
