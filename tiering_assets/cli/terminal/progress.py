"""Lines of progress, and errors, as a terminal shows them: when, and what was found, in colour.

Owns: colour is that of states alone; a pipe, NO_COLOR and `--log-format json` get the plain line.
"""

from __future__ import annotations

import re
import sys

from rich.text import Text

from tiering_assets.cli.terminal.screen import Screen
from tiering_assets.cli.terminal.show import console_on
from tiering_assets.cli.terminal.tint import tint_of

_WORD = re.compile(r"[A-Za-z_]+")


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
