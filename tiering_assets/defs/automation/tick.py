"""One tick of a sensor: switched on by settings, bounded in time, connected like a run.

Owns: `auto.enabled` is asked at every tick, so `tierkeeper auto off` holds from the next tick on
whatever the daemon thinks; a tick that fails fails in Dagster, with the message of our own error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from tiering_assets.automation.standing import OFF, UNTIL_ON
from tiering_assets.defs.automation.cursor import Read, read_cursor, write_cursor
from tiering_assets.defs.automation.memory import SensorMemory
from tiering_assets.defs.automation.wake import TICK_S
from tiering_assets.defs.shared.batches import most_ledgers
from tiering_assets.defs.shared.failures import as_failures
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_api import AssetJob
from tiering_assets.defs.shared.resources import TieringStack
from tiering_assets.defs.shared.run_history import read_history
from tiering_assets.policy.admission_rules import History
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.settings import AutoSettings, Settings

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack

Result = dg.SensorResult | dg.SkipReason
RUN_REQUESTS_MAX = 10  # a request costs 0.2 s of the tick
EVENTS_MAX = 200
_BATCHED_MAX = 1_000_000  # ids of large runs that are remembered


@dataclass(slots=True)
class TickLook:
    """What a tick looked at: managed-ledger names, and whether there are no others to go on
    with.
    """

    names: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What a sensor looks at. `stack` is connected for this tick alone."""

    context: dg.SensorEvaluationContext
    settings: Settings
    memory: SensorMemory
    cursor: Read
    stack: Stack
    looked: TickLook = field(default_factory=lambda: TickLook())

    @property
    def cluster(self) -> ClusterNames:
        return self.memory.cluster

    @property
    def auto(self) -> AutoSettings:
        """As set, but for the size of a batch: a run tells of each ledger, or counts them."""
        auto = self.settings.auto
        most = most_ledgers(self.cluster, auto.batch_ledgers_max)
        return replace(auto, batch_ledgers_max=most)

    @property
    def instance(self) -> dg.DagsterInstance:
        return self.context.instance

    @property
    def now(self) -> datetime:
        return self.stack.now()

    def history(self, job: str) -> History:
        """Runs of a job for as long back as a wait for the next try can be."""
        horizon = timedelta(seconds=2 * self.auto.retry_max_s)
        return read_history(
            self.instance,
            self.cluster,
            job,
            now=self.now,
            horizon=horizon,
            batches=self._batch,
        )

    def _batch(self, key: str, sha256: str) -> tuple[int, ...]:
        """The ledgers of a large run. None where they cannot be read: then its run refuses them."""
        from tiering_assets.automation.run_batches import read_run_batch

        known = self.memory.batches
        if sum(map(len, known.values())) > _BATCHED_MAX:
            known.clear()
        if sha256 not in known:
            try:
                known[sha256] = read_run_batch(self.stack, key, sha256)
            except RefusedError as error:
                self.context.log.warning("tierkeeper: %s", error)
                return ()
        return known[sha256]

    def write_cursor(self, **values: Any) -> str:
        """Values that are None are left out."""
        return write_cursor(self.cluster, **values)


def automatic(
    memory: SensorMemory,
    name: str,
    *,
    on: bool,
    description: str,
    interval_s: float,
    job: AssetJob | None = None,
    wakes: bool = False,
) -> Callable[[Callable[[Tick], Result]], dg.SensorDefinition]:
    """Make a sensor of a function of one tick. One that `wakes` looks when a topic changed, too.

    `on` is the setting as it was when the definitions were loaded: the switch of the UI, and the
    first line, of a sensor that nobody has switched.
    """

    def decorate(act: Callable[[Tick], Result]) -> dg.SensorDefinition:
        @dg.sensor(
            name=memory.cluster.named(name),
            jobs=None if job is None else [job],
            minimum_interval_seconds=max(
                1, round(min(interval_s, TICK_S) if wakes else interval_s)
            ),
            default_status=switch_of(on=on),
            description=described(description, on=on),
        )
        def sensor(context: dg.SensorEvaluationContext, tiering_stack: TieringStack) -> Result:
            with as_failures(name):
                return look(context, tiering_stack)

        def look(context: dg.SensorEvaluationContext, tiering_stack: TieringStack) -> Result:
            settings = tiering_stack.load_for_cluster(memory.cluster)
            if not settings.auto.enabled:
                return dg.SkipReason(OFF)
            wake = memory.wake
            skip = wake.may_skip(name, every_s=settings.auto.interval_s) if wakes else None
            if skip is not None:
                return dg.SkipReason(skip)
            changes = wake.before_look(settings.metadata) if wakes else -1
            cursor = read_cursor(memory.cluster, context.cursor)
            if cursor.problem is not None:
                context.log.warning("tierkeeper: %s: %s", name, cursor.problem)
            with connected(context, memory, tiering_stack, settings, name) as stack:
                tick = Tick(
                    context=context, settings=settings, memory=memory, cursor=cursor, stack=stack
                )
                result = act(tick)
            paths = map(managed_ledger_path, tick.looked.names)
            wake.after_look(name, changes, paths, whole=tick.looked.whole)
            return result

        return sensor

    return decorate


def switch_of(*, on: bool) -> dg.DefaultSensorStatus:
    return dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED


def described(description: str, *, on: bool) -> str:
    """What a sensor does; before it what starts it, which stays true once it is started."""
    return description if on else f"{UNTIL_ON}\n\n{description}"


@contextmanager
def connected(
    context: dg.SensorEvaluationContext,
    memory: SensorMemory,
    tiering_stack: TieringStack,
    settings: Settings,
    name: str,
) -> Iterator[Stack]:
    """The stack of one tick."""
    from tiering_assets.defs.automation.shared_topics import SharedTopics

    with tiering_stack.open(
        settings,
        run_id=f"sensor {name} of {memory.cluster.name}",
        narrate=lambda line: context.log.info("tierkeeper: %s", line),
        command=f"sensor {name}",
    ) as stack:
        yield replace(stack, topics=SharedTopics(stack.metadata, memory.topics))
