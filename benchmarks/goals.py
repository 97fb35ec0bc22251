"""Goals as data, and how each is judged by rows of medians. Values in, values out.

Owns: a goal is met by its own figure, or stands at the limit that replaces it, or is missed, or is
not measured and says why; nothing else. The limits that replace one are in limits.py, from rows of
the same run; a goal that real servers proved wrong otherwise has its physical limit in LIMITS, in
words.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from benchmarks.limits import MBS, By, Ceilings, Row

VERIFY, RELEASE, BROKER = "ours-verify", "ours-release (signed)", "broker"
CPU = "cpu_s_per_gb_without_store"


class State(StrEnum):
    MET = "met"
    LIMIT = "limit"  # the store's limit, or the one in words, replaces it
    MISSED = "missed"
    UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One figure of a contender's row over another's, or the figure itself, and its bound.

    `role` takes the CPU of one role alone. `limited_by` is what may replace it.
    """

    measure: str
    kind: str
    contender: str
    metric: str
    bound: float
    over: str | None = None
    at_most: bool = False
    role: str | None = None
    limited_by: By | None = None

    def name(self, store: str) -> str:
        return f"{self.measure}, {self.kind}, {store}"


def _pairs(measure: str, metric: str, bounds: Mapping[str, float], **more: Any) -> list[Goal]:
    return [
        Goal(
            measure=measure,
            kind=kind,
            contender=VERIFY,
            over=BROKER,
            metric=metric,
            bound=bound,
            **more,
        )
        for kind, bound in bounds.items()
    ]


KINDS = ("100 B", "1 KiB", "10 KiB", "100 KiB", "100 B batched")
GOALS: tuple[Goal, ...] = (
    *_pairs(
        "offload with full verification / broker's, MB/s",
        MBS,
        dict(zip(KINDS, (8.0, 5.0, 1.5, 1.0, 1.0), strict=True)),
        limited_by=By.STORE,
    ),
    *_pairs(
        "CPU s/GB without the store's / broker's",
        CPU,
        dict(zip(KINDS, (1 / 8, 1 / 4, 0.6, 0.9, 0.9), strict=True)),
        at_most=True,
        limited_by=By.LEAST_WORK,
    ),
    Goal(
        measure="batch of 20, signed, with publish and release / with verify only, MB/s",
        kind="10 KiB, 20 ledgers",
        contender=RELEASE,
        over=VERIFY,
        metric=MBS,
        bound=0.8,
    ),
    *(
        Goal(
            measure="worker CPU s/GB, copy and verify",
            kind=kind,
            contender=VERIFY,
            metric="cpu_s_per_gb",
            role="worker",
            bound=bound,
            at_most=True,
            limited_by=By.LEAST_WORK,
        )
        for kind, bound in (("1 KiB", 4.0), ("100 KiB", 3.0))
    ),
    *(
        Goal(
            measure=f"cold read{near} / broker's consumer, MB/s",
            kind=kind,
            contender=f"read-ours{name}",
            over=f"read-broker{name}",
            metric=MBS,
            bound=bound,
        )
        for near, name, bound in (("", "", 4.0), (", store 100 ms away", "-100ms", 10.0))
        for kind in KINDS
    ),
)
ON_ONE_STORE = ("10 KiB, 20 ledgers",)

LIMITS: Mapping[str, str] = {}
"""Goals that proved wrong on real servers, by name: the physical limit that replaces each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure that another command measured, and its goal."""

    measure: str
    value: float | None
    bound: float
    at_most: bool
    by: str
    why_none: str = ""
    otherwise: str = ""  # why it counts all the same, where the bound is missed


