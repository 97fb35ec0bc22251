"""Old runs go, and no page says less for it: in Dagster's own instance, on simulated servers."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from tests.support.default_cluster import (
    CERTIFICATES,
    CLUSTER,
    LEDGER_PARTITIONS,
    OFFLOAD_CONTEXTS,
    PARTITION_SET,
    TIERING_BACKLOG,
)
from tests.support.sim_clients import Process
from tests.support.sim_dagster import add_closed_ledgers, hand_out
from tests.support.sim_world import World
from tiering_assets.definitions import defs
from tiering_assets.defs.prune import delete_runs, find_old_runs
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.defs.shared.run_history import BATCH_TAG

TOPIC = "t/ns/persistent/orders"
OPS = {"discover": "discovered", "offload": "offload_ledgers"}


@pytest.fixture
def later():
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture(autouse=True)
def stack(monkeypatch):
    """Ledgers 0 to 2 are closed."""
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    add_closed_ledgers(world, site, TOPIC, 3)
    found = Process(world, "dagster", site).stack()
    hand_out(monkeypatch, found)
    return found


@pytest.fixture
def instance(tmp_path):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


def run(instance, job, tags=None, **config):
    result = defs.resolve_job_def(job).execute_in_process(
        instance=instance, tags=tags, run_config={"ops": {OPS[job]: {"config": config}}}
    )
    return result.run_id


def statuses(instance):
    keys = instance.get_dynamic_partitions(PARTITION_SET)
    return {
        (asset.path[-1], key): value and value.value
        for asset in (CERTIFICATES, OFFLOAD_CONTEXTS)
        for key, value in instance.get_status_by_partition(asset, keys, LEDGER_PARTITIONS).items()
    }


def test_a_run_goes_when_others_have_told_what_it_told(instance, later):
    first = run(instance, "offload", ledger_ids=[0, 1])
    again = run(instance, "offload", ledger_ids=[0])
    assert (
        find_old_runs(instance, CLUSTER, before=later).going == ()
    )  # the first alone told of ledger 1
    third = run(instance, "offload", ledger_ids=[0, 1, 2])
    before = statuses(instance)
    assert len(before) == 6
    old = find_old_runs(instance, CLUSTER, before=later)
    assert old.going == (first, again)
    assert (old.telling, old.of_batches) == (1, 0)
    delete_runs(instance, old)
    assert [run.run_id for run in instance.get_runs()] == [third]
    assert statuses(instance) == before
    assert find_old_runs(instance, CLUSTER, before=later).going == ()


def test_the_roll_ups_keep_what_they_show(instance, later):
    oldest = run(instance, "discover")
    newest = run(instance, "discover")
    delete_runs(instance, find_old_runs(instance, CLUSTER, before=later))
    assert [run.run_id for run in instance.get_runs()] == [newest]
    assert oldest != newest
    assert len(instance.fetch_materializations(TIERING_BACKLOG, limit=9).records) == 1


def test_runs_of_retired_ledgers_go(instance, later):
    told = run(instance, "offload", ledger_ids=[0])
    run(instance, "offload", ledger_ids=[1])
    assert find_old_runs(instance, CLUSTER, before=later).going == ()
    instance.delete_dynamic_partition(PARTITION_SET, partition_key(0))
    assert find_old_runs(instance, CLUSTER, before=later).going == (told,)


def test_runs_of_a_batch_go_together_because_the_next_runs_key_counts_them(instance, later):
    batch = {BATCH_TAG: "offload_threshold-x"}
    run(instance, "offload", tags=batch, ledger_ids=[0])
    run(instance, "offload", tags=batch, ledger_ids=[0])
    old = find_old_runs(instance, CLUSTER, before=later)
    assert (old.going, old.telling, old.of_batches) == ((), 1, 1)
    run(instance, "offload", ledger_ids=[0])
    assert len(find_old_runs(instance, CLUSTER, before=later).going) == 2


def test_young_and_unfinished_runs_stay(instance, later):
    run(instance, "offload", ledger_ids=[0])
    run(instance, "offload", ledger_ids=[0])
    assert find_old_runs(instance, CLUSTER, before=later - timedelta(hours=2)).going == ()
    started = instance.create_run_for_job(defs.resolve_job_def("discover"))
    assert started.run_id not in find_old_runs(instance, CLUSTER, before=later).going
