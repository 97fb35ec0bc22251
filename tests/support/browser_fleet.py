"""A home of Dagster as a large fleet leaves it: thousands of keys, as the demo's events tell them.

Owns: what is planted is what the demo's own runs wrote, of other ledgers; and the backlog is told
by the code that tells it, of as many ledgers as are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import dagster as dg

from tests.support.default_cluster import PARTITION_SET, TIERING_BACKLOG
from tiering_assets.defs.explain.chart import backlog_chart
from tiering_assets.defs.explain.figures import figures_metadata
from tiering_assets.defs.explain.rollups import backlog_metadata
from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.figures.lag_figures import Counted, FleetFigures
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.resources.settings import ObjectiveSettings

FIRST: Final = 10_000_000  # an id that no ledger of the demo has
TOPICS: Final = 1_000
_LOT: Final = 500


def plant(home: Path, ledgers_of_demo: Sequence[Any], *, keys: int, ledgers: int) -> None:
    """Keys beside those of the demo, each with an event of every asset that has keys."""
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        made = [str(FIRST + nth) for nth in range(keys - len(ledgers_of_demo))]
        for first in range(0, len(made), _LOT):
            instance.add_dynamic_partitions(PARTITION_SET, made[first : first + _LOT])
        for event in _events_of_a_key(instance, str(ledgers_of_demo[0]["ledger_id"])):
            for key in made:
                instance.report_runless_asset_event(event._replace(partition=key, tags=None))
        figures = _figures(ledgers_of_demo, ledgers)
        chart = backlog_chart(figures, ObjectiveSettings(), [])
        metadata = {**backlog_metadata(figures, chart=chart), **figures_metadata(figures)}
        backlog = dg.AssetMaterialization(TIERING_BACKLOG, metadata=metadata)
        instance.report_runless_asset_event(backlog)


def _events_of_a_key(instance: dg.DagsterInstance, key: str) -> Iterator[dg.AssetMaterialization]:
    for asset in instance.all_asset_keys():
        wanted = dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[key])
        for record in instance.fetch_materializations(wanted, limit=1).records:
            if record.asset_materialization is not None:
                yield record.asset_materialization


def _figures(ledgers_of_demo: Sequence[Any], ledgers: int) -> FleetFigures:
    """All released, the topics of the demo with most bytes."""
    now = datetime.now(UTC)
    planted = [
        _released(f"persistent://fleet/ns/t{nth % TOPICS:04d}", 1, now)
        for nth in range(ledgers - len(ledgers_of_demo))
    ]
    demo = [_released(one["topic"], one["payload_bytes"], now) for one in ledgers_of_demo]
    return count_figures([*demo, *planted], disturbances_last_hour=0, now=now)


def _released(topic: str, size: int, now: datetime) -> Counted:
    return Counted(
        topic=topic,
        namespace="fleet/ns",
        reason=BacklogReason.DONE,
        state=LedgerState.RELEASED,
        bytes=size,
        closed_at=now - timedelta(days=3),
        due_at=now - timedelta(days=2),
        certified=True,
    )
