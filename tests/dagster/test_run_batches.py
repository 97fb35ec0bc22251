"""A batch above two hundred ledgers is a record, and its run works on exactly its bytes."""

from dataclasses import replace
from uuid import uuid4

import dagster as dg
import pytest

from tests.support.admin_sim import running_admin_simulator, tell_broker
from tests.support.sim_clients import Process
from tests.support.sim_dagster import SimulatedTiering, add_closed_ledgers, hand_out
from tests.support.sim_world import World
from tiering_assets.automation.run_batches import read_run_batch, write_run_batch
from tiering_assets.definitions import build_definitions
from tiering_assets.defs.automation.wake import Wake
from tiering_assets.defs.shared.batches import RUN_LEDGERS_MAX
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy
from tiering_assets.records import keys
from tiering_assets.records.key_kinds import is_record_key
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.settings import (
    AutoSettings,
    BrokerSettings,
    DagsterSettings,
    Settings,
)

TOPIC = "t/ns/persistent/orders"
DAY = DagsterSettings(partition_by="day")
AUTO = AutoSettings(enabled=True, batch_ledgers_max=1000, tick_budget_s=60)


@pytest.fixture(scope="module")
def built():
    return {
        by: build_definitions(Settings(dagster=DagsterSettings(partition_by=by), auto=AUTO))
        for by in ("ledger", "day")
    }


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def stack(world):
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    add_closed_ledgers(world, site, TOPIC, 3)
    return Process(world, "dagster", site).stack()


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def by(stack, word):
    dagster = replace(stack.settings.dagster, partition_by=word)
    return replace(stack, settings=replace(stack.settings, dagster=dagster, auto=AUTO))


def run(monkeypatch, built, stack, instance, **config):
    with monkeypatch.context() as handed:
        hand_out(handed, stack)
        return (
            built[stack.settings.dagster.partition_by]
            .resolve_job_def("offload")
            .execute_in_process(
                instance=instance,
                raise_on_error=False,
                run_config={"ops": {"offload_ledgers": {"config": config}}},
            )
        )


def said(result):
    [failed] = result.get_step_failure_events()
    return failed.step_failure_data.user_failure_data.description


def offloaded(stack):
    info, _node = stack.topics.read(TOPIC)
    return [i for i in range(3) if info.ledger(i).offload is not None]


def test_a_run_works_on_the_ledgers_of_its_record(monkeypatch, built, stack, instance):
    day = by(stack, "day")
    written = write_run_batch(day, "offload", [2, 0])
    assert is_record_key(written.key)
    assert written.record.ledger_ids == (0, 2)
    config = {"batch_key": written.key, "batch_sha256": written.sha256}
    assert run(monkeypatch, built, day, instance, **config).success
    assert offloaded(stack) == [0, 2]


def test_a_run_refuses_any_other_bytes_and_changes_nothing(
    monkeypatch, built, stack, instance, world
):
    day = by(stack, "day")
    written, other = (write_run_batch(day, "offload", ids) for ids in ([0, 1], [2]))

    def refused(key, sha256, **more):
        return said(
            run(monkeypatch, built, day, instance, batch_key=key, batch_sha256=sha256, **more)
        )

    assert f"asked for the batch with SHA-256 {written.sha256}, found {other.sha256}" in refused(
        other.key, written.sha256
    )
    assert "found no such record" in refused(keys.run_batch("0" * 64), written.sha256)
    assert "expected run-batches/<digest>.json" in refused(keys.attempt(0, uuid4()), "x")
    assert "not by both" in refused(written.key, written.sha256, ledger_ids=[1])
    world.objects.rot(stack.book.prefix + written.key, b"{}")
    assert "no ledger is worked on" in refused(written.key, written.sha256)
    assert offloaded(stack) == []


def test_where_partitions_are_ledgers_a_record_is_no_way_around_the_bound(
    monkeypatch, built, stack, instance
):
    written = write_run_batch(stack, "offload", range(RUN_LEDGERS_MAX + 1))
    config = {"batch_key": written.key, "batch_sha256": written.sha256}
    assert "201 ledgers are given by id" in said(
        run(monkeypatch, built, by(stack, "ledger"), instance, **config)
    )


def tick(built, stack, instance):
    SimulatedTiering.now_open["stack"] = stack
    defs = built[stack.settings.dagster.partition_by]
    [sensor] = [
        one for one in defs.get_repository_def().sensor_defs if one.name == "offload_threshold"
    ]
    context = dg.build_sensor_context(
        instance=instance, definitions=defs, resources={"tiering_stack": SimulatedTiering()}
    )
    return sensor.evaluate_tick(context).run_requests


@pytest.fixture
def many(world, stack, monkeypatch, tmp_path):
    """With a topic of 250 more, which are all due; ZooKeeper tells of no change."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Wake, "may_skip", lambda *_any, **_how: None)
    add_closed_ledgers(world, world.sites[0], "t/ns/persistent/more", 250)
    with running_admin_simulator() as admin:
        tell_broker(admin, stack.settings)
        broker = BrokerSettings(admin_url=admin.url, timeout_s=10)
        yield replace(
            stack,
            own_policies=OwnPolicies(default=OwnPolicy(threshold_bytes=0)),
            settings=replace(stack.settings, broker=broker),
        )


def test_a_sensor_asks_for_a_large_run_by_key_and_digest(built, many, instance):
    day = by(many, "day")
    [request] = tick(built, day, instance)
    config = request.run_config["ops"]["offload_ledgers"]["config"]
    assert set(config) == {"batch_key", "batch_sha256", "when_due"}
    ids = read_run_batch(day, config["batch_key"], config["batch_sha256"])
    assert len(ids) == int(request.tags["tierkeeper/ledgers"]) == 253
    # Ledgers of an unfinished run are in no other, however its ids were given.
    unfinished = dg.DagsterRun(
        job_name="offload",
        run_id=str(uuid4()),
        run_config=request.run_config,
        status=dg.DagsterRunStatus.STARTED,
        tags=request.tags,
    )
    instance.add_run(unfinished)
    assert tick(built, day, instance) == []
    # One whose record is gone refuses to work, so its ledgers are asked for again.
    with pytest.raises(RefusedError, match="found no such record"):
        read_run_batch(day, keys.run_batch("0" * 64), config["batch_sha256"])


def test_where_partitions_are_ledgers_runs_have_two_hundred_at_most(built, many, instance):
    requests = tick(built, by(many, "ledger"), instance)
    sizes = [
        len(one.run_config["ops"]["offload_ledgers"]["config"]["ledger_ids"]) for one in requests
    ]
    assert sum(sizes) == 253
    assert max(sizes) <= RUN_LEDGERS_MAX
    assert many.book.keys(keys.RUN_BATCHES) == []


def test_a_run_whose_record_cannot_be_read_keeps_its_ledgers_from_nobody(
    built, many, instance, world
):
    day = by(many, "day")
    [request] = tick(built, day, instance)
    config = request.run_config["ops"]["offload_ledgers"]["config"]
    world.objects.delete(many.book.prefix + config["batch_key"])
    instance.add_run(
        dg.DagsterRun(
            job_name="offload",
            run_id=str(uuid4()),
            run_config=request.run_config,
            status=dg.DagsterRunStatus.STARTED,
            tags=request.tags,
        )
    )
    assert len(tick(built, day, instance)) == 1
