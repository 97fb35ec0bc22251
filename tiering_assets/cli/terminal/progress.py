"""Lines of progress, and errors, as a terminal shows them: when, and what was found, in colour.

Owns: colour is that of states alone; a pipe, NO_COLOR and `--log-format json` get the plain line.
A bar is one line that is drawn over: whatever is printed takes its place, and it comes back below.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Final

from rich.text import Text

from tiering_assets.cli.terminal.screen import Screen
from tiering_assets.cli.terminal.show import console_on
from tiering_assets.cli.terminal.tint import tint_of

_WORD = re.compile(r"[A-Za-z_]+")
_BAR_WIDTH: Final = 20


def progress_line(text: str, on: Screen) -> Text:
    """`13:19:21Z  ledger 7: published`, the time dim and each state in its colour."""
    line = Text(f"{on.time:%H:%M:%SZ}  ", style="dim")
    line.append(tinted(text))
    return line


def tinted(text: str) -> Text:
    """The text with a colour for each word that is a state; it is no markup."""
    found = Text(text, style="not dim")
    for word in _WORD.finditer(text):
        if tint := tint_of(word[0]):
            found.stylize(tint, *word.span())
    return found


def show_progress(text: str, on: Screen) -> None:
    """Print it on standard error."""
    line = progress_line(text, on)
    console_on(sys.stderr, on).print(line, soft_wrap=True, markup=False, emoji=False)


def bar_text(text: str, event: Mapping[str, object], width: int) -> str:
    """`[#####---------------] copying: 3 of 6 ledgers, …`, no wider than the terminal.

    `event` is that of the line, with `bytes_done` and `bytes` in its `progress`.
    """
    found = event.get("progress")
    share = 0.0
    if isinstance(found, Mapping) and found.get("bytes"):
        share = float(found["bytes_done"]) / float(found["bytes"])
    full = int(share * _BAR_WIDTH)
    return f"[{'#' * full}{'-' * (_BAR_WIDTH - full)}] {text}"[: max(0, width - 1)]


class ProgressBar:
    """On standard error. Threads may show it and print beside it.

    `screen` is asked each time: a terminal changes its width.
    """

    def __init__(self, screen: Callable[[], Screen]) -> None:
        self._screen = screen
        self._lock = RLock()
        self._drawn = 0

    def show(self, line: str) -> None:
        """Draw over what is drawn."""
        with self._lock:
            text = bar_text(line, getattr(line, "event", {}), self._screen().width or 80)
            sys.stderr.write(f"\r{text:<{self._drawn}}")
            sys.stderr.flush()
            self._drawn = len(text)

    def clear(self) -> None:
        """Leave an empty line, with the cursor at its begin."""
        with self._lock:
            if self._drawn:
                sys.stderr.write(f"\r{' ' * self._drawn}\r")
                sys.stderr.flush()
            self._drawn = 0

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Within it a line is printed where the bar was."""
        with self._lock:
            self.clear()
            yield
