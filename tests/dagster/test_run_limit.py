"""Dagster may not start more runs at once than a budget in force is split between."""

import dagster as dg
import pytest

from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.defs.shared.run_limit import require_room
from tiering_assets.look.brakes.budget import set_budget
from tiering_assets.resources.errors import SettingsError

PLACES = 4  # budget.runs_max is 5, and one is for ticks and commands


@pytest.fixture
def stack():
    world = World(1)
    return Process(
        world, "run", world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    ).stack()


def instance_with(folder, runs):
    overrides = {"concurrency": {"runs": {"max_concurrent_runs": runs}}}
    return dg.DagsterInstance.local_temp(str(folder), overrides=overrides)


@pytest.mark.parametrize("runs", [PLACES + 1, -1])
def test_a_run_too_many_is_refused_under_a_budget_and_only_then(stack, tmp_path, runs):
    with instance_with(tmp_path, runs) as instance:
        require_room(instance, stack)
        set_budget(stack, {"store_requests_per_s": 10_000}, author="ops")
        with pytest.raises(SettingsError, match=r"budget\.runs_max is 5") as told:
            require_room(instance, stack)
        assert ("any number of" if runs < 0 else f" {runs} runs") in str(told.value)
        set_budget(stack, {"store_requests_per_s": 0}, author="ops")
        require_room(instance, stack)


@pytest.mark.parametrize("runs", [0, 1, PLACES])
def test_as_many_as_there_are_places_for_are_right(stack, tmp_path, runs):
    set_budget(stack, {"store_requests_per_s": 10_000}, author="ops")
    with instance_with(tmp_path, runs) as instance:
        require_room(instance, stack)


def test_the_instances_that_are_shipped_fit_the_default(stack):
    from pathlib import Path

    import yaml  # type: ignore[import-untyped]

    root = Path(__file__).parents[2]
    for name in (
        "dagster_home/dagster.yaml",
        "deploy/dagster.yaml",
        "deploy/dagster-postgres.yaml",
    ):
        config = yaml.safe_load((root / name).read_text(encoding="utf-8"))
        assert config["concurrency"]["runs"]["max_concurrent_runs"] <= PLACES, name
    assert stack.settings.budget.runs_max == PLACES + 1
