"""The sentences of every Markdown page that people read.

Owns: a table cell and a list item are sentences of their own. Code blocks, link targets and pages
that are generated from help and settings are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.rooms import ROOT
from tests.support.sentences.text import Sentence, sentences_of

PART = "docs"
_AT_THE_TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_GENERATED = {"docs/cli.md", "docs/settings.md"}  # their text is in help and code
_PICTURES = "terminals"
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_URL = re.compile(r"<?https?://\S+")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+|^#+\s+|^>\s?")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_FENCE = re.compile(r"^\s*```")


def of_pages() -> Iterator[Sentence]:
    for path in pages():
        place = str(path.relative_to(ROOT))
        for line, block in blocks(path.read_text(encoding="utf-8")):
            yield from sentences_of(PART, f"{place}:{line}", block)


def pages() -> list[Path]:
    found = [ROOT / name for name in _AT_THE_TOP]
    found += sorted(
        path
        for path in (ROOT / "docs").rglob("*.md")
        if path.parent.name != _PICTURES and str(path.relative_to(ROOT)) not in _GENERATED
    )
    return found


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """(first line, text) of each paragraph, item, heading and cell."""
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    first, held, fenced = 1, "", False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if _FENCE.match(line):
            fenced, line = not fenced, ""
        elif fenced or (not held and line.startswith("    ")):
            line = ""
        starts = not line.strip() or _ITEM.match(line) or line.lstrip().startswith("|")
        if starts and held:
            yield first, _bare(held)
            held = ""
        if line.lstrip().startswith("|"):
            yield from ((number, _bare(cell)) for cell in re.split(r"(?<!\\)\|", line))
        elif line.strip():
            if not held:
                first = number
            held += f"{_ITEM.sub('', line) if starts or not held else line} "
            if line.startswith("#"):
                yield first, _bare(held)
                held = ""


def _bare(text: str) -> str:
    return " ".join(_URL.sub("X", _LINK.sub(_shown, text)).strip(" -").split())


def _shown(link: re.Match[str]) -> str:
    """The words of a link; a file's name is code."""
    return f"`{link[1]}`" if "/" in link[1] or link[1].endswith(".md") else link[1]
