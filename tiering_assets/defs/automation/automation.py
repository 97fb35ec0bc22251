"""Is automation as the settings want it? The daemon's heartbeat, each sensor's switch and last
tick.

Owns: wanted is the setting auto.enabled; actual is what Dagster's instance says. A sensor that
somebody stopped in the UI, a daemon that is gone or a tick that fails is a difference, and visible.
The switches of the UI follow the setting whenever `tierkeeper auto` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from tiering_assets.automation.standing import HEARTBEAT_MAX, OFF, ON, daemon_problems
from tiering_assets.defs.explain.automation_note import (
    automation_note,
    read_beat,
    tell_automation,
)
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_sensors import (
    SensorState,
    sensor_states,
    switch_off,
    switch_on,
)
from tiering_assets.ground.finding import Finding, fail, ok, warn

_TICKS_LATE = 5
_CHECK = "automation"


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorStatus:
    """`problem` is what differs from a sensor that runs as it should, None when nothing does."""

    name: str
    running: bool
    last_tick: datetime | None
    result: str | None
    said: str | None
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoStatus:
    """`problems` of the daemon; empty when it beats. Wanted off needs nobody to run."""

    wanted: bool
    daemon_beat: datetime | None
    sensors: tuple[SensorStatus, ...]
    problems: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return self.wanted and bool(self.problems or any(one.problem for one in self.sensors))


def read_status(
    instance: dg.DagsterInstance,
    defined: Iterable[dg.SensorDefinition],
    *,
    wanted: bool,
    now: datetime | None = None,
) -> AutoStatus:
    """What is of the defined sensors, beside what is wanted."""
    now = now or datetime.now(UTC)
    beat_at = read_beat(instance)
    known = {state.name: state for state in sensor_states(instance)}
    sensors = tuple(
        _status(sensor, known.get(sensor.name), wanted=wanted, now=now) for sensor in defined
    )
    return AutoStatus(
        wanted=wanted,
        daemon_beat=beat_at,
        sensors=sensors,
        problems=tuple(daemon_problems(beat_at, now)),
    )


def findings(status: AutoStatus) -> list[Finding]:
    """The same for `tierkeeper doctor`, where automation is wanted."""
    found = [fail(_CHECK, problem, "") for problem in status.problems]
    found += [
        warn(_CHECK, f"{one.name}: {one.problem}", "`tierkeeper auto status` shows every sensor")
        for one in status.sensors
        if one.problem and not status.problems  # they stand because it does
    ]
    return found or [ok(_CHECK, f"on: the daemon beats, and {len(status.sensors)} sensors tick")]


def follow(
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    defined: Iterable[dg.SensorDefinition],
    *,
    on: bool,
) -> list[str]:
    """Turn the switches of the UI as the setting was turned, and say so at the backlog.

    The names of the sensors whose switch was another. A stopped one's newest tick says why.
    """
    names = [sensor.name for sensor in defined]
    changed = switch_on(instance, names) if on else switch_off(instance, names, said=OFF)
    if changed:
        tell_automation(instance, cluster, automation_note(instance, cluster, wanted=on) or ON)
    return changed


def _status(
    sensor: dg.SensorDefinition, state: SensorState | None, *, wanted: bool, now: datetime
) -> SensorStatus:
    interval = timedelta(seconds=sensor.minimum_interval_seconds or 30)
    return SensorStatus(
        name=sensor.name,
        running=state is None or state.running,
        last_tick=None if state is None else state.last_tick,
        result=None if state is None else state.result,
        said=None if state is None else state.said,
        problem=_problem(state, interval, now=now) if wanted else _problem_of_off(state),
    )


def _problem(state: SensorState | None, interval: timedelta, *, now: datetime) -> str | None:
    if state is not None and not state.running:
        return "somebody stopped it: `tierkeeper auto on --execute` starts it again"
    if state is None or state.last_tick is None:
        return "it has not ticked yet"
    if state.failed:
        return "its last tick failed"
    late = now - state.last_tick
    if late > max(_TICKS_LATE * interval, HEARTBEAT_MAX):
        return f"its last tick is {late.total_seconds():.0f} s old"
    return None


def _problem_of_off(state: SensorState | None) -> str | None:
    """Its ticks ask for nothing, so nothing is wrong but what its switch shows."""
    if state is None or not state.running:
        return None
    return "started, though automation is off: `tierkeeper auto off` stops it"
