"""The private names of Dagster that tell and change a sensor's state; see preview_api.py.

No public call says whether a sensor was stopped, or starts one without loading the whole workspace.
tests/dagster/test_automation.py fails when one of them moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, TickStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorState:
    """A sensor as the instance knows it. `said` is why its last tick skipped or failed."""

    name: str
    running: bool
    last_tick: datetime | None
    result: str | None
    said: str | None
    state: InstigatorState

    @property
    def failed(self) -> bool:
        return self.result == TickStatus.FAILURE.value


def sensor_states(instance: dg.DagsterInstance) -> list[SensorState]:
    """Every sensor that the daemon or a person has touched, with its newest tick."""
    found = []
    for state in instance.all_instigator_state(instigator_type=InstigatorType.SENSOR):
        ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
        tick = ticks[0] if ticks else None
        said = None if tick is None else tick.skip_reason
        if tick is not None and tick.error is not None:
            said = (tick.error.cause or tick.error).message.strip()
        found.append(
            SensorState(
                name=state.instigator_name,
                running=state.status is not InstigatorStatus.STOPPED,
                last_tick=None if tick is None else datetime.fromtimestamp(tick.timestamp, UTC),
                result=None if tick is None else tick.status.value,
                said=said,
                state=state,
            )
        )
    return found


def start_sensor(instance: dg.DagsterInstance, sensor: SensorState) -> None:
    """Undo a stop: the sensor is again as its definition says."""
    instance.update_instigator_state(sensor.state.with_status(InstigatorStatus.DECLARED_IN_CODE))
