"""The launchpad: what its form shows, what each default does, and that a release only plans.

Enumerated over all jobs and all fields of their configs, in Dagster's own runs on simulated
servers.
"""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from dagster_shared.yaml_utils import load_run_config_yaml

from tests.dagster.test_event_budget import (  # noqa: F401 - a fixture
    DAY_S,
    NAME,
    TOPIC,
    lived,
)
from tests.support.default_cluster import TIERING_BACKLOG
from tests.support.sim_dagster import SimulatedTiering
from tiering_assets.definitions import defs
from tiering_assets.defs.telling.batch_summary import DRY_RUN_TAG, RESULT_TAG
from tiering_assets.demo.jobs import JobFailedError, WorkspaceJobs
from tiering_assets.demo.run import EXECUTE_RELEASE
from tiering_assets.look.brakes.brake import PAUSE, list_brakes

_OF_BATCHES = {
    "topics": [],
    "ledger_ids": [],
    "max_ledgers": 100,
    "batch_key": "",
    "batch_sha256": "",
}
FORMS: dict[str, dict[str, dict[str, Any]]] = {
    "discover": {"discovered": {"topics": [], "max_ledgers": 200}},
    "offload": {
        "offload_ledgers": {**_OF_BATCHES, "before": "", "keep_bytes": -1, "when_due": False}
    },
    "verify": {"verify_ledgers": _OF_BATCHES},
    "release": {
        "release_ledgers": {
            **_OF_BATCHES,
            "dry_run": True,
            "acknowledge": "",
            "publish_waiting": True,
        }
    },
    "scrub": {"pulsar__scrubbed_ledgers": {"topics": [], "deep": False, "heal": True}},
    "sweep": {"pulsar__swept_leavings": {"execute": False}},
    "coverage": {},
    "audit": {"pulsar__topic_audit": {"since": "2000-01-01", "until": "2100-01-01", "deep": True}},
    "pause_tiering": {
        "pause_topics": {
            "topics": [],
            "namespaces": [],
            "all": False,
            "mode": "paused",
            "reason": "",
        }
    },
}
ROOT = Path(__file__).parents[2]
REQUIRED = {("audit", "topic")}  # a form that Dagster does not launch before it is filled in
MADE = dg.DagsterEventType.ASSET_MATERIALIZATION


def jobs():
    repository = defs.get_repository_def()
    return {name for name in repository.job_names if not name.startswith("__")}


def form(name):
    """What the launchpad of a job is filled with when it is opened, by Dagster itself."""
    snapshot = defs.resolve_job_def(name).get_job_snapshot()
    schema = snapshot.config_schema_snapshot
    [mode] = snapshot.mode_def_snaps
    root = schema.get_config_snap(str(mode.root_config_key))
    found: Any = load_run_config_yaml(default_values_yaml_from_type_snap(schema, root)) or {}
    return {op: value["config"] for op, value in found.get("ops", {}).items()}


def fields(name):
    for node in defs.resolve_job_def(name).graph.node_defs:
        schema: Any = node.config_schema
        yield from getattr(schema.config_type, "fields", {}).items()


def test_every_job_has_a_form_here():
    assert jobs() == {*FORMS}


@pytest.mark.parametrize("name", FORMS)
def test_every_field_of_every_job_is_in_the_form_that_the_launchpad_opens_with(name):
    assert form(name) == FORMS[name]
    required = {field for field, how in fields(name) if how.is_required}
    assert {(name, field) for field in required} == {one for one in REQUIRED if one[0] == name}
    shown = {field for config in FORMS[name].values() for field in config}
    assert {field for field, _how in fields(name)} == shown | required
    for field, how in fields(name):
        assert len(how.description or "") > 10, field


def test_only_jobs_that_look_at_partitions_show_a_box_for_them():
    """`offload` and `release` take those of a person's own backfill."""
    repository = RepositorySnap.from_def(defs.get_repository_def())
    assert {one.job_name for one in repository.partition_sets if one.job_name in FORMS} == {
        "offload",
        "release",
    }


@pytest.fixture
def fleet(lived):  # noqa: F811
    """Ledgers 0 and 1 are closed."""
    return lived(by="ledger", ledgers=2)


def launch(fleet, name, **changed):
    """Launch a job with its form as it is, but for what is `changed`."""
    SimulatedTiering.now_open["stack"] = fleet.stack
    ops = {op: {"config": {**config, **changed}} for op, config in form(name).items()}
    return fleet.defs.resolve_job_def(name).execute_in_process(
        instance=fleet.instance,
        resources={"tiering_stack": SimulatedTiering()},
        raise_on_error=False,
        run_config={"ops": ops},
    )


