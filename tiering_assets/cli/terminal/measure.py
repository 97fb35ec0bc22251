"""How much room text takes on a terminal, and how it is made to fit. Pure.

Owns: widths are those of cells: a Chinese character takes two, an accent none. A fold loses
nothing; only `cut_middle` does, and leaves a mark where. A digest that somebody will copy is one
word, so there are folds that break no word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

CUT = "…"


def fold(text: str, width: int, *, whole_words: bool = False) -> list[str]:
    """Lines of at most `width`: between words, and inside of one that is longer than a line.

    With `whole_words` such a word is a line of its own, and wider.
    """
    if cell_len(text) <= width:
        return [text]
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        *whole, line = [word] if whole_words else _chop(word, width)
        lines += whole
    return [*lines, line]


def _chop(word: str, width: int) -> Iterator[str]:
    piece, taken = "", 0
    for character in word:
        size = cell_len(character)
        if piece and taken + size > width:
            yield piece
            piece, taken = "", 0
        piece, taken = piece + character, taken + size
    yield piece


def cut_middle(text: str, width: int) -> str:
    """The text, or as much of its begin and of its end as there is room for."""
    if cell_len(text) <= width:
        return text
    room = max(width - cell_len(CUT), 0)
    head = _first(text, room // 2)
    return f"{head}{CUT}{_first(text[::-1], room - cell_len(head))[::-1]}"


def _first(text: str, width: int) -> str:
    """What of its beginning fits."""
    taken = 0
    for at, character in enumerate(text):
        taken += cell_len(character)
        if taken > width:
            return text[:at]
    return text


def longest_word(text: str) -> int:
    return max(map(cell_len, text.split(" ")))


def pad(text: str, width: int, *, right: bool) -> str:
    """The text and the spaces that it lacks."""
    spaces = " " * (width - cell_len(text))
    return spaces + text if right else text + spaces


def share(room: int, wanted: Sequence[int], least: Sequence[int]) -> list[int] | None:
    """What each gets of the room, who wants little all of it; None where not all get the least."""
    got = list(least)
    left = room - sum(got)
    if left < 0:
        return None
    open_ = [i for i, want in enumerate(wanted) if want > got[i]]
    while left > 0 and open_:
        smallest = min(open_, key=lambda i: (got[i], i))
        got[smallest] += 1
        left -= 1
        open_ = [i for i in open_ if wanted[i] > got[i]]
    return got
