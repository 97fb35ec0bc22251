"""Which words are known: common English ones, those of the glossary, and names of products.

Owns: an inflection of a known word is known, and so is its British spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from spellchecker import SpellChecker

from tests.support.rooms import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
NAMES = ROOT / "tests" / "support" / "names.txt"
COMMON = 50  # times in the corpus that the list was counted in
_WORD = re.compile(r"[a-z][a-z']*")
_ENDINGS = (
    *(("ies", "y"), ("ied", "y"), ("es", ""), ("s", ""), ("ed", ""), ("ed", "e"), ("ing", "")),
    *(("ing", "e"), ("er", ""), ("er", "e"), ("est", ""), ("ly", "")),
)


@cache
def is_known(word: str) -> bool:
    """Whether a word in small letters, or what it is an inflection of, is in one of the lists."""
    known = _known()
    forms = (word, word.replace("our", "or"), word.replace("is", "iz"))
    return any(form in known for one in forms for form in (one, *_stems(one)))


def _stems(word: str) -> Iterator[str]:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word.removesuffix(ending) + instead
            yield stem
            if stem[-1] == stem[-2:-1]:  # planned is of plan
                yield stem[:-1]


@cache
def _known() -> frozenset[str]:
    counted = SpellChecker(language="en").word_frequency
    common = (word for word in counted if counted[word] >= COMMON)
    return frozenset({*common, *_field(), *_names()})


def _field() -> Iterator[str]:
    """The words that the glossary explains, which stand in the first cell of a row."""
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| word "):
            yield from _WORD.findall(line.split("|")[1].lower())


def _names() -> Iterator[str]:
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        yield from _WORD.findall(line.partition("#")[0].lower())
