"""What Dagster loads, as a table; and that loading it is cheap and passes Dagster's own checks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.support.default_cluster import CLUSTER, LEDGER_PARTITIONS, PARTITION_SET
from tiering_assets.definitions import defs
from tiering_assets.defs.jobs import define_jobs

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

# asset: group, kinds, upstream, partitioned, checks
GRAPH = {
    "topics": ("sources", {"pulsar"}, set(), False, set()),
    "bookkeeper_ledgers": ("sources", {"pulsar"}, set(), False, set()),
    "bucket": ("sources", {"s3"}, set(), False, set()),
    "sealed_ledgers": ("ingest", {"pulsar"}, {"topics", "bookkeeper_ledgers"}, True, set()),
    "tiering_backlog": ("ingest", {"pulsar"}, {"sealed_ledgers"}, False, {"objectives_met"}),
    "offloaded_objects": (
        "offload",
        {"spark", "s3"},
        {"sealed_ledgers"},
        True,
        {"read_back_equal"},
    ),
    "index_objects": ("offload", {"spark", "s3"}, {"sealed_ledgers"}, True, {"index_suite"}),
    "certificates": (
        "integrity",
        {"spark", "greatexpectations"},
        {"offloaded_objects", "index_objects"},
        True,
        set(),
    ),
    "offload_contexts": ("release", {"pulsar"}, {"certificates"}, True, set()),
    "deleted_bookie_ledgers": (
        "release",
        {"pulsar"},
        {"offload_contexts"},
        True,
        {"expectation_suites", "released_safely"},
    ),
    "released_ledgers": ("release", {"s3"}, {"deleted_bookie_ledgers"}, False, set()),
    "scrubbed_ledgers": ("integrity", {"s3"}, {"offload_contexts", "bucket"}, False, set()),
    "swept_leavings": ("integrity", {"s3"}, {"offload_contexts", "bucket"}, False, set()),
    "catalogue": (
        "integrity",
        {"deltalake"},
        {
            *("sealed_ledgers", "offloaded_objects", "certificates", "offload_contexts"),
            *("deleted_bookie_ledgers", "scrubbed_ledgers"),
        },
        False,
        set(),
    ),
    "lineage": (
        "integrity",
        {"deltalake"},
        {"offloaded_objects", "certificates"},
        False,
        {"covered"},
    ),
    "topic_audit": ("integrity", {"jupyter"}, {"catalogue", "lineage"}, False, set()),
}
POOLS = {
    "discovered": set(),
    "offload_ledgers": {"bookie_read"},
    "verify_ledgers": {"bookie_read"},
    "release_ledgers": {"release"},
    "pulsar__scrubbed_ledgers": {"bookie_read"},
    "pulsar__swept_leavings": set(),
    "compared_blocks": set(),
    "pulsar__topic_audit": set(),
}
JOBS = {
    "discover": {"sealed_ledgers", "tiering_backlog", "objectives_met"},
    "offload": {"offloaded_objects", "index_objects", "certificates", "offload_contexts"},
    "verify": {"read_back_equal", "index_suite", "released_safely"},
    "release": {"deleted_bookie_ledgers", "released_ledgers"},
    "scrub": {"scrubbed_ledgers"},
    "sweep": {"swept_leavings"},
    "coverage": {"catalogue", "lineage", "covered"},
    "audit": {"topic_audit"},
}


@pytest.fixture
def environment(tmp_path):
    """A person's shell with a DAGSTER_HOME that is only this test's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIERKEEPER_")}
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster_home/dagster.yaml").read_text())
    return {
        **kept,
        "DAGSTER_HOME": str(tmp_path),
        "DAGSTER_DG_UPDATE_CHECK_ENABLED": "0",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }


