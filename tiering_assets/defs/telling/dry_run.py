"""What a release run tells that only said what it would do.

Owns: a dry run materializes nothing, so that no page shows work that nobody did. It is an
observation, a tag of the run, and a last line about how to execute what it planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.metadata import Metadata
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_api import Context
from tiering_assets.defs.shared.resources import narrate
from tiering_assets.defs.telling.batch_summary import (
    DRY_RUN_TAG,
    BatchSummary,
    Result,
    tag_result,
)

if TYPE_CHECKING:
    from tiering_assets.batch.release_batch import ReleaseOutcome

_IDS_SHOWN = 20


def tell_dry_run(
    context: Context,
    cluster: ClusterNames,
    summary: BatchSummary,
    metadata: Metadata,
    outcomes: Sequence[ReleaseOutcome],
) -> None:
    """Show the plan at the roll-up of releases, tag the run, and say how to execute."""
    from tiering_assets.release.gate import MayRelease

    planned = sorted(one.ledger_id for one in outcomes if isinstance(one.result, MayRelease))
    said = dry_run_result(summary, planned=len(planned))
    context.op_execution_context.log_event(
        dg.AssetObservation(cluster.released_ledgers, description=said, metadata={**metadata})
    )
    tag_result(context, said, summary.topics, more={DRY_RUN_TAG: "true"})
    if summary.rows:
        narrate(context, how_to_execute(planned))


def dry_run_result(summary: BatchSummary, *, planned: int) -> str:
    """`dry run: 3 would be released, 1 waiting`. A plan counts what would go as waiting."""
    counts = {
        "failed": summary.counts[Result.FAILED],
        "would be released": planned,
        "waiting": summary.counts[Result.WAITING] - planned,
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    return f"dry run: {', '.join(said) or summary.line}"


def how_to_execute(planned: Sequence[int]) -> str:
    """The last line of a dry run. `planned` are the ledgers that would be released, by id."""
    if not planned:
        return (
            "dry run: nothing was released, and nothing would be; the lines above say why, and "
            "`tierkeeper ledger why ID` what is done about it"
        )
    which = f"`ledger_ids: {[*planned]}`" if len(planned) <= _IDS_SHOWN else "the same config"
    return (
        f"dry run: nothing was released. To release {len(planned)} ledgers, launch the job "
        f"`release` with {which} and `dry_run: false`, or run "
        "`tierkeeper ledger release --due --execute`"
    )
