"""The private names of Dagster that tell and change a sensor's state; see preview_api.py.

No public call says whether a sensor was stopped, or starts one without loading the whole workspace.
tests/dagster/test_automation.py fails when one of them moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.definitions.sensor_definition import SensorType
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
    TickData,
    TickStatus,
)

LOCATION: Final = "tierkeeper"  # of the shipped workspaces; what an instance knows comes first
_REPOSITORY: Final = "__repository__"  # Dagster's name of definitions without one


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


def switch_on(instance: dg.DagsterInstance, names: Iterable[str]) -> list[str]:
    """Start sensors, whatever their definitions were loaded with; the names of those that were not
    started before.
    """
    off = [one for one in _known(instance, names) if one.status is not InstigatorStatus.RUNNING]
    for one in off:
        _write(instance, _begun(one))
    return [one.instigator_name for one in off]


def _begun(state: InstigatorState) -> InstigatorState:
    """A sensor goes on from its cursor, but for one of failed runs: what failed while it was
    stopped is old.
    """
    data = state.instigator_data
    if not isinstance(data, SensorInstigatorData):  # a schedule's, which no name of ours has
        return state.with_status(InstigatorStatus.RUNNING)
    if not state.is_running and data.sensor_type is SensorType.RUN_STATUS:
        data = data._replace(cursor=None)
    return state.with_status(InstigatorStatus.RUNNING).with_data(
        data.with_sensor_start_timestamp(datetime.now(UTC).timestamp())
    )


def switch_off(instance: dg.DagsterInstance, names: Iterable[str], *, said: str) -> list[str]:
    """Stop sensors; the names of those that were not. `said` is their newest tick from then on."""
    on = [one for one in _known(instance, names) if one.status is not InstigatorStatus.STOPPED]
    for one in on:
        _write(instance, one.with_status(InstigatorStatus.STOPPED))
        _tell(instance, one, said)
    return [one.instigator_name for one in on]


def _known(instance: dg.DagsterInstance, names: Iterable[str]) -> list[InstigatorState]:
    """What the instance knows of each, by name; of one that never ran, what it would know."""
    known: dict[str, list[InstigatorState]] = {}
    for state in instance.all_instigator_state(instigator_type=InstigatorType.SENSOR):
        known.setdefault(state.instigator_name, []).append(state)
    wanted = sorted(names)
    places = [state.origin.location_name for name in wanted for state in known.get(name, ())]
    location = places[0] if places else LOCATION
    return [one for name in wanted for one in known.get(name) or [_unknown(name, location)]]


def _unknown(name: str, location: str) -> InstigatorState:
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(location), _REPOSITORY)
    return InstigatorState(
        RemoteInstigatorOrigin(repository, name),
        InstigatorType.SENSOR,
        InstigatorStatus.DECLARED_IN_CODE,
        SensorInstigatorData(sensor_type=SensorType.STANDARD),
    )


def _write(instance: dg.DagsterInstance, state: InstigatorState) -> None:
    if instance.get_instigator_state(state.instigator_origin_id, state.selector_id) is None:
        instance.add_instigator_state(state)
    else:
        instance.update_instigator_state(state)


def _tell(instance: dg.DagsterInstance, state: InstigatorState, said: str) -> None:
    """A tick that did not look, as the daemon writes one that skips."""
    instance.create_tick(
        TickData(
            instigator_origin_id=state.instigator_origin_id,
            instigator_name=state.instigator_name,
            instigator_type=InstigatorType.SENSOR,
            selector_id=state.selector_id,
            status=TickStatus.SKIPPED,
            timestamp=datetime.now(UTC).timestamp(),
            skip_reason=said,
            run_ids=[],
        )
    )