def run(*words, environment):
    return subprocess.run(
        [str(BIN / words[0]), *words[1:]],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_the_graph_is_this_one():
    graph = defs.resolve_asset_graph()
    found = {}
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert key.path[0] == "pulsar"
        found[key.path[1]] = (
            node.group_name,
            node.kinds,
            {parent.path[1] for parent in node.parent_keys},
            node.partitions_def is not None,
            {check.name for check in node.check_keys},
        )
        if node.partitions_def is not None:
            assert node.partitions_def == LEDGER_PARTITIONS
    assert found == GRAPH


def test_the_graph_begins_where_nobody_here_makes_anything():
    graph = defs.resolve_asset_graph()
    roots = {key.path[1] for key in graph.get_all_asset_keys() if not graph.get(key).parent_keys}
    assert roots == {"topics", "bookkeeper_ledgers", "bucket"}
    external = {key.path[1] for key in graph.get_all_asset_keys() if graph.get(key).is_external}
    assert external == roots


def test_the_partition_set_carries_the_cluster():
    assert PARTITION_SET == "ledgers_pulsar"


def test_every_asset_is_described_for_operators():
    graph = defs.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        assert len(graph.get(key).description or "") > 60, key


def test_every_asset_links_to_a_page_and_to_code_that_exist():
    graph = defs.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        metadata = graph.get(key).metadata
        assert (ROOT / metadata["docs"].value).is_file(), key
        code = (ROOT / metadata["code"].value).read_text()
        assert f"cluster.{key.path[1]}" in code, key


def test_what_reads_bookies_and_what_releases_is_in_a_pool():
    found = {}
    for name in JOBS:
        for node in defs.resolve_job_def(name).graph.node_defs:
            found[node.name] = node.pools
    assert found == POOLS


def test_owner_and_links_are_the_deployments(environment):
    code = (
        "import json\n"
        "from tiering_assets.definitions import defs\n"
        "graph = defs.resolve_asset_graph()\n"
        "nodes = [graph.get(key) for key in graph.get_all_asset_keys()]\n"
        "print(json.dumps([[node.owners, node.metadata['docs'].value, "
        "node.metadata['code'].value] for node in nodes]))"
    )
    named = {
        **environment,
        "TIERKEEPER_DAGSTER_OWNER": "team:storage",
        "TIERKEEPER_DAGSTER_DOCS_URL": "https://docs.example.com/tierkeeper/",
        "TIERKEEPER_DAGSTER_CODE_URL": "https://code.example.com/tierkeeper/blob/main/",
    }
    found = json.loads(run("python", "-c", code, environment=named).stdout)
    assert len(found) == len(GRAPH)
    for owners, link, code_link in found:
        assert code_link.startswith("https://code.example.com/tierkeeper/blob/main/tiering_assets/")
        assert code_link.endswith(".py")
        assert owners == ["team:storage"]
        assert link.startswith("https://docs.example.com/tierkeeper/")
        assert link.endswith(".md")
    assert {
        tuple(owners)
        for owners, _link, _code in json.loads(
            run("python", "-c", code, environment=environment).stdout
        )
    } == {()}
    wrong = {**environment, "TIERKEEPER_DAGSTER_OWNER": "storage people"}
    assert (
        "dagster.owner is 'storage people'" in run("python", "-c", code, environment=wrong).stderr
    )


def test_checks_of_ledgers_are_partitioned_and_none_is_blocking():
    """Blocking holds only inside one run, and an unpartitioned check lets other ledgers through."""
    graph = defs.resolve_asset_graph()
    specs = {key.name: graph.get_check_spec(key) for key in graph.asset_check_keys}
    assert len(specs) == 6
    assert {spec.blocking for spec in specs.values()} == {False}
    of_the_fleet = {name for name, spec in specs.items() if spec.partitions_def is None}
    assert of_the_fleet == {"objectives_met", "covered"}
    assert {spec.partitions_def for spec in specs.values()} == {None, LEDGER_PARTITIONS}


@pytest.mark.parametrize("name", JOBS)
def test_jobs_select_exactly_this(name):
    graph = defs.resolve_asset_graph()
    (planned,) = [job for job in define_jobs(CLUSTER) if job.name == name]
    assets = {key.path[1] for key in planned.selection.resolve(graph)}
    checks = {key.name for key in planned.selection.resolve_checks(graph)}
    assert assets | checks == JOBS[name]
    job = defs.resolve_job_def(name)
    assert job.tags["tierkeeper/job"] == name
    assert job.executor_def.name == "in_process"


def test_there_is_one_job_more_that_has_no_asset_and_a_form_that_is_filled_in():
    repository = defs.get_repository_def()
    named = {name for name in repository.job_names if not name.startswith("__")}
    assert named == {*JOBS, "pause_tiering"}
    job = defs.resolve_job_def("pause_tiering")
    assert job.tags["tierkeeper/job"] == "pause_tiering"
    assert job.executor_def.name == "in_process"
    [op] = job.graph.node_defs
    schema: Any = op.config_schema
    config = schema.config_type.fields
    assert {name: field.default_value for name, field in config.items()} == {
        "topics": [],
        "namespaces": [],
        "all": False,
        "mode": "paused",
        "reason": "",
    }
    assert all(field.description for field in config.values())


def test_the_sensors_are_these_and_each_asks_for_one_job():
    repository = defs.get_repository_def()
    found = {
        sensor.name: {target.job_name for target in sensor.targets}
        for sensor in repository.sensor_defs
    }
    assert found == {
        "ledger_rollover": set(),
        "offload_threshold": {"offload"},
        "release_due": {"release"},
        "verify_due": {"scrub"},
        "backlog_due": {"discover"},
        "coverage_due": {"coverage"},
        "catalogue": set(),
        "stuck": set(),
        "retire_partitions": set(),
        "run_failure": set(),
    }
    assert not repository.schedule_defs


def test_dagster_validates_the_workspace(environment):
    done = run(
        "dagster", "definitions", "validate", "-w", "workspace.yaml", environment=environment
    )
    assert done.returncode == 0, done.stderr
    assert "Validation successful for code location tierkeeper" in done.stdout + done.stderr


def test_dg_checks_the_definitions(environment):
    done = run("dg", "check", "defs", environment=environment)
    assert done.returncode == 0, done.stderr
    assert "All definitions loaded successfully" in done.stdout + done.stderr


def test_the_cluster_names_keys_and_partitions(environment):
    code = (
        "from tiering_assets.definitions import defs\n"
        "graph = defs.resolve_asset_graph()\n"
        "[key] = [key for key in graph.get_all_asset_keys() if key.path[1] == 'certificates']\n"
        "print(key.to_user_string(), graph.get(key).partitions_def.name)"
    )
    named = {**environment, "TIERKEEPER_DAGSTER_CLUSTER": "west_1"}
    done = run("python", "-c", code, environment=named)
    assert done.stdout.split() == ["west_1/certificates", "ledgers_west_1"]
    wrong = {**environment, "TIERKEEPER_DAGSTER_CLUSTER": "west-1"}
    assert "dagster.cluster is 'west-1'" in run("python", "-c", code, environment=wrong).stderr


@pytest.mark.parametrize("path", ["dagster_home/dagster.yaml", "deploy/dagster.yaml"])
def test_instances_send_nothing_and_limit_what_the_jobs_are_tagged_with(path):
    config = yaml.safe_load((ROOT / path).read_text())
    assert config["telemetry"] == {"enabled": False}
    assert config["nux"] == {"enabled": False}
    (limit,) = config["concurrency"]["runs"]["tag_concurrency_limits"]
    assert defs.resolve_job_def("release").tags[limit["key"]] == CLUSTER.name
    assert limit["value"] == {"applyLimitPerUniqueValue": True}
    pools = config["concurrency"]["pools"]
    assert pools["granularity"] == "run"  # a killed run must not hold a slot that only steps free
    assert pools["default_limit"] < config["concurrency"]["runs"]["max_concurrent_runs"]
    assert config["run_monitoring"]["poll_interval_seconds"] <= 60
    assert config["run_monitoring"]["free_slots_after_run_end_seconds"] > 0
    assert config["run_retries"]["retry_on_asset_or_op_failure"] is False
