"""Bars and times as pictures: a frame in, SVG out.

Owns: matplotlib is asked here alone, without its global state. The same frame gives the same text,
and the picture loads nothing.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

_STYLE: Final[Any] = {"svg.hashsalt": "tierkeeper", "svg.fonttype": "none", "font.size": 8}
_WIDTH_IN: Final = 8.0
_ROW_IN: Final = 0.28
_NAME_MAX: Final = 60
ROWS_MAX: Final = 30
"""Bars of one picture: the first ones of the frame."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What a notebook shows of itself."""

    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg


def bars(frame: pd.DataFrame, *, name: str, values: list[str], title: str, unit: str) -> Picture:
    """A bar for each of the first rows: the columns `values`, one behind the other.

    Missing values count as nothing.
    """
    shown = frame.head(ROWS_MAX)
    names = [str(one)[-_NAME_MAX:] for one in shown[name]]
    places = range(len(names))
    figure, axes = _axes(len(names), title)
    left = [0.0] * len(names)
    for column in values:
        width = [0.0 if pd.isna(one) else float(one) for one in shown[column]]
        axes.barh(places, width, left=left, label=column)
        left = [a + b for a, b in zip(left, width, strict=True)]
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    if len(values) > 1:
        axes.legend(fontsize="small")
    return _picture(figure)


def moments(frame: pd.DataFrame, *, name: str, at: str, title: str) -> Picture:
    """A point for each row, by its time; names in the order in which they come first."""
    known = frame.dropna(subset=[at])
    names = [*dict.fromkeys(str(one)[-_NAME_MAX:] for one in known[name])][:ROWS_MAX]
    rows = [
        (when, names.index(label))
        for when, one in zip(known[at], known[name], strict=True)
        if (label := str(one)[-_NAME_MAX:]) in names
    ]
    figure, axes = _axes(len(names), title)
    times: list[datetime] = [when.to_pydatetime() for when, _row in rows]
    axes.plot(times, [row for _when, row in rows], "o")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("UTC")
    axes.tick_params("x", labelrotation=20)
    axes.grid(axis="x", alpha=0.3)
    return _picture(figure)


def _axes(rows: int, title: str) -> tuple[Figure, Any]:
    height = 1.2 + _ROW_IN * max(rows, 1)
    figure = Figure(figsize=(_WIDTH_IN, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title)
    return figure, axes


def _picture(figure: Figure) -> Picture:
    text = io.StringIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return Picture(text.getvalue())
