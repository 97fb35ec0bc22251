"""A run's ledgers counted by the day on which they were closed; no event of a single one.

Owns: a run tells of the newest days that it touched, so that its events do not grow with its
ledgers; of the other days the catalogue tells, and `tierkeeper dagster rebuild`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.partitions import day_key
from tiering_assets.defs.shared.preview_api import Context
from tiering_assets.defs.shared.resources import narrate
from tiering_assets.defs.telling.days import count_by_day, day_event, days_of
from tiering_assets.defs.telling.telling import ReachedLedger, Telling

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack

DAYS_TOLD = 2  # yesterday and today, as long as nothing is behind


class ByDay(Telling):
    def __init__(self, context: Context, cluster: ClusterNames, stack: Stack) -> None:
        super().__init__(context, cluster, stack)
        self._reached: dict[dg.AssetKey, list[ReachedLedger]] = defaultdict(list)

    def asset(self, event: dg.AssetMaterialization, of: ReachedLedger) -> bool:
        self._reached[event.asset_key].append(of)
        return True

    def lines(self, said: Mapping[int, str]) -> None:
        """None: the summary has a table of the first fifty, those that went wrong before others."""

    def failed(self, asset: dg.AssetKey, said: Mapping[int, str]) -> None:
        """Nothing, for the same reason."""

    def finish(self) -> None:
        super().finish()
        reached = [one for some in self._reached.values() for one in some]
        days = days_of(
            self.stack, {one.ledger_id: one.ml_name for one in reached if one.closed_at is None}
        )
        for one in reached:
            if one.closed_at is not None and (day := day_key(one.closed_at)) is not None:
                days[one.ledger_id] = day
        told = sorted(set(days.values()))[-DAYS_TOLD:]
        for asset, some in self._reached.items():
            counts = count_by_day([(one.ledger_id, one.bytes) for one in some], days)
            for day in sorted(counts.keys() & set(told)):
                event = day_event(self.stack, asset, day, counts[day], whole=False)
                self.context.op_execution_context.log_event(event)
        left = {one.ledger_id for one in reached if days.get(one.ledger_id) not in told}
        if left:
            narrate(
                self.context,
                f"{len(left)} ledgers of other days than {', '.join(told) or 'none'}, from {min(left)} on: "
                "the catalogue has them, and `tierkeeper dagster rebuild` tells of days that "
                "nothing was told of",
            )
