"""The figures of docs/cold-messages.md and its picture, made of benchmarks/results/cold.json.

    .venv/bin/python -m benchmarks.cold_page

Owns: what stands between the page's markers, and docs/images/cold.svg, is made of that file and of
nothing else; a unit test compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.agents import ROOT
from benchmarks.cold_goals import BATCHED, SINGLE, Results, goals
from benchmarks.plots import STYLE
from benchmarks.written import between_markers, svg_of

RESULT = ROOT / "benchmarks" / "results" / "cold.json"
PAGE = ROOT / "docs" / "cold-messages.md"
IMAGE = ROOT / "docs" / "images" / "cold.svg"
BEGIN, END = "<!-- figures: made by `make bench-cold` -->", "<!-- end of figures -->"
_OURS, _BROKER = "#1d4ed8", "#b45309"


def render_page(page: str, results: Results) -> str:
    """The page with the part between its markers made anew. ValueError if it has no markers."""
    return between_markers(page, BEGIN, END, "\n".join([*_lines(results), ""]))


def _lines(results: Results) -> Iterator[str]:
    machine = results["machine"]
    yield (
        f"Measured {results['measured_at'][:10]}: {machine['cores']} cores, load {machine['load']} "
        f"before; ten million turns of a loop in Python take {machine['loop_s']:.2f} s."
    )
    yield ""
    yield "| what | goal | found | met |"
    yield "|---|---|---|---|"
    for goal in goals(results):
        found = "not measured" if goal.found is None else goal.said.partition(", goal")[0]
        yield f"| {goal.what} | {goal.wanted} | {found} | {'yes' if goal.met else '**no**'} |"
    yield ""
    yield "![Rows a second of each way](images/cold.svg)"
    for name, shape in results["shapes"].items():
        yield ""
        yield (
            f"{shape['messages']:,} messages, {name}, in {shape['blocks']} blocks of "
            f"{shape['object_bytes'] / 1e6:,.0f} MB:"
        )
        yield ""
        yield "| way | rows/s | CPU s | MB | worker, MB |"
        yield "|---|---|---|---|---|"
        for way, one in shape["ways"].items():
            cells = (one.get(key) for key in ("cpu_s", "rss_mb", "worker_rss_mb"))
            told = " | ".join("" if cell is None else f"{cell:,g}" for cell in cells)
            yield f"| {way} | {one['rows_per_s']:,} | {told} |"
    yield ""
    yield "Entries in memory, on one core, in turns with a process that lacks the library, and with the plain decoder:"
    yield ""
    yield "| what | rows/s | MB/s | CPU s a GB | in arrays | one by one |"
    yield "|---|---|---|---|---|---|"
    for name, case in results["decode"].items():
        yield (
            f"| {name} | {case['rows_per_s']:,} | {case['bytes_per_s'] / 1e6:,.0f} | "
            f"{case['cpu_s_per_gb']:g} | {case['arrays_cpu_s_per_gb']:g} | "
            f"{case['one_by_one_cpu_s_per_gb']:g} |"
        )


def draw(results: Results) -> str:
    """Rows a second of each way, ours and those through a broker."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 2.8), layout="constrained")
        FigureCanvasSVG(figure)
        for name, axes in zip((BATCHED, SINGLE), figure.subplots(1, 2), strict=True):
            ways = results["shapes"][name]["ways"]
            colours = [_BROKER if way.startswith("pulsar") else _OURS for way in ways]
            axes.barh([*ways], [one["rows_per_s"] for one in ways.values()], color=colours)
            axes.invert_yaxis()
            axes.set_xlabel("rows/s")
            axes.set_title(name, loc="left", fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
        return svg_of(figure)


def write_page(results: Results) -> None:
    PAGE.write_text(render_page(PAGE.read_text(), results))
    IMAGE.write_text(draw(results))


if __name__ == "__main__":
    write_page(json.loads(RESULT.read_text()))
