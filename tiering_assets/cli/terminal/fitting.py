"""Which columns a terminal has room for, how wide each is, and what is done about the rest. Pure.

Owns: the order in which room is made. First sentences are folded; then digests and findings go
below their row; then times are told by their age alone; then a topic is cut; then the lightest
column is left out, and all of it is tried again. Ids, states and topics are always there: where not
even they stand side by side, they stand one below the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tiering_assets.cli.terminal.columns import ALWAYS, Column, ValueKind
from tiering_assets.cli.terminal.measure import share

GAP: Final = 2
BELOW: Final = frozenset({ValueKind.DIGEST, ValueKind.FINDINGS})
_FOLDED: Final = {ValueKind.TEXT: 16, ValueKind.FINDINGS: 32}
_TOPIC_LEASTS: Final = (28, 20)  # before a column is left out for it, and after all of them are


@dataclass(frozen=True, slots=True)
class Room:
    """What a column takes: `whole`, or `short` where its value may be told in fewer words.

    `word` is the longest word of all.
    """

    column: Column
    whole: int
    short: int
    word: int = 0

    @property
    def head(self) -> int:
        return len(self.column.name)


@dataclass(frozen=True, slots=True)
class Fit:
    """By place of a column. What is in none of the first two is left out."""

    widths: Mapping[int, int]
    below: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
    short: frozenset[int] = field(default_factory=frozenset)
    cut: frozenset[int] = field(default_factory=frozenset)


def fit(rooms: Mapping[int, Room], width: int) -> Fit:
    """The first way that fits, of those that lose less first. The last always does."""
    return next(found for found in _ways(rooms, width) if found is not None)


def _ways(rooms: Mapping[int, Room], width: int) -> Iterator[Fit | None]:
    first, *others = rooms
    light = [i for i in others if rooms[i].column.kind not in ALWAYS | BELOW]
    light.sort(key=lambda i: (rooms[i].column.rank, -i))
    for dropped in range(len(light) + 1):
        left_out = sorted(light[:dropped])
        kept = {i: one for i, one in rooms.items() if i not in left_out}
        for below in _below(kept, first):
            for short in (False, True):
                yield _try(kept, width, below=below, left_out=left_out, short=short)
        for below in _below(kept, first):
            for least in _TOPIC_LEASTS[: 1 if dropped < len(light) else None]:
                yield _try(kept, width, below=below, left_out=left_out, short=True, least=least)
    core = [i for i in others if i not in light]
    kept = {i: one for i, one in rooms.items() if i not in light}
    sides = [i for i in core if rooms[i].column.kind is ValueKind.STATE]
    for beside in (sides, sides[:1]):
        below = [i for i in core if i not in beside]
        yield _try(kept, width, below=below, left_out=light, short=True)
    yield Fit({first: width}, below=tuple(core), left_out=tuple(sorted(light)))


def _below(kept: Mapping[int, Room], first: int) -> Iterator[list[int]]:
    """Nothing; then digests; then findings, too."""
    yield []
    digests = [i for i, one in kept.items() if one.column.kind is ValueKind.DIGEST and i != first]
    if digests:
        yield digests
    findings = [
        i for i, one in kept.items() if one.column.kind is ValueKind.FINDINGS and i != first
    ]
    if findings:
        yield sorted([*digests, *findings])


def _try(
    kept: Mapping[int, Room],
    width: int,
    *,
    below: Sequence[int],
    left_out: Sequence[int],
    short: bool,
    least: int | None = None,
) -> Fit | None:
    """The widths that fit; `least` is what remains of a topic at least, None where none is cut."""
    table = {i: one for i, one in kept.items() if i not in below}
    wanted, least_of = [], []
    for one in table.values():
        want = max(one.head, one.short if short else one.whole)
        floor = _least(one, want, least)
        folded = least is not None and one.column.kind in _FOLDED
        wanted.append(floor if folded else want)  # a topic is cut last, and gets its room first
        least_of.append(floor)
    got = share(width - GAP * (len(table) - 1), wanted, least_of)
    if got is None:
        return None
    widths = dict(zip(table, got, strict=True))
    topics = [i for i, one in table.items() if one.column.kind is ValueKind.TOPIC]
    return Fit(
        widths,
        below=tuple(below),
        left_out=tuple(left_out),
        short=frozenset(i for i, one in table.items() if short and one.short < one.whole),
        cut=frozenset(i for i in topics if widths[i] < table[i].whole),
    )


def _least(one: Room, want: int, topic: int | None) -> int:
    """What a column cannot do without."""
    kind = one.column.kind
    if kind in _FOLDED:
        word = one.word if kind is ValueKind.FINDINGS else 0
        return min(want, max(one.head, _FOLDED[kind], word))
    if kind is ValueKind.TOPIC and topic is not None:
        return min(want, max(one.head, topic))
    return want
