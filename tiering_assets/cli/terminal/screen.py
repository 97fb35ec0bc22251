"""What results are printed on: a terminal of some width, with or without colour, or a pipe.

Owns: this is the one place that asks. A pipe gets every row and every character; NO_COLOR, and
TERM=dumb, take colour away and nothing else. `printing_on` names another for what it encloses.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TextIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """`width` is None in a pipe. `redraws`: a line can be drawn over. `now` is what ages are
    counted to; None is the clock's time.
    """

    width: int | None = None
    colour: bool = False
    redraws: bool = False
    now: datetime | None = None

    @property
    def time(self) -> datetime:
        return datetime.now(UTC) if self.now is None else self.now


_given: Final[ContextVar[Screen | None]] = ContextVar("screen", default=None)


def screen() -> Screen:
    """The one that was named, else what standard output is now."""
    given = _given.get()
    return _found() if given is None else given


def somebody_answers() -> bool:
    """Whether there is a person who sees what is printed and can answer a question."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(one is not None and one.isatty() for one in streams)


def error_screen() -> Screen:
    """The same of standard error, where progress goes."""
    given = _given.get()
    return _found(sys.stderr) if given is None else given


def _found(stream: TextIO | None = None) -> Screen:
    if not (stream or sys.stdout).isatty():
        return Screen()
    dumb = os.environ.get("TERM", "") in ("", "dumb")
    colour = not dumb and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size().columns
    return Screen(width=width, colour=colour, redraws=not dumb)


@contextmanager
def printing_on(given: Screen) -> Iterator[None]:
    token = _given.set(given)
    try:
        yield
    finally:
        _given.reset(token)
