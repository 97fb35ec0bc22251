"""A table as a terminal shows it: its rows and columns as lines of pieces, each with a role. Pure.

Owns: what the lines leave out they name. What all rows share is said once above; rows are at most
ROWS_MAX; a column without room, a time's date and a topic's middle are named below. A digest, and
a word of a finding, is never broken: where it is wider than the terminal so is its line, and no
other is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Final, NamedTuple

from rich.cells import cell_len

from tiering_assets.cli.terminal.columns import ALWAYS, FROM_THE_RIGHT, Column, ValueKind
from tiering_assets.cli.terminal.fitting import BELOW, GAP, Fit, Room, fit
from tiering_assets.cli.terminal.measure import cut_middle, fold, longest_word, pad
from tiering_assets.cli.terminal.words import NOTHING

ROWS_MAX: Final = 200
_INDENT = "    "
_ELSEWHERE = "--json, or a pipe,"


class Role(StrEnum):
    """What a piece of a line is; how that looks is for the terminal to say."""

    HEAD = "head"
    STATE = "state"
    NOTE = "note"
    VALUE = "value"


class Piece(NamedTuple):
    text: str
    role: Role = Role.VALUE


@dataclass(frozen=True, slots=True)
class Cell:
    """What is to be read of a value, line by line. `short` says less of it in fewer words."""

    lines: tuple[str, ...]
    short: str = ""


Line = tuple[Piece, ...]
Row = Sequence[object]
Tell = Callable[[ValueKind, object], Cell]
Cells = Mapping[int, list[Cell]]


def lay_out(
    columns: Sequence[Column], rows: Sequence[Row], *, width: int, tell: Tell
) -> Iterator[Line]:
    """The lines. `tell` puts a value into words."""
    same = [i for i in range(1, len(columns)) if _is_same(columns[i], rows, i)]
    cells = {
        i: [tell(one.kind, row[i]) for row in rows[:ROWS_MAX]]
        for i, one in enumerate(columns)
        if i not in same
    }
    rooms = {i: _room(columns[i], told) for i, told in cells.items()}
    found = fit(rooms, width)
    yield from _of_every_row([(columns[i], tell(columns[i].kind, rows[0][i])) for i in same], width)
    yield from _heads(columns, found)
    for number in range(min(len(rows), ROWS_MAX)):
        yield from _row(columns, {i: told[number] for i, told in cells.items()}, found, width)
    for note in _notes(columns, found, width, len(rows) - ROWS_MAX):
        yield from ((Piece(line, Role.NOTE),) for line in fold(note, width))


def _is_same(column: Column, rows: Sequence[Row], place: int) -> bool:
    """Whether a value is the same in all of several rows; what says which row it is, stays."""
    if len(rows) < 2 or column.kind in ALWAYS:
        return False
    first = rows[0][place]
    return all(row[place] == first for row in rows)


def _room(column: Column, told: Sequence[Cell]) -> Room:
    whole = max((cell_len(line) for one in told for line in one.lines), default=0)
    short = max((cell_len(line) for one in told for line in _shortest(one)), default=0)
    word = max((longest_word(line) for one in told for line in one.lines), default=0)
    return Room(column, whole, short, word)


def _shortest(cell: Cell) -> tuple[str, ...]:
    return (cell.short,) if cell.short else cell.lines


def _of_every_row(same: Sequence[tuple[Column, Cell]], width: int) -> Iterator[Line]:
    """Values of one line share lines; several findings, and a digest, have lines of their own."""
    short = [(c, cell) for c, cell in same if len(cell.lines) == 1 and c.kind not in BELOW]
    if short:
        said = ", ".join(f"{column.name} {cell.lines[0]}" for column, cell in short)
        yield from ((Piece(line, Role.NOTE),) for line in fold(f"of every row: {said}", width))
    for column, cell in same:
        if (column, cell) not in short:
            [first, *more] = cell.lines
            for line in (f"of every row: {column.name} {first}", *more):
                parts = fold(line, width, whole_words=True)
                yield from ((Piece(part, Role.NOTE),) for part in parts)


def _heads(columns: Sequence[Column], found: Fit) -> Iterator[Line]:
    lines = {i: fold(columns[i].name, width) for i, width in found.widths.items()}
    yield from _side_by_side(columns, lines, found, head=True)


def _row(
    columns: Sequence[Column], cells: Mapping[int, Cell], found: Fit, width: int
) -> Iterator[Line]:
    lines: dict[int, list[str]] = {}
    for i, room in found.widths.items():
        told = _shortest(cells[i]) if i in found.short else cells[i].lines
        if i in found.cut:
            lines[i] = [cut_middle(line, room) for line in told]
        else:
            whole = columns[i].kind is ValueKind.FINDINGS
            lines[i] = [part for line in told for part in fold(line, room, whole_words=whole)]
    yield from _side_by_side(columns, lines, found)
    for i in found.below:
        yield from _below(columns[i], cells[i], width)


def _side_by_side(
    columns: Sequence[Column], lines: Mapping[int, list[str]], found: Fit, *, head: bool = False
) -> Iterator[Line]:
    last = next(reversed(found.widths))
    for parts in zip_longest(*(lines[i] for i in found.widths), fillvalue=""):
        pieces: list[Piece] = []
        for (i, room), text in zip(found.widths.items(), parts, strict=True):
            right = columns[i].kind in FROM_THE_RIGHT
            padded = text if i == last and not right else pad(text, room, right=right)
            state = columns[i].kind is ValueKind.STATE
            role = Role.HEAD if head else Role.STATE if state else Role.VALUE
            pieces += [Piece(padded, role), Piece("" if i == last else " " * GAP)]
        yield tuple(pieces)


def _below(column: Column, cell: Cell, width: int) -> Iterator[Line]:
    """What has no room in its row stands in lines of its own, under its column's name."""
    role = Role.STATE if column.kind is ValueKind.STATE else Role.VALUE
    indent = _INDENT if width > len(_INDENT) + GAP else ""
    name = "" if column.kind is ValueKind.FINDINGS else f"{column.name} "
    for line in cell.lines if cell.lines != (NOTHING,) else ():
        if column.kind is ValueKind.DIGEST:  # to be copied with its name: the terminal wraps it
            yield (Piece(f"{indent}{name}{line}"),)
            continue
        parts = fold(f"{name}{line}", width - len(indent), whole_words=not name)
        for part in parts:
            said = part.removeprefix(name)
            yield (Piece(indent + part[: len(part) - len(said)]), Piece(said, role))


def _notes(columns: Sequence[Column], found: Fit, width: int, more: int) -> Iterator[str]:
    missing = [columns[i].name for i in found.left_out]
    missing += [f"the times of {columns[i].name}" for i in sorted(found.short)]
    missing += [f"the middles of {columns[i].name}" for i in sorted(found.cut)]
    if missing:
        yield f"no room at {width} columns for {', '.join(missing)}: {_ELSEWHERE} has them"
    if more > 0:
        yield f"and {more} more: {_ELSEWHERE} has every row"
