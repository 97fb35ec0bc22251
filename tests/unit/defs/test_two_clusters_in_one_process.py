"""Definitions are a value of the settings: two clusters in one process, and neither knows the
other.
"""

import ast
from dataclasses import replace

import dagster as dg
import pytest

from tests.support.admin_sim import running_admin_simulator, tell_broker
from tests.support.rooms import WRITTEN, imports, inside, tree_of
from tests.support.sim_clients import Process
from tests.support.sim_dagster import SimulatedTiering, add_closed_ledgers
from tests.support.sim_world import World
from tiering_assets.definitions import build_definitions
from tiering_assets.defs.lineage import COVERAGE_FRESH_S
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.defs.shared.run_history import BATCH_TAG
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy
from tiering_assets.resources.metastore import zookeeper_watches
from tiering_assets.resources.settings import (
    AutoSettings,
    BrokerSettings,
    DagsterSettings,
    ObjectiveSettings,
    Settings,
)

TOPIC = "t/ns/persistent/orders"
EAST = Settings(
    dagster=DagsterSettings(cluster="east", owner="team:east", docs_url="https://east.example/d"),
    auto=AutoSettings(enabled=True, interval_s=40),
    objectives=ObjectiveSettings(fresh_s=600),
)
WEST = Settings(
    dagster=DagsterSettings(cluster="west", first_of_instance=False, owner="team:west"),
    auto=AutoSettings(enabled=True, interval_s=70),
    objectives=ObjectiveSettings(fresh_s=6000),
)


@pytest.fixture(scope="module")
def built():
    """Both were built before either is looked at."""
    return {one.dagster.cluster: build_definitions(one) for one in (EAST, WEST)}


def told(defs):
    """What Dagster is told that depends on settings."""
    graph, repository = defs.resolve_asset_graph(), defs.get_repository_def()
    nodes = [graph.get(key) for key in graph.get_all_asset_keys()]
    jobs = [job for job in repository.get_all_jobs() if "tierkeeper/job" in job.tags]
    return {
        "clusters": {node.key.path[0] for node in nodes},
        "checks": {key.asset_key.path[0] for key in graph.asset_check_keys},
        "owners": {owner for node in nodes for owner in node.owners},
        "links": {node.metadata["docs"].value.rpartition("/")[0] for node in nodes},
        "partitions": {n.partitions_def.name for n in nodes if n.partitions_def is not None},
        "fresh_s": {
            node.freshness_policy.fail_window.to_timedelta().total_seconds()
            for node in nodes
            if node.freshness_policy is not None
        },
        "pools": {p for job in jobs for node in job.graph.node_defs for p in node.pools},
        "tags": {job.tags["tierkeeper/cluster"] for job in jobs},
        "release": {
            job.tags["tierkeeper/release"] for job in jobs if "tierkeeper/release" in job.tags
        },
        "sensors": {one.name: one.minimum_interval_seconds for one in repository.sensor_defs},
    }


def test_each_has_the_names_of_its_own_settings(built):
    assert {key: value for key, value in told(built["east"]).items() if key != "sensors"} == {
        "clusters": {"east"},
        "checks": {"east"},
        "owners": {"team:east"},
        "links": {"https://east.example/d"},
        "partitions": {"ledgers_east"},
        "fresh_s": {600, COVERAGE_FRESH_S},
        "pools": {"bookie_read", "release"},
        "tags": {"east"},
        "release": {"east"},
    }
    assert {key: value for key, value in told(built["west"]).items() if key != "sensors"} == {
        "clusters": {"west"},
        "checks": {"west"},
        "owners": {"team:west"},
        "links": {"docs"},
        "partitions": {"ledgers_west"},
        "fresh_s": {6000, COVERAGE_FRESH_S},
        "pools": {"bookie_read_west", "release_west"},
        "tags": {"west"},
        "release": {"west"},
    }


def test_each_has_sensors_of_its_own(built):
    east, west = told(built["east"])["sensors"], told(built["west"])["sensors"]
    assert {f"{name}_west" for name in east} == set(west)
    assert (east["release_due"], west["release_due_west"]) == (40, 70)


@pytest.fixture
def sites(tmp_path, monkeypatch):
    """By cluster, the stack of servers of its own: a topic of one name with two closed ledgers."""
    monkeypatch.chdir(tmp_path)
    with running_admin_simulator() as admin:
        stacks = {}
        for settings in (EAST, WEST):
            world = World(1)
            site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
            add_closed_ledgers(world, site, TOPIC, 2)
            stack = Process(world, settings.dagster.cluster, site).stack()
            tell_broker(admin, stack.settings)
            own = OwnPolicies(default=OwnPolicy(threshold_bytes=0))
            stacks[settings.dagster.cluster] = replace(
                stack,
                own_policies=own,
                settings=replace(
                    stack.settings,
                    broker=BrokerSettings(admin_url=admin.url, timeout_s=10),
                    auto=settings.auto,
                    dagster=settings.dagster,
                ),
            )
        yield stacks


