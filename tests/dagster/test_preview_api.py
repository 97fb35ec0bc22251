"""The preview and private parts of Dagster that we lean on. A failure here after an upgrade means:
read the release notes before anything else, ledgers would be shown as checked that are not.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from pydantic import Field

from tiering_assets.defs.shared.preview_api import (
    Evaluation,
    evaluation_entry,
    judged_partitions,
    log_evaluation,
    partitioned_check,
    runless_entry,
    runless_target,
    target_of,
    told_partitions,
    with_lineage,
)
from tiering_assets.defs.shared.preview_store import store_entries

SET = "ledgers_of_this_test"
PARTITIONS = dg.DynamicPartitionsDefinition(name=SET)
UP, DOWN = dg.AssetKey(["t", "up"]), dg.AssetKey(["t", "down"])
CHECK = dg.AssetCheckKey(DOWN, "equal")


class Batch(dg.Config):
    keys: list[str]
    bad: list[str] = Field(default_factory=list)


def spec(key):
    return dg.AssetSpec(key, partitions_def=PARTITIONS, skippable=True)


@dg.multi_asset(name="make", specs=[spec(UP)], can_subset=True)
def make(context: dg.AssetExecutionContext, config: Batch) -> Iterator[dg.MaterializeResult[None]]:
    for key in config.keys:
        context.log_event(dg.AssetMaterialization(UP, partition=key))
    yield from ()


@dg.multi_asset(name="use", specs=[spec(DOWN)], can_subset=True)
def use(context: dg.AssetExecutionContext, config: Batch) -> Iterator[dg.MaterializeResult[None]]:
    for key in config.keys:
        if key not in config.bad:
            context.log_event(dg.AssetMaterialization(DOWN, partition=key))
        log_evaluation(
            context,
            CHECK,
            partition=key,
            passed=key not in config.bad,
            description="looked",
            metadata={},
        )
    yield from ()
    if config.bad:
        raise dg.Failure(f"bad: {config.bad}", allow_retries=False)


@dg.multi_asset_check(
    specs=[partitioned_check("equal", asset=DOWN, partitions_def=PARTITIONS, description="equal")],
    can_subset=True,
)
def judge(context: dg.AssetCheckExecutionContext, config: Batch) -> Iterator[dg.AssetCheckResult]:
    for key in [*config.keys, None]:
        log_evaluation(context, CHECK, partition=key, passed=True, description="", metadata={})
    yield from ()


DEFS = dg.Definitions(
    assets=[
        with_lineage(make, {}, partitions_a_run=100),
        with_lineage(use, {DOWN: [UP]}, partitions_a_run=100),
    ],
    asset_checks=[judge],
    jobs=[
        dg.define_asset_job("make_job", dg.AssetSelection.assets(UP)),
        dg.define_asset_job("use_job", dg.AssetSelection.assets(DOWN).without_checks()),
        dg.define_asset_job("both_job", dg.AssetSelection.assets(UP, DOWN).without_checks()),
        dg.define_asset_job("judge_job", dg.AssetSelection.checks(CHECK)),
    ],
    executor=dg.in_process_executor,
)


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(SET, ["1", "2", "3"])
        yield instance


def execute(instance, job, ops, **config):
    return DEFS.resolve_job_def(job).execute_in_process(
        instance=instance,
        raise_on_error=False,
        run_config={"ops": {op: {"config": config} for op in ops}},
    )


def evaluations(instance, result):
    """As stored: the result of a failed run leaves out what its op has logged."""
    records = instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    found = [record.dagster_event.event_specific_data for record in records]
    return {evaluation.partition: evaluation for evaluation in found}


def test_a_run_with_ids_works_after_its_upstream_was_materialized(instance):
    """With the dependency as an op input this is `Cannot access partition_key`."""
    assert execute(instance, "make_job", ["make"], keys=["1", "2"]).success
    assert execute(instance, "use_job", ["use"], keys=["1", "2"]).success
    assert execute(instance, "use_job", ["use"], keys=["1", "2"]).success
    assert DEFS.resolve_asset_graph().get(DOWN).parent_keys == {UP}


def test_an_op_without_outputs_skips_no_other(instance):
    result = execute(instance, "both_job", ["make", "use"], keys=["1"])
    assert result.success
    assert not [e for e in result.all_events if e.is_step_skipped]


def test_only_the_partitions_that_were_handled_change_state(instance):
    result = execute(instance, "use_job", ["use"], keys=["1", "2"], bad=["2"])
    assert not result.success
    status = instance.get_status_by_partition(DOWN, ["1", "2", "3"], PARTITIONS)
    assert {key: value and value.value for key, value in status.items()} == {
        "1": "MATERIALIZED",
        "2": None,
        "3": None,
    }


def test_an_evaluation_names_its_partition_and_what_it_judged(instance):
    first = execute(instance, "use_job", ["use"], keys=["1", "2"], bad=["2"])
    found = evaluations(instance, first)
    (record,) = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=DOWN, asset_partitions=["1"]), limit=5
    ).records
    assert found["1"].passed
    assert found["1"].target_materialization_data == AssetCheckEvaluationTargetMaterializationData(
        storage_id=record.storage_id, run_id=first.run_id, timestamp=record.timestamp
    )
    assert not found["2"].passed
    assert found["2"].target_materialization_data is None


def test_a_check_only_run_reports_partitions_and_the_batch(instance):
    execute(instance, "use_job", ["use"], keys=["1"])
    result = execute(instance, "judge_job", ["judge"], keys=["1"])
    assert result.success
    found = evaluations(instance, result)
    assert set(found) == {"1", None}
    history = instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=10)
    assert {record.status.value for record in history} == {"SUCCEEDED"}  # none is left PLANNED


def test_a_backfill_of_people_is_cut_into_batches():
    policy = with_lineage(use, {}, partitions_a_run=100).backfill_policy
    assert policy is not None
    assert policy.max_partitions_per_run == 100


TIMES = {f"{n}": datetime(2026, 3, n, 12, 0, 0, 250_000, tzinfo=UTC) for n in (1, 2, 3)}


def made(key):
    metadata = {"entries": dg.MetadataValue.int(int(key)), "about": dg.MetadataValue.md("*one*")}
    return dg.AssetMaterialization(DOWN, partition=key, description="made", metadata=metadata)


def judged(key):
    return Evaluation(
        check=CHECK,
        partition=key,
        passed=key != "3",
        description="looked",
        metadata={"entries": dg.MetadataValue.int(int(key))},
    )


def store_ours(instance, keys):
    store_entries(instance, [runless_entry(made(key), at=TIMES[key]) for key in keys])
    ids = told_partitions(instance, DOWN, partitions=set(keys))
    targets = {key: runless_target(ids[key], at=TIMES[key]) for key in keys}
    assert targets == {key: target_of(instance, DOWN, key) for key in keys}
    store_entries(
        instance,
        [evaluation_entry(judged(key), at=TIMES[key], target=targets[key]) for key in keys],
    )


def report_theirs(instance, keys):
    """Dagster's own way, for which an event is stored at a time of its own."""
    for key in keys:
        instance.event_log_storage.store_event(runless_entry(made(key), at=TIMES[key]))
    for key in keys:
        target = target_of(instance, DOWN, key)
        instance.event_log_storage.store_event(
            evaluation_entry(judged(key), at=TIMES[key], target=target)
        )


