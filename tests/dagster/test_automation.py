"""Wanted against actual, on an instance with states and ticks as the daemon writes them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.definitions.selector import InstigatorSelector
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
from dagster._serdes import create_snapshot_id  # as its own web server asks
from dagster_shared.error import SerializableErrorInfo

from tests.dagster.test_event_budget import lived  # noqa: F401 - a fixture
from tests.support.default_cluster import CLUSTER, TIERING_BACKLOG
from tiering_assets.automation.standing import OFF
from tiering_assets.defs.automation.all import sensors_of
from tiering_assets.defs.automation.automation import findings, follow, read_status
from tiering_assets.defs.explain.automation_note import automation_note, first_line
from tiering_assets.defs.shared.preview_sensors import LOCATION
from tiering_assets.resources.settings import AutoSettings, Settings

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SENSORS = sensors_of(Settings())
NAMES = [sensor.name for sensor in SENSORS]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A DAGSTER_HOME: what is only in memory has no place for sensors' states."""
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("home"))) as instance:
        yield instance


@pytest.fixture
def instance(home):
    """It, with nothing in it; to make one takes seconds."""
    home.wipe()
    home.wipe_all_schedules()
    home.wipe_daemon_heartbeats()
    return home


def origin(name, location_name=LOCATION):
    location = ManagedGrpcPythonEnvCodeLocationOrigin(
        LoadableTargetOrigin(module_name="tiering_assets.definitions"), location_name
    )
    return RemoteInstigatorOrigin(RemoteRepositoryOrigin(location, "__repository__"), name)


