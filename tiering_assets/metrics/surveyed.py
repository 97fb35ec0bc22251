"""What one survey brings, for everything that a scrape tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tiering_assets.catalogue.facts.work_done import WorkDone
from tiering_assets.explain.figures.lag_figures import FleetFigures
from tiering_assets.explain.figures.objectives import MissedObjective


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """`done` is None where no catalogue tells; `budgets` are those that bound something."""

    figures: FleetFigures
    findings: tuple[MissedObjective, ...] = ()
    done: WorkDone | None = None
    budgets: Mapping[str, int] = field(default_factory=dict)
