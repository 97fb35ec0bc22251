"""How pages and pictures of results are written: the part between a page's markers, and SVG."""

from __future__ import annotations

import io
from typing import Any


def between_markers(page: str, begin: str, end: str, text: str) -> str:
    """The page with `text` in place of what stood between its markers. ValueError without them."""
    head, begun, rest = page.partition(begin)
    _old, ended, tail = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"the page lacks {begin!r} or {end!r}")
    return f"{head}{begin}\n\n{text}\n{end}{tail}"


def svg_of(figure: Any) -> str:
    """A figure of matplotlib as SVG; the same data give the same file, as it has no date."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
