"""Goals as data, and how each is judged by rows of medians. Values in, values out.

Owns: a goal is met by its own figure, or stands at the limit that replaces it, or is missed, or is
not measured and says why; nothing else. The limit of an offload is the store's: a share of
`ceiling-put-get`, which moves the same bytes by bare clients. Where these clients and the bookies
alone would leave the cores a tenth at the pace that a goal asks for, the cores are the limit. A
goal that real servers proved wrong otherwise has its physical limit in LIMITS, in words.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Row = Mapping[str, Any]
CEILING = "ceiling-put-get"
CEILING_SHARE = 0.8
BOOKIES = "ceiling-bookies"
CORES_SHARE = 0.9  # the rest is too little for digests and proofs: SHA-256 alone is 1 CPU s/GB
VERIFY, RELEASE, BROKER = "ours-verify", "ours-release (signed)", "broker"
MBS, CPU = "mb_per_s", "cpu_s_per_gb_without_store"


class State(StrEnum):
    MET = "met"
    LIMIT = "limit"  # the store's limit, or the one in words, replaces it
    MISSED = "missed"
    UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One figure of a contender's row over another's, or the figure itself, and its bound.

    `role` takes the CPU of one role alone. `store_bounds` says that a share of the ceiling does, as
    well, and that the cores may be the limit.
    """

    measure: str
    kind: str
    contender: str
    metric: str
    bound: float
    over: str | None = None
    at_most: bool = False
    role: str | None = None
    store_bounds: bool = False

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
        store_bounds=True,
    ),
    *_pairs(
        "CPU s/GB without the store's / broker's",
        CPU,
        dict(zip(KINDS, (1 / 8, 1 / 4, 0.6, 0.9, 0.9), strict=True)),
        at_most=True,
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
    cores: int | None = None,
) -> list[dict[str, Any]]:
    """Every goal with its value and what became of it; the first store has all of them.

    `cores` are those that all processes share; None where they do not.
    """
    known = LIMITS if limits is None else limits
    by_place = {(r["contender"], r["entries_of"], r["store"]): r for r in rows if "error" not in r}
    judged = []
    for number, store in enumerate(stores):
        for goal in GOALS:
            if number and (goal.kind in ON_ONE_STORE or goal.contender.startswith("read-")):
                continue
            told = _judged(goal, store, by_place, known)
            if told["state"] == State.MISSED and goal.store_bounds and cores:
                told |= _at_cores(goal, by_place, store, stores[0], cores)
            judged.append(told)
    return judged + [_told(figure, known) for figure in figures]


def _judged(
    goal: Goal, store: str, rows: Mapping[tuple[str, str, str], Row], limits: Mapping[str, str]
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "measure": goal.measure,
        "entries_of": goal.kind,
        "store": store,
        "by": "make bench",
        "goal": f"{'<=' if goal.at_most else '>='} {goal.bound:.4g}",
    }
    own, other = (
        rows.get((name, goal.kind, store)) if name is not None else None
        for name in (goal.contender, goal.over)
    )
    if own is None or (goal.over is not None and other is None):
        lacks = goal.contender if own is None else goal.over
        return told | {"value": None, "state": State.UNMEASURED, "why": f"no row of {lacks}"}
    value = _of(own, goal)
    if other is not None:
        value /= _of(other, goal)
    told["value"] = float(f"{value:.3g}")
    if _holds(value, goal.bound, goal.at_most):
        return told | {"state": State.MET}
    if goal.store_bounds and (ceiling := rows.get((CEILING, goal.kind, store))) is not None:
        share = own[MBS]["median"] / ceiling[MBS]["median"]
        told["share_of_ceiling"] = float(f"{share:.3g}")
        if share >= CEILING_SHARE:
            return told | {"state": State.LIMIT, "limit": _at_ceiling(share, ceiling)}
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


def _at_ceiling(share: float, ceiling: Row) -> str:
    return (
        f"{share:.0%} of {CEILING}, the same bytes by bare clients: {ceiling[MBS]['median']:.0f} "
        "MB/s is all that this store gives"
    )


def _at_cores(
    goal: Goal, rows: Mapping[tuple[str, str, str], Row], store: str, first_store: str, cores: int
) -> dict[str, Any]:
    """The limit, if the least work there is keeps the cores busy at the goal's pace; else nothing.

    Bookies are read on the first store only: they do not depend on it.
    """
    over, clients = rows[BROKER, goal.kind, store], rows.get((CEILING, goal.kind, store))
    bookies = rows.get((BOOKIES, goal.kind, first_store))
    if clients is None or bookies is None:
        return {}
    least = sum(float(one["cpu_s_per_gb"]["median"]) for one in (clients, bookies))
    bears, asked = 1000 * cores / least, goal.bound * float(over[MBS]["median"])
    if asked < CORES_SHARE * bears:
        return {}
    said = (
        f"{CEILING} and {BOOKIES} spend {least:.3g} CPU s/GB on the same bytes, so {cores} cores "
        f"bear {bears:.0f} MB/s at most; the goal asks for {asked:.0f}"
    )
    return {"state": State.LIMIT, "limit": said}


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
