"""The doing of it: values into words, lines into a terminal or a pipe.

Owns: a pipe has a line for each row and each of its findings, every value whole, and ids, topics
and states in each line, so that grep and awk work. Colour is a state's or a finding's alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, TextIO

from rich.console import Console
from rich.text import Text

from tiering_assets.cli.terminal.columns import ALWAYS, Column, ValueKind
from tiering_assets.cli.terminal.screen import Screen
from tiering_assets.cli.terminal.table import Cell, Line, Piece, Role, Row, lay_out
from tiering_assets.cli.terminal.tint import tint_of
from tiering_assets.cli.terminal.words import (
    NOTHING,
    age_of,
    human_age,
    human_bytes,
    human_time,
    plain_cell,
    with_ages,
)

_SCHEME = "persistent://"
_STYLES: Final = {Role.HEAD: "bold", Role.NOTE: "dim"}


def show_table(columns: Sequence[Column], rows: Iterable[Row], on: Screen) -> None:
    """Print it as the screen wants it."""
    if on.width is None:
        _pipe(columns, rows)
        return
    now = on.time
    lines = lay_out(columns, [*rows], width=on.width, tell=lambda kind, v: tell(kind, v, now))
    _render(lines, on)


def show_line(text: str, lead: str, on: Screen) -> None:
    """One line; `lead`, where it stands first, has the colour of that word."""
    before, word, rest = text.partition(lead)
    _render([(Piece(before), Piece(word, Role.STATE), Piece(rest))], on)


def tell(kind: ValueKind, value: object, now: datetime) -> Cell:
    """A value in words: a time with its age, a topic without its scheme, each finding by itself."""
    if isinstance(value, datetime):
        age = age_of(value, now)
        return Cell((f"{human_time(value)}  {age}",), age)
    if kind is ValueKind.TOPIC and isinstance(value, str):
        value = value.removeprefix(_SCHEME)
    return Cell(tuple(with_ages(line, now) for line in _lines(kind, value)))


def _lines(kind: ValueKind, value: object) -> tuple[str, ...]:
    if isinstance(value, tuple | list):
        return tuple(map(plain_cell, value)) or (NOTHING,)
    return (_word(kind, value),)


def _word(kind: ValueKind, value: object) -> str:
    """A value that is one; a hundred thousand rows ask the most frequent first."""
    if isinstance(value, str):
        return plain_cell(value)
    if isinstance(value, int | float):
        if kind is ValueKind.SIZE:
            return human_bytes(int(value))
        return human_age(value) if kind is ValueKind.AGE else str(value)
    return plain_cell(value)


def _pipe(columns: Sequence[Column], rows: Iterable[Row]) -> None:
    kinds = [one.kind for one in columns]
    lines = [[one.name for one in columns]]
    for row in rows:
        if any(isinstance(value, tuple | list) for value in row):
            lines += _repeated(columns, list(map(_lines, kinds, row)))
        else:
            lines.append(list(map(_word, kinds, row)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    form = "  ".join(f"{{:{width}}}" for width in widths)
    sys.stdout.writelines(f"{form.format(*line).rstrip()}\n" for line in lines)


def _repeated(columns: Sequence[Column], cells: Sequence[tuple[str, ...]]) -> Iterator[list[str]]:
    """A row; and of each further finding a line that says by itself which row it is of."""
    yield [one[0] for one in cells]
    for number in range(1, max(map(len, cells), default=0)):
        yield [
            one[number] if number < len(one) else one[0] if column.kind in ALWAYS else NOTHING
            for column, one in zip(columns, cells, strict=True)
        ]


def console_on(stream: TextIO, on: Screen) -> Console:
    """What writes there as the screen wants it, whatever the stream itself looks like."""
    return Console(
        file=stream,
        width=on.width,
        force_terminal=on.colour,
        color_system="standard" if on.colour else None,
        no_color=not on.colour,
        highlight=False,
        legacy_windows=False,
    )


def _render(lines: Iterable[Line], on: Screen) -> None:
    console = console_on(sys.stdout, on)
    for line in lines:
        text = Text(end="")  # of pieces, so brackets in a name are no markup
        for piece in line:
            text.append(_printable(piece.text), _style(piece))
        text.rstrip()
        console.print(text, soft_wrap=True, markup=False, emoji=False)


def _printable(text: str) -> str:
    """As the terminal's encoding has it: not every one knows the mark of a cut, or a name."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _style(piece: Piece) -> str:
    if piece.role is Role.STATE:
        return tint_of(piece.text.strip())
    return _STYLES.get(piece.role, "")