def events(fleet, result, kind):
    return fleet.instance.all_logs(result.run_id, of_type=kind)


def lines(fleet, result):
    """What the run tells people, in order."""
    rows = fleet.instance.all_logs(result.run_id)
    return [row.user_message for row in rows if row.user_message.startswith("tierkeeper: ")]


def tags(fleet, result):
    return fleet.instance.get_run_by_id(result.run_id).tags


def listed(fleet):
    return fleet.stack.topics.read(TOPIC)[0].ledgers


def published(fleet):
    return [one.ledger_id for one in listed(fleet) if one.offload and one.offload.complete]


def on_bookies(fleet):
    return {*fleet.ids} & {*fleet.stack.ledgers.list_ledger_ids()}


def why_failed(result):
    [event] = [one for one in result.all_events if one.is_step_failure]
    return event.step_failure_data.user_failure_data.description


def test_discover_by_default_tells_of_all_sealed_ledgers(fleet):
    result = launch(fleet, "discover")
    assert result.success
    told = {row.dagster_event.partition for row in events(fleet, result, MADE)}
    assert told == {None, "0", "1"}
    assert published(fleet) == []


def test_offload_by_default_publishes_all_that_is_sealed(fleet):
    assert launch(fleet, "offload").success
    assert published(fleet) == [0, 1]


def test_offload_with_null_as_before_takes_what_is_ready(fleet):
    assert launch(fleet, "offload", keep_bytes=None).success
    assert published(fleet) == [0, 1]


