"""The backlog as one picture: why bytes wait, how long the oldest waits, what each day did.

Owns: a picture is part of an event, so it has a limit of bytes. Nobody needs it: tables and plots
beside it say why bytes wait and how long. matplotlib is asked without its global state, and by
nobody who moves bytes.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from tiering_assets.defs.shared.metadata import bytes_text, duration_text
from tiering_assets.explain.reasons.backlog_reason import BacklogReason

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tiering_assets.explain.figures.lag_figures import FleetFigures
    from tiering_assets.fleet.by_day import Day
    from tiering_assets.resources.settings import ObjectiveSettings

CHART_BYTES_MAX: Final = 40_000
_SETTLED: Final = frozenset({BacklogReason.OPEN, BacklogReason.EXPIRED, BacklogReason.DONE})
_REASONS_SHOWN: Final = 8
_SIZE_IN: Final = (11.0, 2.6)
_DPI: Final = 110
_COLOURS: Final = 48
_BLUE, _GREEN, _RED, _GREY, _BLACK = "#1d4ed8", "#0f766e", "#be123c", "#9ca3af", "#111827"
_STYLE: Final[Any] = {"font.size": 8, "axes.titlesize": 9, "axes.titlelocation": "left"}
Panel = Callable[[Any], None]


def backlog_chart(
    figures: FleetFigures, objectives: ObjectiveSettings, days: Sequence[Day]
) -> dg.MetadataValue | None:
    """None where there is nothing to draw, or nothing to draw it with.

    `days` are known to a catalogue that is proven, and to nobody else.
    """
    if find_spec("matplotlib") is None:
        return None
    figure = drawn(figures, objectives, days)
    if figure is None:
        return None
    picture = b64encode(_png(figure)).decode()
    return dg.MetadataValue.md(
        f"![what waits, and what each day did](data:image/png;base64,{picture})"
    )


def drawn(
    figures: FleetFigures, objectives: ObjectiveSettings, days: Sequence[Day]
) -> Figure | None:
    """A panel for each question that has an answer."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = [*_reasons(figures), *_lags(figures, objectives), *_by_day(days)]
    if not panels:
        return None
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_SIZE_IN, dpi=_DPI, layout="constrained")
        FigureCanvasAgg(figure)
        places = figure.subplots(1, len(panels), squeeze=False)[0]
        for panel, axes in zip(panels, places, strict=True):
            axes.spines[["top", "right"]].set_visible(False)
            panel(axes)
    return figure


def _png(figure: Figure) -> bytes:
    """In few colours: with all of them it is four times as long."""
    from PIL import Image  # matplotlib's own

    drawing, found = io.BytesIO(), io.BytesIO()
    figure.savefig(drawing, format="png", metadata={"Software": None})
    Image.open(drawing).convert("RGB").quantize(_COLOURS).save(found, format="png", optimize=True)
    return found.getvalue()


def _reasons(figures: FleetFigures) -> list[Panel]:
    waiting = [row for row in figures.total.reasons if row.reason not in _SETTLED and row.bytes]
    waiting.sort(key=lambda row: (-row.bytes, row.reason.value))
    shown = waiting[:_REASONS_SHOWN]

    def draw(axes: Any) -> None:
        names = [row.reason.value for row in shown]
        _bars(axes, names, [row.bytes for row in shown], [_BLUE] * len(shown), bytes_text)
        axes.set_title("Bytes that wait, by reason")

    return [draw] if shown else []


def _lags(figures: FleetFigures, objectives: ObjectiveSettings) -> list[Panel]:
    total = figures.total
    rows = [
        ("copy lag", total.copy_lag.oldest_s, objectives.copy_lag_age_s_max),
        ("delete lag", total.delete_lag.oldest_s, objectives.delete_lag_age_s_max),
    ]

    def draw(axes: Any) -> None:
        colours = [_RED if 0 < most < found else _GREEN for _name, found, most in rows]
        names = [f"{name}\n{_objective(most)}" for name, _found, most in rows]
        _bars(axes, names, [row[1] for row in rows], colours, duration_text)
        for place, (_name, _found, most) in enumerate(rows):
            if most:
                axes.plot([most, most], [place - 0.4, place + 0.4], color=_BLACK, linewidth=1.5)
        axes.set_title("Oldest lag against its objective")

    return [draw] if any(found or most for _name, found, most in rows) else []


def _objective(most: float) -> str:
    return f"at most {duration_text(most)}" if most else "no objective"


def _by_day(days: Sequence[Day]) -> list[Panel]:
    most = max((max(one.published, one.released) for one in days), default=0)
    scale = 1 << max(0, (most.bit_length() - 1) // 10 * 10)

    def draw(axes: Any) -> None:
        for shift, name, colour, values in (
            (-0.2, "published", _BLUE, [one.published for one in days]),
            (0.2, "released", _GREY, [one.released for one in days]),
        ):
            places = [place + shift for place in range(len(days))]
            axes.bar(places, [one / scale for one in values], 0.4, label=name, color=colour)
        axes.set_xticks([0, len(days) - 1], [str(days[0].day), str(days[-1].day)])
        axes.set_ylabel(bytes_text(scale).split()[-1])
        axes.margins(y=0.3)  # where the legend is
        axes.legend(frameon=False, loc="upper left", ncols=2)
        axes.set_title("Published and released, by day (UTC)")

    return [draw] if any(one.published or one.released for one in days) else []


def _bars(
    axes: Any,
    names: Sequence[str],
    values: Sequence[float],
    colours: Sequence[str],
    text: Callable[[Any], str],
) -> None:
    """Lying bars, the first on top, with their values in words."""
    bars = axes.barh(range(len(names)), values, color=colours, height=0.6)
    axes.bar_label(bars, [text(value) for value in values], padding=3)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.margins(x=0.25)