def add_sensor(
    instance,
    name,
    *,
    status=InstigatorStatus.AUTOMATICALLY_RUNNING,
    age_s=10.0,
    error=None,
    location=LOCATION,
    data=SensorInstigatorData(sensor_type=SensorType.STANDARD),  # noqa: B008  a value
):
    state = InstigatorState(
        origin(name, location),
        InstigatorType.SENSOR,
        status,
        data,
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
    assert follow(instance, CLUSTER, SENSORS, on=True) == ["release_due"]
    assert not status(instance).differs
    assert follow(instance, CLUSTER, SENSORS, on=True) == []


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


def test_doctor_fails_for_the_daemon_and_warns_of_sensors(instance):
    def told():
        return [(one.level.value, one.text) for one in findings(status(instance))]

    assert told() == [
        ("fail", "no daemon has ever run: start `dagster-daemon run -w workspace.yaml`")
    ]
    beat(instance)
    for name in NAMES:
        add_sensor(instance, name)
    assert told() == [("ok", f"on: the daemon beats, and {len(NAMES)} sensors tick")]
    instance.delete_instigator_state(origin("stuck").get_id(), selector_id("stuck"))
    add_sensor(instance, "stuck", age_s=1, error="no broker")
    assert told() == [("warn", "stuck: its last tick failed")]


def test_sensors_of_others_are_none_of_ours(instance):
    add_sensor(instance, "of_another_team", status=InstigatorStatus.STOPPED)
    assert "of_another_team" not in {one.name for one in status(instance).sensors}
    assert "of_another_team" not in follow(instance, CLUSTER, SENSORS, on=True)
    assert shown(instance, "of_another_team") is InstigatorStatus.STOPPED


def selector_id(name, location=LOCATION):
    return create_snapshot_id(
        InstigatorSelector(location_name=location, repository_name="__repository__", name=name)
    )


def shown(instance, name, location=LOCATION):
    """The switch of a sensor as the web server and the daemon ask for it; None for as loaded."""
    state = instance.get_instigator_state("", selector_id(name, location))
    return None if state is None else state.status


def switches(instance, location=LOCATION):
    return {shown(instance, name, location) for name in NAMES}


def observed(instance):
    """What was told at the backlog, newest first."""
    records = instance.fetch_observations(TIERING_BACKLOG, limit=9).records
    return [record.event_log_entry.asset_observation for record in records]


def test_switched_off_every_switch_is_off_and_its_newest_tick_says_why(instance):
    beat(instance)
    for name in NAMES[1:]:  # the first has never ticked
        add_sensor(instance, name)
    assert follow(instance, CLUSTER, SENSORS, on=False) == sorted(NAMES)
    assert switches(instance) == {InstigatorStatus.STOPPED}
    found = status(instance, wanted=False)
    assert not found.differs
    assert {(one.said, one.problem) for one in found.sensors} == {(OFF, None)}
    assert follow(instance, CLUSTER, SENSORS, on=False) == []


def test_a_switch_that_somebody_turned_on_meanwhile_is_told(instance):
    follow(instance, CLUSTER, SENSORS, on=False)
    add_sensor(instance, "stuck_of_others", status=InstigatorStatus.RUNNING)
    follow(instance, CLUSTER, SENSORS[:1], on=True)
    problems = {one.name: one.problem for one in status(instance, wanted=False).sensors}
    assert {name for name, found in problems.items() if found} == {NAMES[0]}
    assert "`tierkeeper auto off` stops it" in problems[NAMES[0]]


@pytest.mark.parametrize("on", [True, False])
def test_an_instance_in_which_nothing_ever_ran_has_the_switches_of_the_shipped_workspaces(
    instance, on
):
    for path in ("workspace.yaml", "deploy/workspace.yaml"):
        [(_kind, place)] = yaml.safe_load((ROOT / path).read_text())["load_from"][0].items()
        assert place["location_name"] == LOCATION, path
    assert switches(instance) == {None}
    assert follow(instance, CLUSTER, SENSORS, on=on) == sorted(NAMES)
    status_wanted = InstigatorStatus.RUNNING if on else InstigatorStatus.STOPPED
    assert switches(instance) == {status_wanted}


def test_switches_are_those_of_the_location_that_the_instance_knows(instance):
    add_sensor(instance, "stuck", location="of_ours")
    follow(instance, CLUSTER, SENSORS, on=False)
    assert switches(instance, "of_ours") == {InstigatorStatus.STOPPED}
    assert switches(instance) == {None}


def test_switched_on_sensors_run_whatever_their_code_was_loaded_with(instance):
    """One that runs as declared would stand where the code was loaded while automation was off."""
    for name in NAMES:
        add_sensor(instance, name)
    follow(instance, CLUSTER, SENSORS, on=True)
    assert switches(instance) == {InstigatorStatus.RUNNING}


@pytest.mark.parametrize(
    ("kind", "left"), [(SensorType.STANDARD, "here"), (SensorType.RUN_STATUS, None)]
)
def test_switched_on_again_a_sensor_goes_on_from_its_cursor_and_tells_of_no_old_failure(
    instance, kind, left
):
    data = SensorInstigatorData(sensor_type=kind, cursor="here")
    add_sensor(instance, "stuck", data=data)
    follow(instance, CLUSTER, SENSORS, on=False)
    follow(instance, CLUSTER, SENSORS, on=True)
    state = instance.get_instigator_state("", selector_id("stuck"))
    assert state.instigator_data.cursor == left


def test_the_backlog_is_told_once_that_automation_was_turned(instance):
    beat(instance, age_s=(NOW - datetime.now(UTC)).total_seconds())
    for on in (False, False, True, True):
        follow(instance, CLUSTER, SENSORS, on=on)
    newest, before = observed(instance)
    assert (newest.description, before.description) == (
        "automation is on: sensors ask for runs",
        OFF,
    )
    assert before.metadata["automation"].value == first_line(OFF) == f"**A{OFF[1:]}.**"


def note(instance, wanted=True):
    return automation_note(instance, CLUSTER, wanted=wanted, now=NOW)


def test_the_backlogs_line_names_what_keeps_automation_from_running(instance):
    assert note(instance, wanted=False) == OFF
    assert "no daemon has ever run: start `dagster-daemon run" in note(instance)
    beat(instance, age_s=200)
    assert note(instance).endswith("the daemon's last heartbeat is 200 s old: start it again")
    beat(instance)
    assert note(instance) == ""
    for name in ("stuck", "release_due", "of_another_team"):
        add_sensor(instance, name, status=InstigatorStatus.STOPPED)
    assert note(instance).endswith(
        "release_due, stuck are stopped: `tierkeeper auto on --execute` starts what is stopped"
    )


def test_in_memory_only_the_setting_counts():
    with dg.DagsterInstance.ephemeral() as instance:
        assert (note(instance), note(instance, wanted=False)) == ("", OFF)


def test_a_count_of_the_backlog_begins_with_what_keeps_automation_from_running(lived):  # noqa: F811
    fleet = lived(by="ledger", ledgers=1, on_disk=True)
    firsts = []
    for on in (False, True):
        settings = replace(fleet.stack.settings, auto=AutoSettings(enabled=on))
        fleet.stack = replace(fleet.stack, settings=settings)
        fleet.run("discover")
        [record] = fleet.instance.fetch_materializations(TIERING_BACKLOG, limit=1).records
        summary = record.asset_materialization.metadata["summary"].value
        firsts.append(summary.splitlines()[0])
        assert "**1 ledgers" in summary
    off, down = firsts
    assert off == first_line(OFF)
    assert down.startswith("**Automation does not run as it should: no daemon has ever run: start")
