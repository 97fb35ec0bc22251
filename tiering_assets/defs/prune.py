"""Old runs of Dagster's, which it keeps for ever: ours that may be forgotten, and no others.

Owns: deleting a run deletes what it told, so a run stays while it told the newest event of an asset
or of a partition that is live. Runs of one batch go together, or not at all: their number is part
of the next run's key, and a key that was used before launches nothing. Evaluations of checks are
kept by Dagster whatever becomes of their runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.partitions import is_day_key
from tiering_assets.defs.shared.preview_api import told_partitions
from tiering_assets.defs.shared.run_history import (
    FINISHED,
    batch_of,
    count_of_batch,
    is_ours,
)

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class OldRuns:
    """`going` may be deleted, oldest first; `telling` and `of_batches` count the old ones that
    stay.
    """

    going: tuple[str, ...]
    telling: int
    of_batches: int


def find_old_runs(
    instance: dg.DagsterInstance, cluster: ClusterNames, *, before: datetime
) -> OldRuns:
    """Finished runs that were created before this moment, and which of them may go."""
    told_by = set(_telling_runs(instance, cluster))
    old = list(_finished(instance, cluster, before))
    batches = Counter(name for name in map(batch_of, old) if name is not None)
    held = {batch_of(run) for run in old if run.run_id in told_by} - {None}
    held |= {name for name, count in batches.items() if count_of_batch(instance, name) != count}
    telling = [run for run in old if run.run_id in told_by]
    free = [run for run in old if run.run_id not in told_by]
    going = [run.run_id for run in free if batch_of(run) not in held]
    return OldRuns(
        going=tuple(reversed(going)), telling=len(telling), of_batches=len(free) - len(going)
    )


def delete_runs(instance: dg.DagsterInstance, runs: OldRuns) -> None:
    """Delete what may go. Killed in between, the rest goes the next time."""
    for run_id in runs.going:
        instance.delete_run(run_id)


def _finished(
    instance: dg.DagsterInstance, cluster: ClusterNames, before: datetime
) -> Iterator[dg.DagsterRun]:
    cursor: str | None = None
    while True:
        page = instance.get_runs(
            dg.RunsFilter(statuses=FINISHED, created_before=before), cursor=cursor, limit=_PAGE
        )
        yield from (run for run in page if is_ours(cluster, run))
        if len(page) < _PAGE:
            return
        cursor = page[-1].run_id


def _of_ledgers(cluster: ClusterNames) -> tuple[dg.AssetKey, ...]:
    return (
        cluster.sealed_ledgers,
        cluster.offloaded_objects,
        cluster.index_objects,
        cluster.certificates,
        cluster.offload_contexts,
        cluster.deleted_bookie_ledgers,
    )


def _roll_ups(cluster: ClusterNames) -> tuple[dg.AssetKey, ...]:
    return (
        cluster.tiering_backlog,
        cluster.released_ledgers,
        cluster.scrubbed_ledgers,
        cluster.swept_leavings,
        cluster.topic_audit,
    )


def _telling_runs(instance: dg.DagsterInstance, cluster: ClusterNames) -> Iterator[str]:
    """Runs whose event is the newest of a live partition, or of an asset without partitions."""
    ledgers = set(instance.get_dynamic_partitions(cluster.partition_set))
    is_live = is_day_key if cluster.by_day else ledgers.__contains__
    for asset in _of_ledgers(cluster):
        newest = sorted(
            storage_id
            for key, storage_id in told_partitions(instance, asset).items()
            if is_live(key)
        )
        for start in range(0, len(newest), _PAGE):
            ids = newest[start : start + _PAGE]
            records = instance.fetch_materializations(
                dg.AssetRecordsFilter(asset_key=asset, storage_ids=ids), limit=len(ids)
            ).records
            yield from (record.run_id for record in records)
    for asset in _roll_ups(cluster):
        yield from (r.run_id for r in instance.fetch_materializations(asset, limit=1).records)
        yield from (r.run_id for r in instance.fetch_observations(asset, limit=1).records)
