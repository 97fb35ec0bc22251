"""What is rebuilt from the records equals what the jobs had told, by asset, partition and metadata.

Dagster's own jobs tell it first, on simulated servers, in an instance that is then lost.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from tests.support.default_cluster import (
    CERTIFICATES,
    CLUSTER,
    DELETED_BOOKIE_LEDGERS,
    INDEX_OBJECTS,
    INDEX_SUITE,
    OFFLOAD_CONTEXTS,
    OFFLOADED_OBJECTS,
    PARTITION_SET,
    READ_BACK_EQUAL,
    RELEASED_SAFELY,
    SEALED_LEDGERS,
)
from tests.support.sim_clients import Process
from tests.support.sim_dagster import add_closed_ledgers, executing, hand_out
from tests.support.sim_world import World
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.definitions import defs
from tiering_assets.defs import rebuild as module
from tiering_assets.defs.rebuild import rebuild
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.defs.shared.run_history import JOB_TAG
from tiering_assets.ground.moments import moment
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.records import keys
from tiering_assets.resources.errors import FormatError, RefusedError, SettingsError

TOPIC = "t/ns/persistent/orders"
NAME = "persistent://t/ns/orders"
OPS = {
    "discover": "discovered",
    "offload": "offload_ledgers",
    "release": "release_ledgers",
}
OFFLOADED = (OFFLOADED_OBJECTS, INDEX_OBJECTS, CERTIFICATES)
ASSETS = (SEALED_LEDGERS, *OFFLOADED, OFFLOAD_CONTEXTS, DELETED_BOOKIE_LEDGERS)
DAY_S = 24 * 3600


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def site(world):
    """Ledgers 0 to 4 are closed and 5 is open."""
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    add_closed_ledgers(world, site, TOPIC, 5)
    return site


@pytest.fixture
def stack(world, site, monkeypatch):
    found = Process(world, "dagster", site).stack()
    hand_out(monkeypatch, found)
    return found


@pytest.fixture
def told(world, stack):
    """An instance that saw ledger 0 released, 1 published, 2 verified, 3 quarantined; 4 waits."""
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, "discover", max_ledgers=4).success
        assert run(instance, "offload", ledger_ids=[0, 1]).success
        assert run(instance, "offload", OFFLOADED, ledger_ids=[2]).success
        world.objects.alter_range(lambda body: bytes(byte ^ 1 for byte in body))
        assert not run(instance, "offload", OFFLOADED, ledger_ids=[3]).success
        world.scheduler.now += DAY_S
        assert run(instance, "release", ledger_ids=[0], publish_waiting=False).success
        # Everything that is done is told again, as a rebuild tells it.
        assert run(instance, "offload", OFFLOADED, ledger_ids=[0, 1, 2]).success
        assert run(instance, "offload", ledger_ids=[0, 1]).success
        assert run(instance, "release", ledger_ids=[0], publish_waiting=False).success
        yield instance


@pytest.fixture
def fresh(tmp_path):
    """On SQLite, as in an empty DAGSTER_HOME."""
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


def run(instance, job, assets=None, **config):
    return defs.resolve_job_def(job).execute_in_process(
        instance=instance,
        asset_selection=assets,
        raise_on_error=False,
        run_config={"ops": {OPS[job]: {"config": executing(job, config)}}},
    )


def materialized(instance, asset):
    """The record of every partition's newest materialization, by ledger."""
    records = instance.fetch_materializations(asset, limit=1000, ascending=True).records
    return {int(record.partition_key): record for record in records}


def shown(records):
    return {
        ledger_id: {
            "said": record.asset_materialization.description,
            **{k: v.value for k, v in record.asset_materialization.metadata.items()},
        }
        for ledger_id, record in records.items()
    }


def evaluated(instance, check):
    """Every partition's newest evaluation, by ledger."""
    found: dict[int, Any] = {}
    for record in instance.event_log_storage.get_asset_check_execution_history(check, limit=1000):
        evaluation = record.event.dagster_event.event_specific_data
        if record.partition is None:
            continue  # what a run planned without naming a ledger
        found.setdefault(int(evaluation.partition), evaluation)  # newest first
    return found


def judged(evaluations):
    return {
        ledger_id: {
            "passed": evaluation.passed,
            "said": evaluation.description,
            **{k: v.value for k, v in evaluation.metadata.items()},
        }
        for ledger_id, evaluation in evaluations.items()
    }


def without(shown, *names):
    return {i: {k: v for k, v in one.items() if k not in names} for i, one in shown.items()}


def again(stack, instance, **how):
    return rebuild(stack, instance, CLUSTER, workers=1, **how)