@pytest.fixture
def instance():
    """One, of both clusters."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def run(instance, defs, stack, job, op, **config):
    SimulatedTiering.now_open["stack"] = stack
    return defs.resolve_job_def(job).execute_in_process(
        instance=instance,
        resources={"tiering_stack": SimulatedTiering()},
        raise_on_error=False,
        run_config={"ops": {op: {"config": config}}},
    )


def materialized(instance, cluster):
    keys = [key for key in instance.all_asset_keys() if key.path[0] == cluster]
    return {
        (key.path[1], record.partition_key)
        for key in keys
        for record in instance.fetch_materializations(key, limit=100).records
    }


def test_what_a_run_of_one_tells_is_no_word_on_the_other(built, sites, instance):
    done = run(instance, built["east"], sites["east"], "offload", "offload_ledgers", ledger_ids=[0])
    assert done.success
    assert instance.get_dynamic_partitions("ledgers_east") == [partition_key(0)]
    assert instance.get_dynamic_partitions("ledgers_west") == []
    assert materialized(instance, "west") == set()
    done = run(instance, built["west"], sites["west"], "offload", "offload_ledgers", ledger_ids=[1])
    assert done.success
    assert instance.get_dynamic_partitions("ledgers_west") == [partition_key(1)]
    assert {key for _asset, key in materialized(instance, "west")} == {partition_key(1)}
    assert {key for _asset, key in materialized(instance, "east")} == {partition_key(0)}


def test_a_run_refuses_the_settings_of_the_other(built, sites, instance):
    done = run(instance, built["east"], sites["west"], "discover", "discovered")
    assert not done.success
    [failed] = done.get_step_failure_events()
    assert (
        "'west', but the definitions were loaded for 'east'"
        in failed.step_failure_data.user_failure_data.description
    )
    assert materialized(instance, "east") == materialized(instance, "west") == set()


class Watched:
    """Watches of which none ever fires: what was read stays as it was."""

    changes = 0

    def __init__(self, _store, **_timeouts):
        self.followed = set()

    def follow(self, paths):
        self.followed.update(paths)

    def watch_of(self, path):
        return 1 if path in self.followed else None

    def close(self):
        """Nothing to close."""


def tick(instance, defs, stack, name):
    SimulatedTiering.now_open["stack"] = stack
    sensors = {one.name: one for one in defs.get_repository_def().sensor_defs}
    context = dg.build_sensor_context(
        instance=instance, definitions=defs, resources={"tiering_stack": SimulatedTiering()}
    )
    return sensors[name].evaluate_tick(context)


def test_what_sensors_of_one_remember_is_not_the_others(built, sites, instance, monkeypatch):
    """The topic has one name in both, and while no watch fires, its node is not read again."""
    monkeypatch.setattr(zookeeper_watches, "ZooKeeperWatches", Watched)
    run(instance, built["east"], sites["east"], "offload", "offload_ledgers", ledger_ids=[0, 1])
    asked = tick(instance, built["east"], sites["east"], "offload_threshold").run_requests
    assert asked == []
    again = tick(instance, built["east"], sites["east"], "offload_threshold")
    assert "no topic changed since the last look" in again.skip_message
    [request] = tick(instance, built["west"], sites["west"], "offload_threshold_west").run_requests
    assert request.run_config["ops"]["offload_ledgers"]["config"]["ledger_ids"] == [0, 1]
    assert request.tags[BATCH_TAG].startswith("offload_threshold_west-")


LOADERS = {"tiering_assets.resources.settings_sources", "tiering_assets.resources.settings_file"}


def test_dagsters_rooms_are_given_their_settings():
    """`definitions` reads them, once; a run's resource reads its own for its process."""
    readers = {
        one.importer
        for one in imports()
        if inside(one.importer, "tiering_assets.defs", "tiering_assets.definitions")
        and inside(one.module, *LOADERS)
    }
    assert readers == {"tiering_assets.definitions"}
    calls = [
        node
        for node in ast.walk(tree_of("tiering_assets.definitions"))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "load_settings"
    ]
    assert len(calls) == 1


def test_dagsters_rooms_read_no_variable_but_where_their_instance_is():
    named = [
        ast.unparse(node)
        for name in WRITTEN
        if inside(name, "tiering_assets.defs", "tiering_assets.definitions")
        for node in ast.walk(tree_of(name))
        if isinstance(node, ast.Call) and "environ" in ast.unparse(node.func)
    ]
    assert named == ["os.environ.get('DAGSTER_HOME', '')"]
