"""A sentence that a user can meet, where it stands, and how a text falls into sentences and words.

Owns: a sentence ends at . ! or ? before a capital, and where its text ends. A colon or a semicolon
does not end it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_END = re.compile(r"""(?<=[.!?])["')*]*\s+(?=[*"'(]*[A-Z`])""")
_CODE = re.compile(r"`[^`]*`|'[^']*--[^']*'")
_EDGES = "*\"'()[]{}<>.,;:!?…"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z']*(-[A-Za-z']+)*")
_CAMEL = re.compile(r"[a-z][A-Z]|^[A-Z][a-z]+[A-Z]")
CODE = "X"  # stands for inline code and for a value
_CODES = re.compile(r"\bX(?:, X\b)+")
_QUOTES = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}
_VALUES = re.compile(r"[Xx]+s?")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`part` is help, code, records or docs; `place` a command, a record's kind, or file:line."""

    part: str
    place: str
    text: str

    @property
    def home(self) -> str:
        """The command or file that it is counted under."""
        return self.place.rpartition(":")[0] or self.place


def sentences_of(part: str, place: str, text: str) -> Iterator[Sentence]:
    """Those of one block of text, which is a paragraph, a list item or a cell."""
    text = " ".join(text.translate(_QUOTES).split())
    for piece in _END.split(text):
        if piece.strip():
            yield Sentence(part, place, piece.strip())


def tokens(text: str) -> list[str]:
    """What counts as a word of a sentence: inline code is one, and so is a list of it. Dashes and
    signs do not count.
    """
    bare = _CODES.sub(CODE, _CODE.sub(CODE, text))
    return [token for token in bare.split() if any(map(str.isalnum, token))]


def words(text: str) -> list[str]:
    """The words of the language, in small letters: no code, path, identifier, option or number."""
    return [word for token in tokens(text) for word in _words_of(token)]


def _words_of(token: str) -> Iterator[str]:
    bare = token.strip(_EDGES)
    if bare.startswith("-") or not _PLAIN.fullmatch(bare):
        return
    for piece in bare.split("-"):
        if not _CAMEL.search(piece) and not _VALUES.fullmatch(piece):
            yield piece.removesuffix("'s").strip("'").lower()