def with_settings(stack, **sections):
    return replace(stack, settings=replace(stack.settings, **sections))


def test_assets_equal_what_the_jobs_had_told(stack, told, fresh):
    found = again(stack, fresh)
    assert (found.ledgers, found.partitions_added, found.untried) == (4, 4, 1)
    assert fresh.get_dynamic_partitions(PARTITION_SET) == [partition_key(i) for i in range(4)]
    expected = {
        SEALED_LEDGERS: {0, 1, 2, 3},
        **{asset: {0, 1, 2} for asset in OFFLOADED},
        OFFLOAD_CONTEXTS: {0, 1},
        DELETED_BOOKIE_LEDGERS: {0},
    }
    for asset, ledgers in expected.items():
        rebuilt = shown(materialized(fresh, asset))
        assert set(rebuilt) == ledgers, asset
        assert {one.pop("rebuilt") for one in rebuilt.values()} == {True}
        # When a ledger was discovered it was sealed, and new.
        own = ("state", "noop") if asset == SEALED_LEDGERS else ()
        assert without(rebuilt, *own) == without(shown(materialized(told, asset)), *own), asset
        assert found.materializations[asset.path[-1]] == len(ledgers)
    states = {i: one["state"] for i, one in shown(materialized(fresh, SEALED_LEDGERS)).items()}
    assert states == {0: "released", 1: "release_due", 2: "verified", 3: "quarantined"}


def test_checks_equal_what_the_jobs_had_told(stack, told, fresh):
    found = again(stack, fresh)
    expected = {
        READ_BACK_EQUAL: {0: True, 1: True, 2: True, 3: False},
        RELEASED_SAFELY: {0: True},
    }
    for check, passed in expected.items():
        rebuilt = evaluated(fresh, check)
        assert {i: one.passed for i, one in rebuilt.items()} == passed, check
        before = evaluated(told, check)
        assert without(judged(rebuilt), "rebuilt") == judged(before), check
        assert found.evaluations[check.name] == len(passed)
        for ledger_id, evaluation in rebuilt.items():
            record = materialized(fresh, check.asset_key).get(ledger_id)
            target = evaluation.target_materialization_data
            assert (target and (target.storage_id, target.run_id, target.timestamp)) == (
                record and (record.storage_id, record.run_id, record.timestamp)
            )


def test_events_have_the_times_of_the_records(stack, told, fresh):
    again(stack, fresh)
    certificate = shown(materialized(fresh, CERTIFICATES))[1]
    verified = moment(datetime.fromtimestamp(materialized(fresh, CERTIFICATES)[1].timestamp, UTC))
    assert f" proven {verified} " in certificate["card"]
    published = shown(materialized(fresh, OFFLOAD_CONTEXTS))[1]["published_at"]
    assert materialized(fresh, OFFLOAD_CONTEXTS)[1].timestamp == published
    released = shown(materialized(fresh, DELETED_BOOKIE_LEDGERS))[0]["released_at"]
    assert materialized(fresh, DELETED_BOOKIE_LEDGERS)[0].timestamp == released
    sealed = shown(materialized(fresh, SEALED_LEDGERS))
    assert [materialized(fresh, SEALED_LEDGERS)[i].timestamp for i in sealed] == [
        one["closed_at"] for one in sealed.values()
    ]


def test_dagster_calls_the_partitions_materialized_and_the_jobs_go_on(stack, told, fresh):
    again(stack, fresh)
    keys_of_all = [partition_key(i) for i in range(5)]
    status = fresh.get_status_by_partition(
        OFFLOAD_CONTEXTS, keys_of_all, dg.DynamicPartitionsDefinition(name=PARTITION_SET)
    )
    assert [value and value.value for value in status.values()] == [
        *("MATERIALIZED", "MATERIALIZED", None, None, None),
    ]
    assert run(fresh, "offload", ledger_ids=[1, 2, 4]).success
    assert set(materialized(fresh, OFFLOAD_CONTEXTS)) == {0, 1, 2, 4}
    assert materialized(fresh, OFFLOAD_CONTEXTS)[2].run_id != ""
    assert evaluated(fresh, READ_BACK_EQUAL)[2].metadata.keys().isdisjoint({"rebuilt"})


def test_a_second_run_adds_nothing_and_a_dry_run_neither(stack, told, fresh):
    planned = again(stack, fresh, dry_run=True)
    assert fresh.get_dynamic_partitions(PARTITION_SET) == []
    assert not any(materialized(fresh, asset) for asset in ASSETS)
    assert planned == again(stack, fresh)
    counts = {asset: len(events(fresh, asset)) for asset in ASSETS}
    second = again(stack, fresh)
    assert (second.partitions_added, second.materializations, second.evaluations) == (0, {}, {})
    assert counts == {asset: len(events(fresh, asset)) for asset in ASSETS}
    # Nor does one on an instance that was never lost.
    whole = again(stack, told)
    assert (whole.partitions_added, whole.materializations, whole.evaluations) == (0, {}, {})


