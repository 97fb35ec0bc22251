"""A page in HTML: one file, that loads nothing and runs nothing. Pure.

Owns: all text is escaped, ours, too, so that no element comes from a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from tiering_assets.audit.report.page_parts import Grid, Page, Paragraph, Points, Theirs, Words
from tiering_assets.resources.plain_text import plain

_STYLE: Final = """\
body { font: 15px/1.5 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #111;
  background: #fff; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #999; padding: .25em .6em; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; }
code { font-family: monospace; overflow-wrap: anywhere; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } tr, li { break-inside: avoid; }
  thead { display: table-header-group; } }
"""
_HEAD: Final = f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<style>
{_STYLE}</style>
"""
TAIL: Final = "</body>\n</html>\n"


def render_html(page: Page) -> str:
    """Up to where the blocks of a report stand; TAIL is the end behind them."""
    title = "".join(piece.text if isinstance(piece, Theirs) else piece for piece in page.title)
    lines = [
        _HEAD + f"<title>{_text(title)}</title>",
        "</head>",
        "<body>",
        f"<h1>{_words(page.title)}</h1>",
    ]
    for section in page.sections:
        lines.append(f"<h2>{_text(section.title)}</h2>")
        for part in section.parts:
            lines += _part(part)
    return "\n".join(lines) + "\n"


def _part(part: Paragraph | Points | Grid) -> Iterator[str]:
    match part:
        case Paragraph():
            yield f"<p>{_words(part.words)}</p>"
        case Points():
            yield "<ul>"
            yield from (f"<li>{_words(line)}</li>" for line in part.lines)
            yield "</ul>"
        case Grid():
            text = len(part.head) - part.numbers
            yield "<table>"
            yield f"<thead>{_row('th', [_text(name) for name in part.head], text)}</thead>"
            yield "<tbody>"
            yield from (_row("td", [_words(cell) for cell in row], text) for row in part.rows)
            yield "</tbody>"
            yield "</table>"


def _row(tag: str, cells: list[str], text: int) -> str:
    made = [
        f"<{tag}{_NUMBER if place >= text else ''}>{cell}</{tag}>"
        for place, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(made)}</tr>"


_NUMBER: Final = ' class="number"'


def _words(words: Words) -> str:
    return "".join(
        f"<code>{_text(piece.text)}</code>" if isinstance(piece, Theirs) else _text(piece)
        for piece in words
    )


def _text(text: str) -> str:
    return escape(plain(text))
