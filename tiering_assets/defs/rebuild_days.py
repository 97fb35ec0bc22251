"""The events of days again, where partitions are days: whole days, counted from the records.

Owns: a day that an asset was told of keeps what it has. Evaluations are left to the next run of a
job, because they are about a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from tiering_assets.batch.recorded import Recorded
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.partitions import day_key
from tiering_assets.defs.shared.preview_api import runless_entry
from tiering_assets.defs.shared.preview_store import store_entries
from tiering_assets.defs.telling.days import count_by_day, day_event
from tiering_assets.ground.stack import Stack

_CHUNK = 1000  # events of one transaction


def restore_days(
    stack: Stack,
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    ledgers: Sequence[Recorded],
    told: Mapping[dg.AssetKey | dg.AssetCheckKey, set[str]],
    *,
    dry_run: bool,
) -> Counter[dg.AssetKey | dg.AssetCheckKey]:
    """Tell of each day that an asset has ledgers of and was never told of, oldest days first."""
    days = {
        one.view.ledger_id: day
        for one in ledgers
        if (day := day_key(one.view.closed_at)) is not None
    }
    lacking = sorted(
        (day, asset.path, asset, count)
        for asset, reached in _reached(cluster, ledgers).items()
        for day, count in count_by_day(_sizes(reached), days).items()
        if day not in told[asset]
    )
    at = stack.now()
    for begin in range(0, 0 if dry_run else len(lacking), _CHUNK):
        store_entries(
            instance,
            [
                runless_entry(_rebuilt(day_event(stack, asset, day, count, whole=True)), at=at)
                for day, _path, asset, count in lacking[begin : begin + _CHUNK]
            ],
        )
    return Counter(asset for _day, _path, asset, _count in lacking)


def _reached(
    cluster: ClusterNames, ledgers: Sequence[Recorded]
) -> dict[dg.AssetKey, list[Recorded]]:
    certified = [one for one in ledgers if one.certified]
    return {
        cluster.sealed_ledgers: [*ledgers],
        cluster.offloaded_objects: certified,
        cluster.index_objects: certified,
        cluster.certificates: certified,
        cluster.offload_contexts: [one for one in certified if one.publication is not None],
        cluster.deleted_bookie_ledgers: [one for one in ledgers if one.released is not None],
    }


def _sizes(ledgers: Iterable[Recorded]) -> Iterable[tuple[int, int]]:
    return ((one.view.ledger_id, one.view.bytes or 0) for one in ledgers)


def _rebuilt(event: dg.AssetMaterialization) -> dg.AssetMaterialization:
    return event.with_metadata({**event.metadata, "rebuilt": dg.MetadataValue.bool(True)})
