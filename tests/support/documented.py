"""Every command line in README.md and docs/, as it stands there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_FENCE = re.compile(r"^```.*?^```", re.M | re.S)
_INLINE = re.compile(r"`([^`\n]+)`")
_ANY_LEDGER = re.compile(r"\b4711\b|(?<=why )ID\b|(?<=show )ID\b")
_COMMENT = re.compile(r"\s+#.*$")


def documented(program: str, pages: Iterable[Path] = PAGES) -> list[str]:
    """All distinct lines that begin with `program`: of blocks, and inline between backquotes."""
    found = (*_beginning(program, _blocks, pages), *_beginning(program, _inline, pages))
    return sorted({*found})


def mentioned(program: str) -> list[str]:
    """Those that stand inline alone, where a page may speak of a command without its arguments."""
    inline = {*_beginning(program, _inline, PAGES)}
    return sorted(inline - {*_beginning(program, _blocks, PAGES)})


def _beginning(
    program: str, of: Callable[[str], Iterator[str]], pages: Iterable[Path]
) -> Iterator[str]:
    for page in pages:
        found = map(_bare, of(page.read_text(encoding="utf-8")))
        yield from (line for line in found if line.startswith(f"{program} "))


def _blocks(text: str) -> Iterator[str]:
    for block in _FENCE.findall(text):
        yield from _whole(block.splitlines()[1:-1])
    yield from (line for line in _FENCE.sub("", text).splitlines() if line.startswith("    "))


def _whole(lines: list[str]) -> Iterator[str]:
    """Commands of several lines as one: a shell reads on while a quote is open."""
    said = ""
    for line in lines:
        said = f"{said} {line.strip()}" if said else line
        if not (said.startswith("tierkeeper ") and _is_open(said)):
            yield said
            said = ""
    if said:
        yield said


def _is_open(said: str) -> bool:
    try:
        shlex.split(said, comments=True)
    except ValueError:
        return True
    return False


def _inline(text: str) -> Iterator[str]:
    yield from (match[1] for match in _INLINE.finditer(_FENCE.sub("", text)))


def _bare(line: str) -> str:
    """Without prompt, comment, and what a shell does before it; one name for any ledger."""
    line = _COMMENT.sub("", line.strip().removeprefix("$ ").rpartition("&& ")[2]).strip()
    return _ANY_LEDGER.sub("12345", line)
