"""No more runs at once than budgets are split between.

Owns: a run whose Dagster would start more runs than `budget.runs_max` has room for ends before it
sends anything, as long as some rate is bounded: the bound would be off by every run too many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.look.brakes.budget import read_wanted
from tiering_assets.resources.errors import SettingsError

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack


def require_room(instance: dg.DagsterInstance, stack: Stack) -> None:
    """SettingsError where this instance may start too many runs for a budget that is in force.

    One place is for what is no run of it: a tick of the sensors, or a command.
    """
    queue = instance.get_concurrency_config().run_queue_config
    if queue is None:
        return  # runs of this instance begin by hand, one at a time
    most, places = queue.max_concurrent_runs, stack.settings.budget.runs_max - 1
    if 0 <= most <= places or not any(line.rate for line in read_wanted(stack).lines):
        return
    told = "any number of" if most < 0 else str(most)
    raise SettingsError(
        f"budget.runs_max is {places + 1}, of which one place is for ticks and commands, but "
        f"this Dagster instance may start {told} runs at once (max_concurrent_runs in "
        "dagster.yaml). Raise the one or lower the other, or budgets are exceeded"
    )
