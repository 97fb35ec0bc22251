"""Every preview or private name of Dagster that we use; an upgrade is judged here, and in the two
modules beside it: preview_sensors.py and preview_store.py. demo/workspace_runs.py has one more.

Checks with partitions are preview in Dagster 1.13, and what ties an evaluation to the
materialization it judged is not exported. Both are needed: an unpartitioned check lets one ledger's
pass speak for another, and a pass that names no materialization outlives a second offload. Runs
without partition tags need assets whose lineage is no op input, which no decorator makes. Events of
no run with times of their own are what rebuild.py writes.
tests/dagster/test_preview_api.py fails when one of them moves.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import dagster as dg
from dagster import AssetCheckEvaluation
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.events import DagsterEvent, StepMaterializationData
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

Context = dg.AssetExecutionContext | dg.AssetCheckExecutionContext
AssetJob = UnresolvedAssetJobDefinition  # what define_asset_job returns


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a check found of one partition. None is a word on a whole batch."""

    check: dg.AssetCheckKey
    partition: str | None
    passed: bool
    description: str
    metadata: Mapping[str, dg.MetadataValue]


def partitioned_check(
    name: str,
    *,
    asset: dg.AssetKey,
    partitions_def: dg.PartitionsDefinition[str] | None,
    description: str,
) -> dg.AssetCheckSpec:
    """A check with one status per partition, or without partitions."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", dg.PreviewWarning
        )  # said once, here; not in every run's log
        return dg.AssetCheckSpec(
            name, asset=asset, description=description, partitions_def=partitions_def
        )


def with_lineage(
    definition: dg.AssetsDefinition,
    upstream: Mapping[dg.AssetKey, Sequence[dg.AssetKey]],
    *,
    partitions_a_run: int,
) -> dg.AssetsDefinition:
    """Give an op's assets their upstream assets for the graph, without making them op inputs.

    A declared dependency becomes an input, and Dagster then looks for the run's partition as soon
    as a partitioned upstream asset was ever materialized; a run with ids in its config has none and
    fails. An input would also skip the op where the upstream op yields no output.
    """
    return dg.AssetsDefinition(
        keys_by_input_name={},
        keys_by_output_name=definition.keys_by_output_name,
        check_specs_by_output_name=definition.check_specs_by_output_name,
        node_def=definition.node_def,
        resource_defs=definition.resource_defs,
        specs=[
            spec.replace_attributes(deps=list(upstream.get(spec.key, ())))
            for spec in definition.specs
        ],
        can_subset=True,
        # Only people's own backfills have ranges; without a policy each ledger would be a run.
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=partitions_a_run),
    )


class _Unpartitioned(UnresolvedAssetJobDefinition):
    """A job that looks at everything, though one of its assets has partitions."""

    def resolve(self, *args: Any, **how: Any) -> dg.JobDefinition:
        return super().resolve(*args, **how)._copy(partitions_def=None)


def without_partitions(job: AssetJob) -> AssetJob:
    """The same job; its launchpad asks for no partition, which its runs would not look at.

    Dagster infers a job's partitions from its assets, and has no word for this.
    """
    names = inspect.signature(AssetJob).parameters
    return _Unpartitioned(**{name: getattr(job, name) for name in names})


def outputs_of_checks(
    context: Context, checks: Iterable[dg.AssetCheckKey]
) -> Iterator[dg.Output[None]]:
    """Say of checks that their op is through with them, where it logged what it found, or where
    there was nothing to judge.

    Without it Dagster tells people that the op did not yield its expected outputs.
    """
    through = {*checks}
    specs = context.op_execution_context.assets_def.check_specs_by_output_name
    for name, spec in specs.items():
        if spec.key in through:
            yield dg.Output(None, output_name=name)


def log_found(context: Context, found: Evaluation) -> None:
    """Record what a check found, as log_evaluation does."""
    log_evaluation(
        context,
        found.check,
        partition=found.partition,
        passed=found.passed,
        description=found.description,
        metadata=found.metadata,
    )


def log_evaluation(
    context: Context,
    check: dg.AssetCheckKey,
    *,
    partition: str | None,
    passed: bool,
    description: str,
    metadata: Mapping[str, dg.MetadataValue],
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
) -> None:
    """Record what a check found of one partition, tied to that partition's last materialization.

    `partition` None is a word on the whole batch, or on an asset without partitions. It is logged
    as well, because a yielded result asks for the run's partition, which a run with ids in its
    config does not have. Never blocking: a blocking check acts inside one run only, and the release
    gate asks nobody.
    """
    evaluation = AssetCheckEvaluation(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=passed,
        severity=severity,
        description=description,
        metadata=dict(metadata),
        blocking=False,
        partition=partition,
        target_materialization_data=None
        if partition is None
        else _last_materialization(context.instance, check.asset_key, partition),
    )
    # Its annotation leaves evaluations out, but it stores them.
    context.op_execution_context.log_event(evaluation)  # type: ignore[arg-type]


def _last_materialization(
    instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str
) -> AssetCheckEvaluationTargetMaterializationData | None:
    found = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[partition]), limit=1
    ).records
    if not found:
        return None
    return AssetCheckEvaluationTargetMaterializationData(
        storage_id=found[0].storage_id, run_id=found[0].run_id, timestamp=found[0].timestamp
    )


def provenance_tags(context: Context, upstream: dg.AssetKey) -> dict[str, str]:
    """What Dagster adds to a yielded materialization: the upstream event that it comes after.

    A logged one of an asset that is no output of its op has none, and the pages then call it
    unsynced for ever, with every partition of the upstream asset as a new input.
    """
    operation = context.op_execution_context
    newest = operation.instance.fetch_materializations(upstream, limit=1).records
    tags = {
        CODE_VERSION_TAG: operation.run_id,
        DATA_VERSION_TAG: operation.run_id,
        f"{INPUT_DATA_VERSION_TAG_PREFIX}/{upstream.to_user_string()}": "INITIAL",
    }
    if newest:
        pointer = f"{INPUT_EVENT_POINTER_TAG_PREFIX}/{upstream.to_user_string()}"
        tags[pointer] = str(newest[0].storage_id)
    return tags


def runless_entry(
    event: dg.AssetMaterialization | AssetCheckEvaluation, *, at: datetime
) -> dg.EventLogEntry:
    """An event of no run, as if it had been reported at that time."""
    said = event if isinstance(event, AssetCheckEvaluation) else StepMaterializationData(event)
    kind = (
        dg.DagsterEventType.ASSET_CHECK_EVALUATION
        if isinstance(event, AssetCheckEvaluation)
        else dg.DagsterEventType.ASSET_MATERIALIZATION
    )
    return dg.EventLogEntry(  # type: ignore[no-untyped-call]
        user_message="",
        level=logging.INFO,
        job_name=RUNLESS_JOB_NAME,
        run_id=RUNLESS_RUN_ID,
        error_info=None,
        timestamp=at.timestamp(),
        dagster_event=DagsterEvent(
            event_type_value=kind.value,
            event_specific_data=said,
            job_name=RUNLESS_JOB_NAME,
        ),
    )


def evaluation_entry(
    found: Evaluation, *, at: datetime, target: AssetCheckEvaluationTargetMaterializationData | None
) -> dg.EventLogEntry:
    """The same of what a check found. `target` is the materialization that it judged."""
    return runless_entry(
        AssetCheckEvaluation(
            asset_key=found.check.asset_key,
            check_name=found.check.name,
            passed=found.passed,
            severity=dg.AssetCheckSeverity.ERROR,
            description=found.description,
            metadata=dict(found.metadata),
            blocking=False,
            partition=found.partition,
            target_materialization_data=target,
        ),
        at=at,
    )


def told_partitions(
    instance: dg.DagsterInstance, asset: dg.AssetKey, *, partitions: set[str] | None = None
) -> Mapping[str, int]:
    """Storage id of the last materialization of these or all partitions, by one query."""
    return instance.event_log_storage.get_latest_storage_id_by_partition(
        asset, dg.DagsterEventType.ASSET_MATERIALIZATION, partitions=partitions
    )


def judged_partitions(instance: dg.DagsterInstance, check: dg.AssetCheckKey) -> frozenset[str]:
    """Partitions that a check was evaluated or planned for, by one query."""
    found = instance.event_log_storage.get_asset_check_partition_info([check])
    return frozenset(info.partition_key for info in found if info.partition_key is not None)


def failed_partitions(instance: dg.DagsterInstance, check: dg.AssetCheckKey) -> frozenset[str]:
    """Partitions whose last evaluation failed, by one query."""
    found = instance.event_log_storage.get_asset_check_partition_info([check])
    failed = AssetCheckExecutionRecordStatus.FAILED
    return frozenset(
        info.partition_key
        for info in found
        if info.partition_key is not None and info.latest_execution_status is failed
    )


def told_metadata(
    instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str
) -> Mapping[str, dg.MetadataValue] | None:
    """What the partition's last materialization says; None without one."""
    found = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[partition]), limit=1
    ).records
    told = found[0].asset_materialization if found else None
    return None if told is None else told.metadata


def observed_reason(instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str) -> str | None:
    """What the partition's last observation says; None without one."""
    found = instance.fetch_observations(
        dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[partition]), limit=1
    ).records
    told = found[0].asset_observation if found else None
    return None if told is None else told.description


def target_of(
    instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str
) -> AssetCheckEvaluationTargetMaterializationData | None:
    """The partition's last materialization, as an evaluation names it."""
    return _last_materialization(instance, asset, partition)


def runless_target(
    storage_id: int, *, at: datetime
) -> AssetCheckEvaluationTargetMaterializationData:
    """A materialization that store_entries stored, as an evaluation names it."""
    return AssetCheckEvaluationTargetMaterializationData(
        storage_id=storage_id, run_id=RUNLESS_RUN_ID, timestamp=at.timestamp()
    )
