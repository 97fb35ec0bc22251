r"""A page in Markdown, readable as it is. Pure.

Owns: text of others stands in code spans, where nothing is markup. A backtick, which would end
one, and a bar, which would end a table's cell, are shown as `\x60` and `\x7c`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tiering_assets.audit.report.page_parts import Grid, Page, Paragraph, Points, Theirs, Words
from tiering_assets.resources.plain_text import plain

_ENDS: Final = str.maketrans({"`": r"\x60", "|": r"\x7c"})


def render_markdown(page: Page) -> str:
    lines = [f"# {_words(page.title)}", ""]
    for section in page.sections:
        lines += [f"## {section.title}", ""]
        for part in section.parts:
            lines += [*_part(part), ""]
    return "\n".join(lines) + "\n"


def _part(part: Paragraph | Points | Grid) -> Iterator[str]:
    match part:
        case Paragraph():
            yield _words(part.words)
        case Points():
            yield from (f"- {_words(line)}" for line in part.lines)
        case Grid():
            text = len(part.head) - part.numbers
            yield _row(list(part.head))
            yield _row(["---" if place < text else "---:" for place in range(len(part.head))])
            yield from (_row([_words(cell) for cell in row]) for row in part.rows)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _words(words: Words) -> str:
    return "".join(_code(piece.text) if isinstance(piece, Theirs) else piece for piece in words)


def _code(text: str) -> str:
    """A code span; of nothing there is none, and one of blanks alone keeps them."""
    return f"`{plain(text).translate(_ENDS)}`" if text else "(empty)"
