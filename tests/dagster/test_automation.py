"""Wanted against actual, on an instance with states and ticks as the daemon writes them."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.definitions.sensor_definition import SensorType
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
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
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._daemon.types import DaemonHeartbeat
from dagster_shared.error import SerializableErrorInfo

from tiering_assets.defs.automation.all import sensors_of
from tiering_assets.defs.automation.automation import read_status, start_stopped
from tiering_assets.resources.settings import Settings

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SENSORS = sensors_of(Settings())
NAMES = [sensor.name for sensor in SENSORS]


@pytest.fixture
def instance(tmp_path):
    """A DAGSTER_HOME: what is only in memory has no place for sensors' states."""
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


def origin(name):
    location = ManagedGrpcPythonEnvCodeLocationOrigin(
        LoadableTargetOrigin(module_name="tiering_assets.definitions"), "tierkeeper"
    )
    return RemoteInstigatorOrigin(RemoteRepositoryOrigin(location, "__repository__"), name)


def add_sensor(
    instance, name, *, status=InstigatorStatus.AUTOMATICALLY_RUNNING, age_s=10.0, error=None
):
    state = InstigatorState(
        origin(name),
        InstigatorType.SENSOR,
        status,
        SensorInstigatorData(sensor_type=SensorType.STANDARD),
    )
    instance.add_instigator_state(state)
    instance.create_tick(
        TickData(
            instigator_origin_id=state.instigator_origin_id,
            instigator_name=name,
            instigator_type=InstigatorType.SENSOR,
            selector_id=state.selector_id,
            status=TickStatus.SUCCESS if error is None else TickStatus.FAILURE,
            timestamp=(NOW - timedelta(seconds=age_s)).timestamp(),
            run_ids=[] if error is not None else ["r"],
            error=None if error is None else SerializableErrorInfo(error, [], None),
        )
    )


def beat(instance, age_s=10.0):
    at = (NOW - timedelta(seconds=age_s)).timestamp()
    instance.add_daemon_heartbeat(DaemonHeartbeat(at, "SENSOR", "id", []))


def status(instance, wanted=True):
    return read_status(instance, SENSORS, wanted=wanted, now=NOW)


def problems(instance):
    found = status(instance)
    assert found.differs
    return {one.name: one.problem for one in found.sensors if one.problem}


def test_where_all_runs_nothing_differs(instance):
    beat(instance)
    for name in NAMES:
        add_sensor(instance, name)
    found = status(instance)
    assert not found.differs
    assert [one.name for one in found.sensors] == NAMES
    assert {one.last_tick for one in found.sensors} == {NOW - timedelta(seconds=10)}


def test_a_new_instance_differs_until_the_daemon_runs(instance):
    found = status(instance)
    assert found.differs
    assert "no daemon has ever run" in found.problems[0]
    assert {one.problem for one in found.sensors} == {"it has not ticked yet"}
    assert not status(instance, wanted=False).differs


def test_a_daemon_that_is_gone_differs(instance):
    beat(instance, age_s=200)
    for name in NAMES:
        add_sensor(instance, name)
    assert status(instance).problems == (
        "the daemon's last heartbeat is 200 s old: start it again",
    )
    assert status(instance).differs


def test_a_sensor_that_somebody_stopped_differs_until_it_is_started_again(instance):
    beat(instance)
    for name in NAMES:
        stopped = name == "release_due"
        add_sensor(
            instance,
            name,
            status=InstigatorStatus.STOPPED if stopped else InstigatorStatus.RUNNING,
        )
    assert problems(instance) == {
        "release_due": "somebody stopped it: `tierkeeper auto on --execute` starts it again"
    }
    assert start_stopped(instance, SENSORS) == ["release_due"]
    assert not status(instance).differs
    assert start_stopped(instance, SENSORS) == []


def test_a_sensor_that_fails_or_stands_still_differs_and_says_why(instance):
    beat(instance)
    for name in NAMES:
        add_sensor(
            instance,
            name,
            age_s=100_000 if name == "stuck" else 10,
            error="no broker\n" if name == "offload_threshold" else None,
        )
    assert problems(instance) == {
        "offload_threshold": "its last tick failed",
        "stuck": "its last tick is 100000 s old",
    }
    said = {one.name: one.said for one in status(instance).sensors}
    assert said["offload_threshold"] == "no broker"


def test_sensors_of_others_are_none_of_ours(instance):
    add_sensor(instance, "of_another_team", status=InstigatorStatus.STOPPED)
    assert "of_another_team" not in {one.name for one in status(instance).sensors}
    assert start_stopped(instance, SENSORS) == []