def judge(
    rows: Sequence[Row],
    *,
    stores: Sequence[str],
    figures: Iterable[Figure] = (),
    limits: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Every goal with its value and what became of it; the first store has all of them."""
    known = LIMITS if limits is None else limits
    by_place = {(r["contender"], r["entries_of"], r["store"]): r for r in rows if "error" not in r}
    judged = []
    for number, store in enumerate(stores):
        ceilings = Ceilings(by_place, store=store)
        for goal in GOALS:
            if number and (goal.kind in ON_ONE_STORE or goal.contender.startswith("read-")):
                continue
            judged.append(_judged(goal, ceilings, known))
    return judged + [_told(figure, known) for figure in figures]


def _judged(goal: Goal, ceilings: Ceilings, limits: Mapping[str, str]) -> dict[str, Any]:
    store = ceilings.store
    told: dict[str, Any] = {
        "measure": goal.measure,
        "entries_of": goal.kind,
        "store": store,
        "by": "make bench",
        "goal": f"{'<=' if goal.at_most else '>='} {goal.bound:.4g}",
    }
    own = ceilings.row(goal.contender, goal.kind)
    other = None if goal.over is None else ceilings.row(goal.over, goal.kind)
    if own is None or (goal.over is not None and other is None):
        lacks = goal.contender if own is None else goal.over
        return told | {"value": None, "state": State.UNMEASURED, "why": f"no row of {lacks}"}
    value, granted = _of(own, goal), goal.bound
    if other is not None:
        value, granted = value / _of(other, goal), granted * _of(other, goal)
    told["value"] = float(f"{value:.3g}")
    if _holds(value, goal.bound, goal.at_most):
        return told | {"state": State.MET}
    limit = None
    if goal.limited_by is By.STORE:
        if (share := ceilings.share(own, goal.kind)) is not None:
            told["share_of_ceiling"] = float(f"{share:.3g}")
        limit = ceilings.pace(own, goal.kind, asked=granted)
    elif goal.limited_by is By.LEAST_WORK:
        limit = ceilings.work(goal.kind, partial(_of, goal=goal), granted=granted)
    if limit is not None:
        return told | {"state": State.LIMIT, "limit": limit}
    return told | _beyond(goal.name(store), limits)


def _told(figure: Figure, limits: Mapping[str, str]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "measure": figure.measure,
        "by": figure.by,
        "goal": f"{'<=' if figure.at_most else '>='} {figure.bound:.4g}",
        "value": figure.value,
    }
    if figure.value is None:
        return told | {"state": State.UNMEASURED, "why": figure.why_none}
    if _holds(figure.value, figure.bound, figure.at_most):
        return told | {"state": State.MET}
    if figure.otherwise:
        return told | {"state": State.LIMIT, "limit": figure.otherwise}
    return told | _beyond(figure.measure, limits)


def _beyond(name: str, limits: Mapping[str, str]) -> dict[str, Any]:
    if name in limits:
        return {"state": State.LIMIT, "limit": limits[name]}
    return {"state": State.MISSED}


def _of(row: Row, goal: Goal) -> float:
    if goal.role is not None:
        return float(row["cpu_s_per_gb_by_role"][goal.role]["median"])
    return float(row[goal.metric]["median"])


def _holds(value: float, bound: float, at_most: bool) -> bool:
    holds: Callable[[float, float], bool] = operator.le if at_most else operator.ge
    return holds(value, bound)


def goal_faults(goal: Any) -> list[str]:
    """What is wrong with a judged goal; nothing if it is one."""
    if not isinstance(goal, dict) or goal.get("state") not in tuple(State):
        return [f"not a judged goal: {goal}"]
    faults = [f"no {name}" for name in ("measure", "goal", "by") if not goal.get(name)]
    if goal["state"] == State.LIMIT and not goal.get("limit"):
        faults.append("a limit without words")
    if (goal["state"] == State.UNMEASURED) != (goal.get("value") is None):
        faults.append(f"{goal['state']}, and its value is {goal.get('value')}")
    if goal["state"] == State.UNMEASURED and not goal.get("why"):
        faults.append("not measured, and no reason")
    return faults