def test_verify_by_default_reads_all_that_is_certified(fleet):
    launch(fleet, "offload")
    result = launch(fleet, "verify")
    assert result.success
    judged = events(fleet, result, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    found = {row.dagster_event.event_specific_data.partition for row in judged}
    assert found == {None, "0", "1"}


def test_scrub_by_default_looks_at_what_is_due(fleet):
    launch(fleet, "offload")
    fleet.world.scheduler.now += 30 * DAY_S
    result = launch(fleet, "scrub")
    assert result.success
    assert tags(fleet, result)[RESULT_TAG] == "4 sound"  # each is looked at, and read whole


def test_sweep_by_default_deletes_nothing(fleet):
    launch(fleet, "offload")
    before = {one.key for one in fleet.stack.objects.list_objects()}
    assert launch(fleet, "sweep").success
    assert {one.key for one in fleet.stack.objects.list_objects()} >= before


def test_coverage_before_there_is_a_catalogue_says_what_makes_one(fleet):
    assert "Next: `tierkeeper catalogue prove`" in why_failed(launch(fleet, "coverage"))


def test_an_audit_is_not_launched_without_its_topic(fleet):
    with pytest.raises(dg.DagsterInvalidConfigError, match="topic"):
        launch(fleet, "audit")


def test_a_pause_of_nothing_is_refused_by_a_sentence(fleet):
    assert "reason is empty, expected why" in why_failed(launch(fleet, "pause_tiering"))
    assert [*list_brakes(fleet.stack, PAUSE)] == []


@pytest.fixture
def due(fleet):
    """Both are published, and past the deletion lag."""
    launch(fleet, "offload")
    fleet.world.scheduler.now += DAY_S
    return fleet


def test_a_release_by_hand_is_a_dry_run_that_materializes_nothing_and_says_how_to_execute(due):
    result = launch(due, "release")
    assert result.success
    assert on_bookies(due) == {0, 1}
    assert events(due, result, MADE) == []
    found = tags(due, result)
    assert found[DRY_RUN_TAG] == "true"
    assert found[RESULT_TAG] == "dry run: 2 would be released"
    assert lines(due, result)[-1] == (
        "tierkeeper: dry run: nothing was released. To release 2 ledgers, launch the job "
        "`release` with `ledger_ids: [0, 1]` and `dry_run: false`, or run "
        "`tierkeeper ledger release --due --execute`"
    )
    told = [
        row.dagster_event.event_specific_data.asset_observation
        for row in events(due, result, dg.DagsterEventType.ASSET_OBSERVATION)
    ]
    [plan] = [one for one in told if one.asset_key.path[-1] == "released_ledgers"]
    assert plan.description == "dry run: 2 would be released"
    assert plan.metadata["planned"].value == "2 ledgers, 18 B"


def test_what_the_last_line_says_is_what_executes(due):
    plan = launch(due, "release")
    said = lines(due, plan)[-1]
    ids = yaml.safe_load(said.split("`ledger_ids: ")[1].split("`")[0])
    assert "`dry_run: false`" in said
    result = launch(due, "release", ledger_ids=ids, dry_run=False)
    assert result.success
    assert on_bookies(due) == set()
    assert DRY_RUN_TAG not in tags(due, result)
    assert tags(due, result)[RESULT_TAG] == "2 done, 18 B"


def test_the_page_of_the_backlog_follows_each_run(due):
    """The third ledger is the open one."""
    launch(due, "release", ledger_ids=[0, 1], dry_run=False)
    said = [
        record.asset_observation.metadata["summary"].value
        for record in due.instance.fetch_observations(TIERING_BACKLOG, limit=5).records
    ]
    assert said[0].endswith("2 of 3 ledgers are released.")
    assert all("**0 ledgers, 0 B** are on bookies alone" in one for one in said)


@pytest.mark.parametrize("changed", [{"ledger_ids": [0]}, {"topics": [NAME]}, {"max_ledgers": 1}])
def test_no_other_field_makes_a_release_by_hand_delete(due, changed):
    result = launch(due, "release", **changed)
    assert result.success
    assert on_bookies(due) == {0, 1}
    assert events(due, result, MADE) == []


def test_a_dry_run_of_a_ledger_that_nobody_knows_says_so_before_it_fails(due):
    result = launch(due, "release", ledger_ids=[0, 999])
    assert why_failed(result).startswith("release: 1 failed, 0 done, 1 waiting. ledger 999: ")
    assert tags(due, result)[RESULT_TAG] == "dry run: 1 failed, 1 would be released"
    assert "To release 1 ledgers" in lines(due, result)[-1]


def test_a_dry_run_in_which_nothing_may_go_says_why(fleet):
    launch(fleet, "offload")
    result = launch(fleet, "release", ledger_ids=[0])
    assert tags(fleet, result)[RESULT_TAG] == "dry run: 1 waiting"
    assert "`tierkeeper ledger why ID`" in lines(fleet, result)[-1]


def test_the_demos_release_says_itself_that_it_executes(due, tmp_path, closed_port, monkeypatch):
    """Its process is a real one, and ends where it finds no servers. The run is the workspace's."""
    assert launch(due, "release", **EXECUTE_RELEASE["ops"]["release_ledgers"]["config"]).success
    assert on_bookies(due) == set()
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        "TIERKEEPER_METADATA_STORE": f"zk:127.0.0.1:{closed_port}",
        "TIERKEEPER_METADATA_CONNECT_TIMEOUT_S": "1",
        "TIERKEEPER_STORE_BUCKET": "b",
        "TIERKEEPER_DAGSTER_RUNNER": "local",
    }
    jobs = WorkspaceJobs(
        project=ROOT, dagster_home=home, environment=environment, log=tmp_path / "jobs.log"
    )
    said = r"job release: release: no connection to ZooKeeper .*`tierkeeper doctor`.*\(log: .*jobs"
    with jobs, pytest.raises(JobFailedError, match=said):
        jobs.run("release", print, EXECUTE_RELEASE)
    of_this_code = dg.RunsFilter(tags={".dagster/repository": "__repository__@tierkeeper"})
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        [run] = instance.get_runs(of_this_code)
    assert run.run_config == EXECUTE_RELEASE
    assert run.remote_job_origin is not None  # by it the timeline and the job's page find the run


def test_a_demo_outside_the_project_says_where_to_start_it(tmp_path):
    with pytest.raises(JobFailedError, match=r"workspace\.yaml is not in .*: start this where"):
        WorkspaceJobs(
            project=tmp_path, dagster_home=tmp_path, environment={}, log=tmp_path / "jobs.log"
        )


@pytest.mark.parametrize("name", ["offload", "verify", "release", "scrub", "sweep"])
def test_a_run_with_nothing_due_says_so(lived, name):  # noqa: F811
    empty = lived(by="ledger", ledgers=0)
    result = launch(empty, name)
    assert result.success
    said = tags(empty, result)[RESULT_TAG]
    assert said == ("dry run: nothing was due" if name == "release" else "nothing was due")
    assert name == "sweep" or "nothing was due" in lines(empty, result)[-1]


@pytest.mark.parametrize("changed", [{}, {"topics": [NAME]}], ids=["all", "one topic"])
@pytest.mark.parametrize("name", ["discover", "offload", "verify", "release", "scrub"])
def test_no_run_says_that_it_did_not_yield_its_outputs(due, name, changed):
    result = launch(due, name, **changed)
    assert result.success
    said = [row.user_message for row in due.instance.all_logs(result.run_id)]
    assert not [one for one in said if "did not yield" in one or "implicit Nothing" in one]
