"""`objectives_met` and the backlog's figures, in Dagster's own runs on simulated servers."""

import json
import re
import sys
from contextlib import contextmanager
from dataclasses import replace

import dagster as dg
import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.default_cluster import OBJECTIVES_MET, TIERING_BACKLOG
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.definitions import defs
from tiering_assets.defs.explain import chart
from tiering_assets.defs.lineage import define_assets
from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.resources import TieringStack
from tiering_assets.fleet import backlog as fleet_figures
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.settings import BrokerSettings, DagsterSettings, ObjectiveSettings

TOPIC = "t/ns/persistent/orders"
NAME = "persistent://t/ns/orders"
NO_LEDGER = 999
NONE = ObjectiveSettings(copy_lag_age_s_max=0, delete_lag_age_s_max=0)


@pytest.fixture
def use(monkeypatch):
    """Runs meet a closed ledger of nine bytes that is stuck, because its broker is away."""
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    site.broker.produce(TOPIC, [b"first", b"last"])
    site.broker.roll_over(TOPIC)
    site.cluster.metadata.put("/admin/policies/t/ns", json.dumps({"offload_threshold": 0}).encode())
    world.scheduler.now += 100
    with running_admin_simulator() as gone:
        broker = BrokerSettings(admin_url=gone.url, timeout_s=2)
    found = Process(world, "dagster", site).stack()

    def set_objectives(**objectives):
        settings = replace(found.settings, broker=broker, objectives=replace(NONE, **objectives))

        @contextmanager
        def connect(_self, _context, _cluster, *, with_tasks=False):
            yield replace(found, settings=settings)

        monkeypatch.setattr(TieringStack, "connect", connect)

    return set_objectives


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def run(instance, job, op, **config):
    return defs.resolve_job_def(job).execute_in_process(
        instance=instance, raise_on_error=False, run_config={"ops": {op: {"config": config}}}
    )


def evaluation(instance, run_id):
    [record] = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    return record.dagster_event.event_specific_data


def status(instance):
    [newest, *_older] = instance.event_log_storage.get_asset_check_execution_history(
        OBJECTIVES_MET, limit=5
    )
    return newest.status.value


def test_without_objectives_it_warns_and_says_which_to_set(use, instance):
    use()
    result = run(instance, "discover", "discovered")
    assert result.success
    found = evaluation(instance, result.run_id)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert found.description.startswith("no objective is set, so no lag is judged. Next: set ")
    for name in re.findall(r"objectives\.(\w+)", found.description):
        assert hasattr(NONE, name)
    assert status(instance) == "FAILED"
    assert found.target_materialization_data.run_id == result.run_id


def test_objectives_that_are_met(use, instance):
    use(copy_lag_bytes_max=100, copy_lag_age_s_max=10_000, stuck_max=2)
    found = evaluation(instance, run(instance, "discover", "discovered").run_id)
    assert (found.passed, found.description) == (True, "3 objectives met")


@pytest.mark.parametrize(
    ("limit", "severity", "word"),
    [(10, dg.AssetCheckSeverity.WARN, "near"), (8, dg.AssetCheckSeverity.ERROR, "beyond")],
)
def test_what_is_near_a_limit_warns_and_what_is_beyond_fails(use, instance, limit, severity, word):
    use(copy_lag_bytes_max=limit)
    result = run(instance, "discover", "discovered")
    assert result.success  # the run did its work; the check is what is red
    found = evaluation(instance, result.run_id)
    assert (found.passed, found.severity) == (False, severity)
    assert found.description == (
        f"copy_lag_bytes is 9, {word} objectives.copy_lag_bytes_max = {limit}; most in {NAME}"
    )
    told = {name: value.value for name, value in found.metadata.items() if "_lag" in name}
    assert told == {"found_copy_lag_bytes": 9.0}
    [row] = [record.data for record in found.metadata["objectives"].records]
    assert (row["figure"], row["limit"]) == ("copy_lag_bytes", float(limit))
    assert row["worst"] == f"{NAME} 9"
    assert status(instance) == "FAILED"


