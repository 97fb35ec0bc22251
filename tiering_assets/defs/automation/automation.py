"""Is automation as the settings want it? The daemon's heartbeat, each sensor's switch and last
tick.

Owns: wanted is the setting auto.enabled; actual is what Dagster's instance says. A sensor that
somebody stopped in the UI, a daemon that is gone or a tick that fails is a difference, and visible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from tiering_assets.defs.shared.preview_sensors import SensorState, sensor_states, start_sensor

HEARTBEAT_MAX = timedelta(seconds=120)  # it beats every 30 s
SENSOR_DAEMON = "SENSOR"
_TICKS_LATE = 5


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
    beat = instance.get_daemon_heartbeats().get(SENSOR_DAEMON)
    beat_at = None if beat is None else datetime.fromtimestamp(beat.timestamp, UTC)
    known = {state.name: state for state in sensor_states(instance)}
    sensors = tuple(_status(sensor, known.get(sensor.name), now=now) for sensor in defined)
    return AutoStatus(
        wanted=wanted,
        daemon_beat=beat_at,
        sensors=sensors,
        problems=tuple(_daemon_problems(beat_at, now)),
    )


def start_stopped(
    instance: dg.DagsterInstance, defined: Iterable[dg.SensorDefinition]
) -> list[str]:
    """Start the sensors that somebody stopped; their names. Ones that never ran start by
    themselves.
    """
    ours = {sensor.name for sensor in defined}
    stopped = [one for one in sensor_states(instance) if one.name in ours and not one.running]
    for one in stopped:
        start_sensor(instance, one)
    return sorted(one.name for one in stopped)


def _daemon_problems(beat_at: datetime | None, now: datetime) -> list[str]:
    if beat_at is None:
        return ["no daemon has ever run: start `dagster-daemon run -w workspace.yaml`"]
    if now - beat_at > HEARTBEAT_MAX:
        age = (now - beat_at).total_seconds()
        return [f"the daemon's last heartbeat is {age:.0f} s old: start it again"]
    return []


def _status(
    sensor: dg.SensorDefinition, state: SensorState | None, *, now: datetime
) -> SensorStatus:
    problem = None
    interval_s = sensor.minimum_interval_seconds or 30
    if state is None or state.last_tick is None:
        problem = "it has not ticked yet"
    if state is not None and not state.running:
        problem = "somebody stopped it: `tierkeeper auto on --execute` starts it again"
    elif state is not None and state.last_tick is not None:
        late = now - state.last_tick
        if state.failed:
            problem = "its last tick failed"
        elif late > max(timedelta(seconds=_TICKS_LATE * interval_s), HEARTBEAT_MAX):
            problem = f"its last tick is {late.total_seconds():.0f} s old"
    return SensorStatus(
        name=sensor.name,
        running=state is None or state.running,
        last_tick=None if state is None else state.last_tick,
        result=None if state is None else state.result,
        said=None if state is None else state.said,
        problem=problem,
    )
