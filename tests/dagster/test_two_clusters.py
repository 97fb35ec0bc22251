"""Two clusters in one Dagster instance, and an instance of before runs told their cluster."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import dagster as dg
import pytest

from tests.support.default_cluster import CLUSTER, PARTITION_SET
from tiering_assets.defs.automation.all import sensors_of
from tiering_assets.defs.automation.cursor import read_cursor, write_cursor
from tiering_assets.defs.prune import find_old_runs
from tiering_assets.defs.shared.names import CLUSTER_TAG
from tiering_assets.defs.shared.run_history import (
    BATCH_TAG,
    JOB_TAG,
    our_records,
    read_history,
    request_of,
)
from tiering_assets.policy.admission_rules import Batch, Ready
from tiering_assets.resources.settings import Settings

HORIZON = timedelta(days=1)
OF_BEFORE = {  # what instances know by name since the first version
    "sensors": [
        "ledger_rollover",
        "offload_threshold",
        "release_due",
        "verify_due",
        "backlog_due",
        "stuck",
        "retire_partitions",
        "run_failure",
    ],
    "pools": ["bookie_read", "release"],
    "partitions": "ledgers_pulsar",
}
SINCE = ["catalogue", "coverage_due"]
SECOND = """
import json
from tiering_assets.definitions import defs
repository = defs.get_repository_def()
jobs = {job.name: job.tags for job in repository.get_all_jobs()}
nodes = [node for job in repository.get_all_jobs() for node in job.graph.node_defs]
graph = defs.resolve_asset_graph()
sets = {graph.get(key).partitions_def for key in graph.get_all_asset_keys()} - {None}
print(json.dumps({
    "sensors": [one.name for one in repository.sensor_defs],
    "pools": sorted({pool for node in nodes for pool in node.pools}),
    "partitions": [one.name for one in sets],
    "clusters": sorted({tags.get("tierkeeper/cluster") for name, tags in jobs.items()
                        if "tierkeeper/job" in tags}),
    "release": jobs["release"].get("tierkeeper/release"),
}))
"""


@pytest.fixture
def instance(tmp_path):
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def add_run(instance, cluster, *, job="offload", ids=(42,), status=dg.DagsterRunStatus.FAILURE):
    """A run of a cluster; of `None` one of before there was a tag."""
    tags = {JOB_TAG: job} | ({} if cluster is None else {CLUSTER_TAG: cluster})
    run = dg.DagsterRun(
        job_name=job,
        run_id=str(uuid4()),
        run_config={"ops": {"offload_ledgers": {"config": {"ledger_ids": [*ids]}}}},
        tags=tags,
        status=status,
    )
    return instance.add_run(run).run_id


def history(instance, batches=None):
    now = datetime.now(UTC)
    return read_history(
        instance, CLUSTER, "offload", now=now, horizon=HORIZON, batches=batches or (lambda *_: ())
    )


def test_another_clusters_run_of_the_same_ledger_is_not_ours(instance):
    add_run(instance, "other")
    add_run(instance, "other", ids=(43,), status=dg.DagsterRunStatus.STARTED)
    found = history(instance)
    assert (found.tries, found.running, found.unfinished_runs) == ({}, frozenset(), 0)
    add_run(instance, CLUSTER.name)
    assert history(instance).tries == {42: 1}


def test_another_clusters_count_does_not_put_ours_off(instance):
    add_run(instance, "other", job="discover", ids=())
    assert our_records(instance, CLUSTER, "discover", limit=1) == []
    ours = add_run(instance, CLUSTER.name, job="discover", ids=())
    add_run(instance, "other", job="discover", ids=())
    [newest] = our_records(instance, CLUSTER, "discover", limit=1)
    assert newest.dagster_run.run_id == ours


def test_runs_of_before_the_upgrade_still_count(instance):
    add_run(instance, None)
    add_run(instance, None, ids=(7,), status=dg.DagsterRunStatus.STARTED)
    found = history(instance)
    assert (found.tries, found.running, found.unfinished_runs) == ({42: 1}, {7}, 1)


def test_a_batch_of_before_the_upgrade_gets_no_key_that_was_used(instance):
    batch = Batch((Ready(ledger_id=42, ml_name="t/ns/persistent/x", bytes=1),))

    def key():
        op, sensor = "offload_ledgers", "offload_threshold"
        return request_of(instance, CLUSTER, batch, job="offload", op=op, sensor=sensor, config={})

    before = key()
    run = dg.DagsterRun(
        job_name="offload",
        run_id=str(uuid4()),
        tags={BATCH_TAG: before.tags[BATCH_TAG], JOB_TAG: "offload"},
        status=dg.DagsterRunStatus.FAILURE,
    )
    instance.add_run(run)
    assert key().run_key != before.run_key


def test_only_our_runs_are_pruned(instance):
    later = datetime.now(UTC) + timedelta(hours=1)
    ours = {add_run(instance, CLUSTER.name), add_run(instance, None)}
    add_run(instance, "other")
    somebodys = dg.DagsterRun(
        job_name="offload", run_id=str(uuid4()), status=dg.DagsterRunStatus.SUCCESS
    )
    instance.add_run(somebodys)
    assert set(find_old_runs(instance, CLUSTER, before=later).going) == ours


def test_a_cursor_of_before_the_upgrade_is_gone_on_with():
    assert read_cursor(CLUSTER, '{"after": "t/ns/persistent/x", "version": 1}').text("after")
    assert read_cursor(CLUSTER, write_cursor(CLUSTER, after="x")).text("after") == "x"
    other = json.dumps({"version": 1, "cluster": "other", "after": "x"})
    assert read_cursor(CLUSTER, other).text("after") is None
    assert "'other'" in str(read_cursor(CLUSTER, other).problem)


def test_a_first_cluster_keeps_its_names():
    assert {
        "sensors": [one.name for one in sensors_of(Settings()) if one.name not in SINCE],
        "pools": [CLUSTER.bookie_read_pool, CLUSTER.release_pool],
        "partitions": PARTITION_SET,
    } == OF_BEFORE


def test_a_second_cluster_shares_no_name_but_the_jobs():
    environment = os.environ | {
        "TIERKEEPER_DAGSTER_CLUSTER": "west",
        "TIERKEEPER_DAGSTER_FIRST_OF_INSTANCE": "false",
    }
    done = subprocess.run(
        [sys.executable, "-c", SECOND], env=environment, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert sorted(found["sensors"]) == sorted(
        f"{name}_west" for name in [*OF_BEFORE["sensors"], *SINCE]
    )
    assert found["pools"] == [f"{name}_west" for name in OF_BEFORE["pools"]]
    assert found["partitions"] == ["ledgers_west"]
    assert found["clusters"] == ["west"]
    assert found["release"] == "west"
