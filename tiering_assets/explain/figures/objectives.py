"""Are the figures within the operator's objectives? One finding for each objective that is set.

Owns: an objective of 0 is off; at `warn_at` of its limit a figure warns, beyond the limit it fails.
Bytes and stuck ledgers are judged over the whole fleet, ages by the oldest ledger of any topic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from tiering_assets.explain.figures.lag_figures import Figures, FleetFigures
from tiering_assets.resources.settings import ObjectiveSettings

WORST_SHOWN: Final = 5


class ObjectiveLevel(IntEnum):
    """In the order of badness."""

    MET = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Worst:
    topic: str
    found: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedObjective:
    """`figure` is the setting without `_max`; `worst` are the topics with most of it, worst
    first.
    """

    figure: str
    level: ObjectiveLevel
    found: float
    limit: float
    worst: tuple[Worst, ...]

    def __str__(self) -> str:
        says = {
            ObjectiveLevel.MET: "within",
            ObjectiveLevel.WARN: "near",
            ObjectiveLevel.ERROR: "beyond",
        }[self.level]
        line = (
            f"{self.figure} is {self.found:g}, {says} objectives.{self.figure}_max = {self.limit:g}"
        )
        return f"{line}; most in {self.worst[0].topic}" if self.worst else line


_Value = Callable[[Figures], float]
FIGURES: Final[tuple[tuple[str, _Value], ...]] = (
    ("copy_lag_bytes", lambda found: found.copy_lag.bytes),
    ("copy_lag_age_s", lambda found: found.copy_lag.oldest_s),
    ("delete_lag_age_s", lambda found: found.delete_lag.oldest_s),
    ("stuck", lambda found: found.stuck),
)


def decide_objectives(
    figures: FleetFigures, objectives: ObjectiveSettings
) -> tuple[MissedObjective, ...]:
    """Judge each objective that is set; those that are met are in the answer, too."""
    limits: dict[str, float] = {
        "copy_lag_bytes": objectives.copy_lag_bytes_max,
        "copy_lag_age_s": objectives.copy_lag_age_s_max,
        "delete_lag_age_s": objectives.delete_lag_age_s_max,
        "stuck": objectives.stuck_max,
    }
    return tuple(
        MissedObjective(
            figure=figure,
            level=_level(value(figures.total), limits[figure], objectives.warn_at),
            found=value(figures.total),
            limit=limits[figure],
            worst=worst_topics(figures, value, WORST_SHOWN),
        )
        for figure, value in FIGURES
        if limits[figure] > 0
    )


def worst_level(findings: tuple[MissedObjective, ...]) -> ObjectiveLevel:
    return max((finding.level for finding in findings), default=ObjectiveLevel.MET)


def worst_topics(figures: FleetFigures, value: _Value, count: int) -> tuple[Worst, ...]:
    """Topics with most of a lag or of what is stuck, worst first; none where it is 0."""
    found = ((topic, value(of_topic)) for topic, of_topic in figures.topics.lagging())
    ranked = sorted((pair for pair in found if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Worst(topic, amount) for topic, amount in ranked[:count])


def _level(found: float, limit: float, warn_at: float) -> ObjectiveLevel:
    if found > limit:
        return ObjectiveLevel.ERROR
    return ObjectiveLevel.WARN if found > 0 and found >= warn_at * limit else ObjectiveLevel.MET