def rows(instance):
    """Everything in the three tables that an event of an asset or a check is stored in."""
    storage = instance.event_log_storage
    found = {}
    for shard, connect in (("index", storage.index_connection), ("", storage.run_connection)):
        with connect() if shard else connect("") as connection:
            for table in ("event_logs", "asset_keys", "asset_check_executions"):
                columns = connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY id")
                found[shard, table] = [
                    {k: v for k, v in row._mapping.items() if k != "create_timestamp"}
                    for row in columns
                ]
    return found


def test_many_events_are_stored_as_dagster_stores_each(tmp_path):
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    with (
        dg.DagsterInstance.local_temp(str(tmp_path / "ours")) as ours,
        dg.DagsterInstance.local_temp(str(tmp_path / "theirs")) as theirs,
    ):
        for keys in (["1", "2"], ["3"]):  # into an empty log, and behind what is there
            store_ours(ours, keys)
            report_theirs(theirs, keys)
        assert rows(ours) == rows(theirs)
        assert len(rows(ours)["index", "event_logs"]) == 6
        assert judged_partitions(ours, CHECK) == {"1", "2", "3"}


def test_an_entry_of_ours_is_the_one_that_dagster_reports(tmp_path):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        instance.report_runless_asset_event(made("1"))
        (theirs,) = instance.fetch_materializations(DOWN, limit=1).records
        at = datetime.fromtimestamp(theirs.timestamp, UTC)  # rounded to microseconds
        expected = theirs.event_log_entry._replace(timestamp=at.timestamp())
        assert runless_entry(made("1"), at=at) == expected


def test_storages_that_are_not_sqlite_get_the_same_events(instance):
    store_ours(instance, ["1", "2", "3"])
    found = instance.fetch_materializations(DOWN, limit=9, ascending=True).records
    assert [(r.partition_key, r.timestamp) for r in found] == [
        (key, at.timestamp()) for key, at in TIMES.items()
    ]
    assert judged_partitions(instance, CHECK) == {"1", "2", "3"}


def test_of_several_materializations_the_last_one_is_named(instance):
    store_entries(instance, [runless_entry(made("1"), at=TIMES[key]) for key in ("1", "2")])
    (newest,) = instance.fetch_materializations(DOWN, limit=1).records
    assert told_partitions(instance, DOWN) == {"1": newest.storage_id}
    assert newest.timestamp == TIMES["2"].timestamp()
