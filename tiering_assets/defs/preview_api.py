"""Every preview or private name of Dagster that we use; an upgrade is judged here alone.

Checks with partitions are preview in Dagster 1.13, and what ties an evaluation to the
materialization it judged is not exported. Both are needed: an unpartitioned check lets one ledger's
pass speak for another, and a pass that names no materialization outlives a second offload. Runs
without partition tags need assets whose lineage is no op input, which no decorator makes.
tests/dagster/test_preview_api.py fails when one of them moves.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import dagster as dg
from dagster import AssetCheckEvaluation
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

BACKFILL_BATCH = 100  # ledgers a run
Context = dg.AssetExecutionContext | dg.AssetCheckExecutionContext
AssetJob = UnresolvedAssetJobDefinition  # what define_asset_job returns


def partitioned_check(
    name: str,
    *,
    asset: dg.AssetKey,
    partitions_def: dg.PartitionsDefinition[str],
    description: str,
) -> dg.AssetCheckSpec:
    """A check with one status per partition."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", dg.PreviewWarning
        )  # said once, here; not in every run's log
        return dg.AssetCheckSpec(
            name, asset=asset, description=description, partitions_def=partitions_def
        )


def with_lineage(
    definition: dg.AssetsDefinition, upstream: Mapping[dg.AssetKey, Sequence[dg.AssetKey]]
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
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=BACKFILL_BATCH),
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

    `partition` None is a word on the whole batch, or on an asset without partitions. It is logged as well, because a yielded result
    asks for the run's partition, which a run with ids in its config does not have.
    Never blocking: a blocking check acts inside one run only, and the release gate asks nobody.
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
