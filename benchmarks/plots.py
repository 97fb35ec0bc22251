"""docs/images/performance-*.svg: what is drawn of the results, and how.

Owns: which bars there are is data (`panels_of`), of the results and of those before; matplotlib
draws them, and the same data give the same file. Whiskers go from the least round to the most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.figures import SEAWEED, VERSITY
from benchmarks.goals import KINDS
from benchmarks.written import svg_of

Results = Mapping[str, Any]
BEFORE = "before"
_COLOURS = {
    "broker": "#b45309",
    "ours-verify, before": "#93c5fd",
    "ours-verify": "#1d4ed8",
    "ours-release": "#3b82f6",
    "spark-verify": "#0f766e",
    "ceiling-put-get": "#9ca3af",
    "read-broker": "#b45309",
    "read-ours, before": "#93c5fd",
    "read-ours": "#1d4ed8",
    "read-broker-100ms": "#b45309",
    "read-ours-100ms": "#1d4ed8",
}
STYLE: Any = {"svg.hashsalt": "tierkeeper", "svg.fonttype": "none", "font.size": 8}
_WIDTH_IN, _PANEL_IN = 9.0, 3.4


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes: for each contender its spread by kind; a contender may lack kinds."""

    title: str
    unit: str
    bars: Mapping[str, Mapping[str, Mapping[str, float]]]  # contender, kind, spread


@dataclass(frozen=True, slots=True)
class _Plot:
    name: str
    title: str
    metric: str
    unit: str
    panels: tuple[tuple[str, str, tuple[str, ...]], ...]  # title, store, contenders


_OFFLOAD = (
    "broker",
    "ours-verify, before",
    "ours-verify",
    "ours-release",
    "spark-verify",
    "ceiling-put-get",
)
_PLOTS = (
    _Plot(
        "performance-offload",
        "Offload",
        "mb_per_s",
        "MB/s",
        ((SEAWEED, SEAWEED, _OFFLOAD), (VERSITY, VERSITY, _OFFLOAD)),
    ),
    _Plot(
        "performance-cpu",
        "CPU of an offload, all processes",
        "cpu_s_per_gb",
        "CPU s/GB",
        ((SEAWEED, SEAWEED, _OFFLOAD), (VERSITY, VERSITY, _OFFLOAD)),
    ),
    _Plot(
        "performance-read",
        "Cold reads of the same objects",
        "mb_per_s",
        "MB/s",
        (
            ("store beside it", SEAWEED, ("read-broker", "read-ours, before", "read-ours")),
            ("store 100 ms away", SEAWEED, ("read-broker-100ms", "read-ours-100ms")),
        ),
    ),
)
TITLES = {plot.name: f"{plot.title}, {plot.unit}" for plot in _PLOTS}


def panels_of(results: Results, before: Results) -> dict[str, list[Panel]]:
    """Name of each picture and its panels; one that would have no bars is left out."""
    rows = {
        (row["contender"], row["store"], row["entries_of"]): row
        for row in results["rows"]
        if "error" not in row
    } | {
        (f"{row['contender']}, {BEFORE}", SEAWEED, row["entries_of"]): row
        for row in before["rows"]
        if "error" not in row
    }
    found: dict[str, list[Panel]] = {}
    for plot in _PLOTS:
        found[plot.name] = []
        for title, store, contenders in plot.panels:
            bars = {
                name: {
                    kind: rows[name, store, kind][plot.metric]
                    for kind in KINDS
                    if (name, store, kind) in rows
                }
                for name in contenders
            }
            bars = {name: spreads for name, spreads in bars.items() if spreads}
            if bars:
                panel = Panel(f"{plot.title}, {title}", plot.unit, bars)
                found[plot.name].append(panel)
    return found


def render_plots(results: Results, before: Results) -> dict[str, str]:
    """Name of each picture's file and its SVG."""
    panels = panels_of(results, before)
    return {f"{name}.svg": draw(of_one) for name, of_one in panels.items()}


def draw(panels: Sequence[Panel]) -> str:
    """Panels below each other, bars grouped by kind, with the median written on each."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        count = max(1, len(panels))
        figure = Figure(figsize=(_WIDTH_IN, _PANEL_IN * count), layout="constrained")
        FigureCanvasSVG(figure)
        for panel, axes in zip(panels, figure.subplots(count, squeeze=False)[:, 0], strict=False):
            _draw_panel(axes, panel)
        return svg_of(figure)


def _draw_panel(axes: Any, panel: Panel) -> None:
    """On a scale of powers of ten: the kinds are that far apart."""
    width = 0.84 / len(panel.bars)
    kinds = [kind for kind in KINDS if any(kind in spreads for spreads in panel.bars.values())]
    for number, (name, spreads) in enumerate(panel.bars.items()):
        at = [
            kinds.index(kind) - 0.42 + width * (number + 0.5) for kind in kinds if kind in spreads
        ]
        shown = [spreads[kind] for kind in kinds if kind in spreads]
        medians = [spread["median"] for spread in shown]
        reach = [
            [spread["median"] - spread["min"] for spread in shown],
            [spread["max"] - spread["median"] for spread in shown],
        ]
        bars = axes.bar(
            at,
            medians,
            width * 0.92,
            yerr=reach,
            label=name,
            color=_COLOURS[name],
            error_kw={"elinewidth": 0.8, "ecolor": "#111827"},
        )
        axes.bar_label(bars, [_number(value) for value in medians], fontsize=6, padding=2)
    axes.set_yscale("log")
    axes.set_ylim(bottom=1)
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set_ylabel(panel.unit)
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.12)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
