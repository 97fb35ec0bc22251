"""What a fleet of any size should cost, and what was found: of benchmarks/results/scale.json. Pure.

Owns: a goal is met by the largest fleet that was measured, of whose size the result says. One that
was not measured has no value, and is not met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Results = Mapping[str, Any]
BUDGET_S: Final = 35.0  # auto.tick_budget_s by default: a tick's scan takes so long at most
LISTS: Final = ("topic backlog", "metrics print", "topic list", "ledger list")
ONE: Final = ("ledger list ID", "lineage message", "lineage topic")
COVERAGE: Final = "lineage coverage"
WHOLE_SCANS: Final = ("scan: every topic is new", "scan: nothing moved")
NEXT, FIRST = "again:", "sensor:"
WITHIN: Final = "round:"
"""A tick within a round, with so short a budget that no fleet's round ends in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleGoal:
    """`found` is None where nothing was measured. `by` is what came to it."""

    what: str
    unit: str
    limit: float
    found: float | None
    by: str = ""

    @property
    def met(self) -> bool:
        return self.found is not None and self.found <= self.limit


def goals(results: Results) -> list[ScaleGoal]:
    """In the order of the page."""
    fleets = by_size(results["fleets"])
    fleet, most, blocks = (
        (by_size(results[kind]) or [{}])[-1] for kind in ("fleets", "rows", "blocks")
    )
    ticks = {name: one for name, one in fleet.items() if name.startswith((NEXT, WITHIN))}
    first = {name: one for name, one in fleet.items() if name.startswith(FIRST)}
    return [
        _worst("a tick beyond its scan budget", "s", 5, {**first, **ticks}, _beyond),
        _worst("requests to the store of a tick", "", 50, ticks, _of("store_requests")),
        _worst("and of the first tick of a process", "", 50, first, _of("store_requests")),
        _worst("memory of a tick's process", "MB", 500, {**first, **ticks}, _of("peak_mb")),
        _worst(
            "requests of a tick in the largest fleet beyond those in the smallest",
            "",
            5,
            dict(_growth(fleets)),
            lambda one: one,
        ),
        _worst("a scan of every topic", "s", 60, _named(fleet, WHOLE_SCANS), _of("seconds")),
        _worst("backlog, metrics, lists", "s", 5, _named(most, LISTS), _of("seconds")),
        _worst("and their memory", "MB", 400, _named(most, LISTS), _of("peak_mb")),
        _worst(
            "one ledger, one message, ten minutes of a topic",
            "s",
            1.5,
            _named(blocks, ONE),
            _of("seconds"),
        ),
        _worst("coverage of all blocks", "s", 20, _named(blocks, [COVERAGE]), _of("seconds")),
        _worst("and its memory", "MB", 1024, _named(blocks, [COVERAGE]), _of("peak_mb")),
    ]


def parts_of(size: str) -> tuple[int, int, int]:
    """Ledgers of a topic, topics, and blocks of a ledger."""
    per_topic, topics, blocks = ([*map(int, size.split("x")), 1])[:3]
    return per_topic, topics, blocks


def ledgers_of(size: str) -> int:
    per_topic, topics, _blocks = parts_of(size)
    return per_topic * topics


def by_size(measured: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The smallest first."""
    return [measured[name] for name in sorted(measured, key=ledgers_of)]


def _of(name: str) -> Callable[[Any], float]:
    return lambda one: float(one[name])


def _beyond(one: Any) -> float:
    return max(0.0, float(one["tick_seconds"]) - BUDGET_S) if "tick_seconds" in one else 0.0


def _named(found: Mapping[str, Any], names: Any) -> dict[str, Any]:
    return {name: found[name] for name in names if name in found}


def _growth(fleets: list[Mapping[str, Any]]) -> Iterator[tuple[str, float | None]]:
    """By which next ticks' requests grow. Where a round is not over, ticks within one compare:
    None if those were not measured, or one of them ended its round.
    """
    for name in fleets[0] if fleets else ():
        if not name.startswith(NEXT) or name not in fleets[-1]:
            continue
        ends = fleets[0], fleets[-1]
        within = WITHIN + name[len(NEXT) :]
        over = all(one[name].get("round_over", True) for one in ends)
        first, last = (one.get(name if over else within) for one in ends)
        if (
            first is None
            or last is None
            or (not over and (first["round_over"] or last["round_over"]))
        ):
            yield within, None
        else:
            yield name if over else within, last["store_requests"] - first["store_requests"]


def _worst(
    what: str, unit: str, limit: float, among: Mapping[str, Any], value: Callable[[Any], float]
) -> ScaleGoal:
    """A command that failed, or was not measured, has no value at all."""
    failed = (one is None or (isinstance(one, dict) and "failed" in one) for one in among.values())
    if not among or any(failed):
        return ScaleGoal(what=what, unit=unit, limit=limit, found=None)
    by = max(among, key=lambda name: value(among[name]))
    return ScaleGoal(what=what, unit=unit, limit=limit, found=value(among[by]), by=by)
