"""The fleet's figures as the sensor `catalogue` tells them, once runs have been posted.

Owns: a run cannot count itself where the catalogue counts, since its records are posted when it is
over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.explain.figures import evaluation, judge, observation
from tiering_assets.defs.explain.rollups import NEWEST_SHOWN, released_metadata
from tiering_assets.defs.shared.names import ClusterNames

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack

FigureEvent = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


def figure_events(stack: Stack, cluster: ClusterNames) -> list[FigureEvent]:
    """What a run would tell of all topics on its way out; nothing where runs count themselves."""
    from tiering_assets.batch.newest_releases import newest_releases
    from tiering_assets.fleet.backlog import count_rows
    from tiering_assets.fleet.source import tables_to_ask

    source = tables_to_ask(stack)
    if source is None:
        return []
    figures = count_rows(stack, source).figures
    released = released_metadata(
        figures,
        newest_releases(stack, NEWEST_SHOWN),
        bucket=stack.settings.store.bucket,
        prefix=stack.book.prefix,
    )
    return [
        observation(cluster, figures),
        evaluation(cluster, judge(figures, stack.settings.objectives)),
        dg.AssetObservation(cluster.released_ledgers, metadata={**released}),
    ]
