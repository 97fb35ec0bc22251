"""What abandoned attempts left in the bucket: found, and deleted when told. One roll-up.

The decisions are clean/clean_up.py's; nothing of Dagster's state is evidence to them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from tiering_assets.defs.shared.batches import batch_failure, reasons_table
from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.failures import as_failures
from tiering_assets.defs.shared.metadata import Metadata, bytes_text
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.resources import TieringStack, narrate
from tiering_assets.defs.telling.batch_summary import NOTHING_DUE, tag_result

if TYPE_CHECKING:
    from tiering_assets.clean.clean_up import CleanUp


_DESCRIPTION = (
    "Uploads and objects of attempts that nothing refers to, ours and those that brokers "
    "did not finish. Watch waiting_bytes: it grows when nobody sweeps. Sweeps leave "
    "foreign_* alone."
)


class SweepChoice(dg.Config):
    execute: bool = Field(
        default=False, description="delete what may go; without it the run only says which"
    )


def define_swept_leavings(dressing: Dressing) -> dg.AssetsDefinition:
    cluster = dressing.cluster

    @dg.asset(
        key=cluster.swept_leavings,
        description=_DESCRIPTION,
        metadata={**dressing.links("runbook.md", __name__)},
        group_name="integrity",
        kinds={"s3"},
        owners=dressing.owners,
    )
    def swept_leavings(
        context: dg.AssetExecutionContext, config: SweepChoice, tiering_stack: TieringStack
    ) -> Iterator[dg.MaterializeResult[None]]:
        with as_failures("sweep"):
            yield from _sweep(context, cluster, config, tiering_stack)

    return swept_leavings


def _sweep(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    config: SweepChoice,
    tiering_stack: TieringStack,
) -> Iterator[dg.MaterializeResult[None]]:
    """Clean up, or with execute false (the default) say what a clean-up would delete."""
    from tiering_assets.clean.clean_up import clean_up

    with tiering_stack.connect(context, cluster) as stack:
        found = clean_up(stack, execute=config.execute)
    for error in found.errors:
        narrate(context, error)
    freed = sum(one.bytes_freed or 0 for one in found.done)
    tag_result(context, _line(found, freed, execute=config.execute))
    if not config.execute and found.going:
        narrate(
            context,
            f"{len(found.going)} leavings may go and none was deleted: launch the job `sweep` with "
            "`execute: true`, or run `tierkeeper orphan sweep --execute`",
        )
    yield dg.MaterializeResult(
        asset_key=cluster.swept_leavings, metadata=sweep_metadata(found, execute=config.execute)
    )
    if found.errors:
        failures = {
            one.attempt.record.ledger.ledger_id: one.error for one in found.attempts if one.error
        }
        failures.update({one.pair[0]: one.error for one in found.leftovers if one.error})
        raise batch_failure(
            "sweep",
            failures,
            done=len(list(found.done)),
            waiting={},
            also=found.removals.refused,
        )


def _line(found: "CleanUp", freed: int, *, execute: bool) -> str:
    if execute:
        done = len(list(found.done))
        return f"{done} swept, {bytes_text(freed)} freed" if done else NOTHING_DUE
    return f"{len(found.going)} may go" if found.going else NOTHING_DUE


def sweep_metadata(found: "CleanUp", *, execute: bool) -> Metadata:
    """What was deleted, what may go at the next executed run, and whose the rest is."""
    from tiering_assets.ground.reasons import NotNow

    done = list(found.done)
    kept = {
        one.attempt.record.ledger.ledger_id: str(one.decision)
        for one in found.attempts
        if isinstance(one.decision, NotNow)
    }
    kept.update(
        {
            one.pair[0]: str(one.decision)
            for one in found.leftovers
            if isinstance(one.decision, NotNow)
        }
    )
    waiting = 0 if execute else sum(one.bytes for one in found.going)
    return {
        "swept_attempts": dg.MetadataValue.int(len(done)),
        "bytes_freed": dg.MetadataValue.int(sum(one.bytes_freed or 0 for one in done)),
        "bytes_stay": dg.MetadataValue.int(sum(one.bytes_stay or 0 for one in done)),
        "waiting_attempts": dg.MetadataValue.int(0 if execute else len(found.going)),
        "waiting_bytes": dg.MetadataValue.int(waiting),
        "broker_attempts": dg.MetadataValue.int(len(found.leftovers)),
        "foreign_attempts": dg.MetadataValue.int(len(found.foreign)),
        "removed_ledgers": dg.MetadataValue.int(len(found.removals.recorded)),
        "foreign_bytes": dg.MetadataValue.int(sum(one.bytes for one in found.foreign)),
        "kept": reasons_table(kept, "why it stays"),
    }
