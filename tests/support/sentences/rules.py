"""What makes a sentence hard to read: too many words, two negatives in one clause, a rare word.

Owns: a clause ends at a semicolon, a colon, a dash, a bracket, and at a comma. What stands
between two commas and has no verb of its own belongs to the clause before it. So "nothing was
done, and no topic was loaded" has two clauses, "what is no position, or neither" has one. A list
repeats its word and denies each thing once: "no gap and no overlap".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tests.support.sentences.text import tokens, words

MOST_WORDS = 25
_NEGATIVE = {
    *("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "nowhere"),
    *("without", "cannot", "hardly", "scarcely", "barely"),
}
_VERBS = {
    *("is", "are", "was", "were", "be", "been", "am", "has", "have", "had", "do", "does", "did"),
    *("can", "cannot", "could", "may", "might", "must", "shall", "should", "will", "would"),
    *("says", "reads", "writes", "needs", "takes", "makes", "gives", "goes", "finds", "names"),
    *("stays", "keeps", "stands", "holds", "tells", "prints", "counts", "deletes", "comes"),
    *("lies", "lets", "knows", "sees", "gets", "asks", "waits", "ends", "starts", "begins"),
    *("refuses", "fails", "loads", "belongs", "means", "leaves", "remains", "happens", "runs"),
    *("set", "use", "read", "write", "run", "wait", "ask", "look", "keep", "let", "gave", "lost"),
}
_SUBJECTS = {"it", "that", "who", "which", "this", "each", "one", "nobody", "nothing", "everything"}
_PEOPLE = {"we", "they", "you"}
_ARTICLES = {"a", "an", "the", "no", "its", "each", "every", "our", "that"}
_JOINTS = {"and", "or", "but", "so", "then"}
_BREAK = re.compile(r"[;:()]|\s[-\u2013\u2014]+\s|\u2014")


def problems(text: str, is_known: Callable[[str], bool]) -> list[str]:
    """Why a sentence is refused, empty for a plain one."""
    return [*_length(text), *_negatives(text), *_rare(text, is_known)]


def _length(text: str) -> Iterator[str]:
    if (count := len(tokens(text))) > MOST_WORDS:
        yield f"{count} words"


def _negatives(text: str) -> Iterator[str]:
    for clause in clauses(text):
        found = _denials(clause)
        if len(found) > 1 and found != ["neither", "nor"]:
            yield f"double negative: {' + '.join(found)}"


def _denials(clause: str) -> list[str]:
    """The negatives of a clause, without those that repeat the one before in a list."""
    found: list[str] = []
    before = ""
    for word in (
        word for token in tokens(clause) for word in [*words(token), *("," * token.endswith(","))]
    ):
        if _is_negative(word) and not (before in {*_JOINTS, ","} and found[-1:] == [word]):
            found.append(word)
        before = word
    return found


def _rare(text: str, is_known: Callable[[str], bool]) -> Iterator[str]:
    for word in dict.fromkeys(words(text)):
        if not is_known(word):
            yield f"rare word: {word}"


def clauses(text: str) -> list[str]:
    """A sentence in pieces that each can deny something once."""
    found: list[str] = []
    for part in _BREAK.split(re.sub(r"`[^`]*`", "X", text)):
        whole = [""]
        for piece in part.split(","):
            if _has_verb(piece) and _has_verb(whole[-1]):
                whole.append(piece)
            else:
                whole[-1] += f",{piece}"
        found += [piece for piece in whole if piece.strip()]
    return found


def _has_verb(piece: str) -> bool:
    said = ["", "and", *words(piece)]  # it may begin with its verb
    return any(map(_is_verb, said, said[1:], said[2:]))


def _is_verb(first: str, second: str, word: str) -> bool:
    """As far as it and the two words before it tell."""
    return (
        word in _VERBS
        or word.endswith("n't")
        or (word.endswith("ed") and len(word) > 4)
        or (word.endswith("s") and (second in {*_SUBJECTS, *_JOINTS} or first in _ARTICLES))
        or second in _PEOPLE
    )


def _is_negative(word: str) -> bool:
    return word in _NEGATIVE or word.endswith("n't")
