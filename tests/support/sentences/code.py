"""The sentences in string literals of the product, and in docstrings that Dagster shows.

Owns: every literal of three words or more counts, whatever it is passed to; so no list of calls can
miss one. A value in an f-string is X. Docstrings are left out, except those below a decorator of
Dagster: the ones of commands are part of the help.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.rooms import ROOT
from tests.support.sentences.text import CODE, Sentence, sentences_of, words

PART = "code"
FOLDERS = ("tiering_assets", "resources", "deploy")
_FEWEST_WORDS = 3
_DAGSTER = "dg"  # import dagster as dg, everywhere
_MARKUP = re.compile(r"</?[a-z]+[ >]|\{[^}]*: [^}]*;")  # of HTML, or a rule of its style
Function = ast.FunctionDef | ast.AsyncFunctionDef


def of_code() -> Iterator[Sentence]:
    for path in modules():
        place = str(path.relative_to(ROOT))
        for line, text in literals(path.read_text(encoding="utf-8")):
            yield from sentences_of(PART, f"{place}:{line}", text)


def modules() -> list[Path]:
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    links = (ROOT / "tiering_assets" / "resources").resolve()
    return sorted({path.resolve() for path in found if "_proto" not in path.parts} - {links})


def literals(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each that people can meet; a line end in it ends the text."""
    tree = ast.parse(source)
    for node, text in _texts(tree):
        parts = text.split("\n\n") if isinstance(node, Function) else text.split("\n")
        for part in parts:
            if len(words(part)) >= _FEWEST_WORDS and not _MARKUP.search(part):
                yield node.lineno, part


def _texts(node: ast.AST) -> Iterator[tuple[ast.expr | Function, str]]:
    if isinstance(node, Function) and _is_shown(node) and (shown := ast.get_docstring(node)):
        yield node, shown
    if isinstance(node, ast.expr) and (said := _said(node)) is not None:
        yield node, said
        for value in ast.walk(node):  # literals within the values of an f-string
            if isinstance(value, ast.FormattedValue):
                yield from _texts(value.value)
        return
    for child in ast.iter_child_nodes(node):
        if not _is_docstring(child):
            yield from _texts(child)


def _said(node: ast.expr) -> str | None:
    """The text of a literal, its values X; None where it is none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=pieces):
            return "".join(
                str(piece.value) if isinstance(piece, ast.Constant) else CODE for piece in pieces
            )
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            first, second = _said(left), _said(right)
            return first + second if first is not None and second is not None else None
        case _:
            return None


def _is_docstring(node: ast.AST) -> bool:
    """Or a bare string, which stands below a field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_shown(node: Function) -> bool:
    return any(ast.unparse(one).startswith(f"{_DAGSTER}.") for one in node.decorator_list)
