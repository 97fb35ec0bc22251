"""What the readable part of a report is made of, whatever it is written in. Pure.

Owns: text is either ours or theirs. What is Theirs (names, keys, what a finding says) may hold any
character, and a renderer shows it as text and as nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Theirs:
    """Text that others chose."""

    text: str


Words = tuple[str | Theirs, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    words: Words


@dataclass(frozen=True, slots=True)
class Points:
    """Each a line of its own."""

    lines: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """`numbers` is how many columns, counted from the right, are numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
    numbers: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    parts: tuple[Paragraph | Points | Grid, ...]


@dataclass(frozen=True, slots=True)
class Page:
    title: Words
    sections: tuple[Section, ...]
