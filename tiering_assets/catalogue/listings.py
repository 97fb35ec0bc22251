"""Every record's key, listed in spans of keys, some at a time: each is one sequence of requests.

Owns: spans have every key of every folder once, whatever the catalogue knows: from that come only
their bounds. Keys of a lot lie between its bounds, so they can be compared with what is known of
those. Memory is for `AT_ONCE` lots, or one for each folder where nothing is known yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Final, NamedTuple

from tiering_assets.catalogue.view import Tables, answer
from tiering_assets.ground.named_records import is_named
from tiering_assets.ground.stack import Stack
from tiering_assets.records.key_kinds import FOLDERS

LOT: Final = 25_000
AT_ONCE: Final = 4


class ListedLot(NamedTuple):
    """Keys behind `after`, up to `upto`."""

    after: str
    upto: str
    keys: list[str]


class _Span(NamedTuple):
    """Keys of one folder behind `after`, up to `upto`: about so many."""

    after: str
    upto: str
    about: int


def listed_lots(stack: Stack, tables: Tables) -> Iterator[ListedLot]:
    """All keys of records that pages name, by listing. Little is one lot, of all folders."""
    spans = deque(_spans(tables))
    while spans:
        some = [spans.popleft()]
        while spans and sum(one.about for one in [*some, spans[0]]) <= AT_ONCE * LOT:
            some.append(spans.popleft())
        lots = stack.in_parallel(lambda span: _listed(stack, span.after, span.upto), some)
        if all(lot.upto == span.upto for lot, span in zip(lots, some, strict=True)):
            keys = [key for lot in lots for key in lot.keys]
            yield ListedLot(some[0].after, some[-1].upto, keys)
            continue
        for lot, span in zip(lots, some, strict=True):
            yield lot
            while lot.upto != span.upto:
                lot = _listed(stack, lot.upto, span.upto)
                yield lot


def _listed(stack: Stack, after: str, upto: str) -> ListedLot:
    """As much of a span as is one lot."""
    folder, keys = after.partition("/")[0], list[str]()
    listing = stack.book.listed(f"{folder}/", after=after)
    for key in takewhile(lambda key: key <= upto, (key for key, _one in listing)):
        keys.append(key)
        if len(keys) == LOT:
            return ListedLot(after, key, keys)
    return ListedLot(after, upto, keys)


def _spans(tables: Tables) -> Iterator[_Span]:
    """In key order, each of about a lot, if ledgers' numbers lie evenly."""
    rows = answer(
        tables,
        "select kind, count(*) as n, min(ledger_id) as first, max(ledger_id) as last "
        "from events group by kind",
    ).to_pylist()
    known = {row["kind"]: row for row in rows}
    for folder in sorted(FOLDERS, key=lambda folder: f"{folder}/"):
        if not is_named(f"{folder}/"):
            continue
        row, parts, cuts = known.get(folder, {}), 1, set[str]()
        if row.get("first") is not None:
            parts = row["n"] // LOT + 1
            wide = row["last"] - row["first"]
            cuts = {f"{folder}/{row['first'] + wide * n // parts}" for n in range(1, parts)}
        bounds = [f"{folder}/", *sorted(cuts), f"{folder}0"]  # '0' comes behind '/'
        for after, upto in pairwise(bounds):
            yield _Span(after, upto, row.get("n", 0) // parts)