def events(instance, asset):
    return instance.fetch_materializations(asset, limit=1000).records


def test_what_an_interrupted_run_has_stored_is_not_stored_again(stack, told, fresh, monkeypatch):
    def stop(*_anything):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "_store_checks", stop)
        with pytest.raises(KeyboardInterrupt):
            again(stack, fresh)
    found = again(stack, fresh)
    assert (found.materializations, found.partitions_added) == ({}, 0)
    assert found.evaluations == {"read_back_equal": 4, "released_safely": 1}
    (record,) = [r for r in events(fresh, OFFLOADED_OBJECTS) if int(r.partition_key) == 1]
    target = evaluated(fresh, READ_BACK_EQUAL)[1].target_materialization_data
    assert (target.storage_id, target.timestamp) == (record.storage_id, record.timestamp)


def test_the_newest_get_the_partitions_that_are_free(stack, told, fresh):
    dagster = replace(stack.settings.dagster, partitions_max=2)
    found = again(with_settings(stack, dagster=dagster), fresh)
    assert (found.ledgers, found.left_out) == (2, 2)
    assert fresh.get_dynamic_partitions(PARTITION_SET) == [partition_key(2), partition_key(3)]


def test_ledgers_released_long_ago_get_no_partition(stack, told, fresh, world):
    world.scheduler.now += stack.settings.auto.retire_after_s + 1
    found = again(stack, fresh)
    assert (found.ledgers, found.retired) == (3, 1)
    assert partition_key(0) not in fresh.get_dynamic_partitions(PARTITION_SET)


def test_a_published_ledger_whose_copy_was_found_broken_fails_its_check(stack, told, fresh):
    (attempt,) = attempts_of(stack, 1)
    quarantine(
        stack,
        1,
        attempt.record.uid,
        ml_name=TOPIC,
        reason="scrub: the data object is gone",
        previous=attempt.sha256,
    )
    again(stack, fresh)
    assert not evaluated(fresh, READ_BACK_EQUAL)[1].passed
    assert evaluated(fresh, READ_BACK_EQUAL)[1].description == (
        f"ledger 1 of {NAME}: scrub: the data object is gone"
    )


def test_an_attempt_that_a_suite_refused_fails_the_suite(stack, fresh):
    def refuse(facts):
        return {
            i: replace(one, success=False, failed=("blocks_overlap",))
            for i, one in stack.judge(facts).items()
        }

    offload_batch(replace(stack, judge=refuse), [0])
    again(stack, fresh)
    assert evaluated(fresh, READ_BACK_EQUAL) == {}
    (found,) = evaluated(fresh, INDEX_SUITE).values()
    assert not found.passed
    assert "blocks_overlap" in found.description


def test_one_unreadable_record_is_its_ledgers_own(stack, told, fresh, world):
    (attempt,) = attempts_of(stack, 1)
    key = stack.book.prefix + keys.certificate(1, attempt.record.uid)
    world.objects.rot(key, b"{}")
    found = again(stack, fresh)
    assert isinstance(found.unreadable[1], FormatError)
    assert set(found.unreadable) == {1}
    assert set(materialized(fresh, CERTIFICATES)) == {0, 2}


def test_an_instance_with_unfinished_runs_is_refused_unless_forced(stack, told, fresh):
    started = dg.DagsterRunStatus.STARTED
    fresh.add_run(dg.DagsterRun(job_name="somebody's", status=started))
    fresh.add_run(dg.DagsterRun(job_name="offload", status=started, tags={JOB_TAG: "offload"}))
    with pytest.raises(RefusedError, match="1 runs of this cluster are unfinished"):
        again(stack, fresh)
    assert fresh.get_dynamic_partitions(PARTITION_SET) == []
    assert again(stack, fresh, force=True).partitions_added == 4


def test_another_cluster_is_refused(stack, fresh):
    other = replace(stack.settings.dagster, cluster="other")
    with pytest.raises(SettingsError, match="TIERKEEPER_DAGSTER_CLUSTER"):
        again(with_settings(stack, dagster=other), fresh)


def test_an_empty_fleet_is_no_error(world, monkeypatch, fresh):
    site = world.add_site("beta", lag_s=None, bookkeeper_first=False)
    found = again(Process(world, "empty", site).stack(), fresh)
    assert (found.ledgers, found.materializations) == (0, {})