def test_the_backlog_carries_the_figures_as_numbers(use, instance):
    use()
    run(instance, "discover", "discovered")
    [record] = instance.fetch_materializations(TIERING_BACKLOG, limit=5).records
    told = {name: value.value for name, value in record.asset_materialization.metadata.items()}
    assert told["copy_lag_oldest_seconds"] >= 99  # clocks differ
    expected = {
        "copy_lag_bytes": 9,
        "delete_lag_bytes": 0,
        "delete_lag_oldest_seconds": 0.0,
        "stuck_ledgers": 1,
        "reloads": "0 in the last hour",
    }
    assert expected.items() <= told.items()
    assert "verified_share" not in told  # nothing is offloaded: no share of it is anything


def test_a_count_has_a_picture_and_does_not_fail_by_it(use, instance, monkeypatch):
    use()
    run(instance, "discover", "discovered")

    def full(*_figures):
        raise OSError("no space left")

    monkeypatch.setattr(chart, "drawn", full)
    assert run(instance, "discover", "discovered").success
    without, drawn = instance.fetch_materializations(TIERING_BACKLOG, limit=2).records
    assert "data:image/png" in drawn.asset_materialization.metadata["chart"].value
    assert "chart" not in without.asset_materialization.metadata


def test_a_count_of_some_topics_tells_no_fleets_figures_and_judges_none(use, instance):
    use(copy_lag_bytes_max=1)
    result = run(instance, "discover", "discovered", topics=[NAME])
    assert result.success
    [record] = instance.fetch_materializations(TIERING_BACKLOG, limit=5).records
    assert "copy_lag_bytes" not in record.asset_materialization.metadata
    assert not instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)


def test_the_check_runs_by_itself_too(use, instance):
    use(stuck_max=1)
    job = dg.define_asset_job("judge", dg.AssetSelection.checks(OBJECTIVES_MET))
    alone = dg.Definitions(
        assets=define_assets(Dressing.of(DagsterSettings()), fresh_s=3600),
        jobs=[job],
        resources={"tiering_stack": TieringStack()},
        executor=dg.in_process_executor,
    )
    result = alone.resolve_job_def("judge").execute_in_process(instance=instance)
    assert evaluation(instance, result.run_id).description.startswith("stuck is 1, near")
    assert not instance.fetch_materializations(TIERING_BACKLOG, limit=5).records


def observations(instance):
    records = instance.fetch_observations(TIERING_BACKLOG, limit=5).records
    return [
        {name: value.value for name, value in record.asset_observation.metadata.items()}
        for record in records
    ]


@pytest.mark.parametrize(
    ("job", "op"), [("offload", "offload_ledgers"), ("release", "release_ledgers")]
)
def test_a_run_that_fails_tells_the_figures_too(use, instance, job, op):
    use(copy_lag_bytes_max=1)
    result = run(instance, job, op, ledger_ids=[NO_LEDGER])
    assert not result.success
    [told] = observations(instance)
    assert (told["copy_lag_bytes"], told["stuck_ledgers"]) == (9, 1)
    assert status(instance) == "FAILED"


def test_figures_that_cannot_be_taken_do_not_hide_what_a_run_came_to(use, instance, monkeypatch):
    use()

    def away(*_stack, **_how):
        raise MetadataError("no ZooKeeper")

    monkeypatch.setattr(fleet_figures, "take_backlog", away)
    result = run(instance, "offload", "offload_ledgers", ledger_ids=[NO_LEDGER])
    [failure] = [event for event in result.all_events if event.is_step_failure]
    assert f"ledger {NO_LEDGER}" in failure.step_failure_data.user_failure_data.description
    assert observations(instance) == []


def test_a_run_counts_topics_where_the_package_for_tables_is_missing(use, instance, monkeypatch):
    use(copy_lag_bytes_max=1)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    run(instance, "offload", "offload_ledgers", ledger_ids=[NO_LEDGER])
    [told] = observations(instance)
    assert (told["copy_lag_bytes"], told["stuck_ledgers"]) == (9, 1)


def test_the_backlog_has_a_freshness_policy():
    spec = defs.resolve_asset_graph().get(TIERING_BACKLOG).freshness_policy
    assert isinstance(spec, dg.FreshnessPolicy)
