"""docs/scale.md's tables and picture, made of benchmarks/results/scale.json.

    .venv/bin/python -m benchmarks.scale_page

Owns: what stands between the page's markers, and docs/images/scale.svg, is made of that file and of
nothing else; a unit test compares. The prose around the markers names no figure of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.agents import ROOT
from benchmarks.plots import STYLE
from benchmarks.scale_goals import (
    FIRST,
    NEXT,
    WITHIN,
    ScaleGoal,
    by_size,
    goals,
    ledgers_of,
    parts_of,
)
from benchmarks.written import between_markers, svg_of

RESULT = ROOT / "benchmarks" / "results" / "scale.json"
PAGE = ROOT / "docs" / "scale.md"
IMAGE = ROOT / "docs" / "images" / "scale.svg"
BEGIN, END = "<!-- figures: made by `make bench-scale` -->", "<!-- end of figures -->"
_PANELS: Final = (
    ("Requests to the store of a tick", "requests", "store_requests"),
    ("CPU of a tick", "s", "tick_cpu_seconds"),
)
_COLOURS: Final = (
    "#1d4ed8",
    "#b45309",
    "#0f766e",
    "#7c3aed",
    "#be123c",
    "#4d7c0f",
    "#0369a1",
    "#374151",
)
Results = Mapping[str, Any]


def render_page(page: str, results: Results) -> str:
    """The page with the part between its markers made anew. ValueError if it has no markers."""
    return between_markers(page, BEGIN, END, "\n".join([*_lines(results), ""]))


def _lines(results: Results) -> Iterator[str]:
    machine = results["machine"]
    yield (
        f"Measured {results['measured_at'][:10]}: {machine['cores']} cores, load "
        f"{machine['load_before']} before and {machine['load_after']} after. Method: {results['method']}."
    )
    yield ""
    yield "| what | goal | found | met | by |"
    yield "|---|---|---|---|---|"
    for one in goals(results):
        found = "not measured" if one.found is None else _amount(one.found, one)
        met = "yes" if one.met else "**no**"
        yield f"| {one.what} | {_amount(one.limit, one)} | {found} | {met} | {one.by} |"
    yield ""
    yield "![A tick by the size of the fleet](images/scale.svg)"
    for kind in ("fleets", "rows", "blocks"):
        for size, found in results[kind].items():
            yield ""
            yield f"### {_size(size)}"
            yield ""
            yield "| | seconds | CPU s | MB | requests |"
            yield "|---|---|---|---|---|"
            for name, one in found.items():
                yield _row(name, one)


def _row(name: str, one: Mapping[str, Any]) -> str:
    label = name.replace("|", "/")
    for kind, words in (
        (FIRST, "first tick of "),
        (NEXT, "next tick of "),
        (WITHIN, "a round of "),
    ):
        label = label.replace(kind, words)
    if "failed" in one:
        return f"| {label} | failed | | | |"
    seconds = one.get("tick_seconds", one["seconds"])
    cpu = one.get("tick_cpu_seconds", one["cpu_seconds"])
    return f"| {label} | {seconds:g} | {cpu:g} | {one['peak_mb']} | {one['store_requests']} |"


def _amount(value: float, one: ScaleGoal) -> str:
    return f"{value:,.4g} {one.unit}".rstrip()


def _size(text: str) -> str:
    _per_topic, topics, blocks = parts_of(text)
    of = f" of {blocks} blocks" if blocks > 1 else ""
    return f"{ledgers_of(text):,} ledgers{of} in {topics:,} topics"


def draw(results: Results) -> str:
    """Ticks that are not the first, by ledgers: lines that are flat do not grow."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    sizes = sorted(ledgers_of(name) for name in results["fleets"])
    fleets = by_size(results["fleets"])
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 3.2), layout="constrained")
        FigureCanvasSVG(figure)
        for (title, unit, metric), axes in zip(_PANELS, figure.subplots(1, 2), strict=True):
            for colour, sensor in zip(_COLOURS, _sensors(results), strict=False):
                found = [one.get(sensor, {}).get(metric) for one in fleets]
                axes.plot(sizes, found, marker="o", color=colour, label=sensor[len(NEXT) :])
            axes.set_xscale("log")
            axes.set_ylim(bottom=0)
            axes.set_xlabel("ledgers")
            axes.set_ylabel(unit)
            axes.set_title(title, loc="left", fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        return svg_of(figure)


def _sensors(results: Results) -> list[str]:
    return [name for name in by_size(results["fleets"])[-1] if name.startswith(NEXT)]


def write_page(results: Results) -> None:
    PAGE.write_text(render_page(PAGE.read_text(), results))
    IMAGE.write_text(draw(results))


if __name__ == "__main__":
    write_page(json.loads(RESULT.read_text()))
