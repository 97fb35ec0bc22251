"""Which ledgers come next to who reads them as they are posted, each once for ever. Pure.

Owns: a ledger comes with the page that first told of blocks of it. What happens to it later, by
healing, by a rebuild or a join of files, brings no second coming. One that has no sound attempt by
then is owed, and comes as soon as it has one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from tiering_assets.resources.errors import FormatError


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """All ledgers of pages up to this one have come, except those that are `owed`."""

    page: int = 0
    owed: frozenset[int] = frozenset()

    def told(self) -> dict[str, Any]:
        """As Spark keeps it."""
        return {"page": self.page, "owed": ",".join(map(str, sorted(self.owed)))}

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> StreamPosition:
        """FormatError for what `told` never gave."""
        try:
            owed = str(told["owed"])
            return cls(int(told["page"]), frozenset(map(int, owed.split(",") if owed else [])))
        except (KeyError, TypeError, ValueError):
            raise FormatError(
                f"a position in a stream is {dict(told)!r}: expected a page and ids of ledgers, "
                "such as {'page': 812, 'owed': '4711,4712'}"
            ) from None


def coming(
    start: StreamPosition, first_pages: Mapping[int, int], *, until: int
) -> list[tuple[int, int]]:
    """Pages and ledgers behind a position, up to a page, in order; those that are owed apart."""
    return sorted(
        (page, ledger) for ledger, page in first_pages.items() if start.page < page <= until
    )


def next_position(
    start: StreamPosition,
    first_pages: Mapping[int, int],
    readable: Collection[int],
    *,
    until: int,
    most: int | None = None,
) -> StreamPosition:
    """How far to go from `start`: to page `until`, and past `most` ledgers by those of a page.

    `first_pages` tells of each ledger which page brought it. Of those, and of the owed ones, some
    are `readable` now. Where none of these is new, there is nothing to go on for.
    """
    paid = start.owed.intersection(readable)
    on_pages = coming(start, first_pages, until=until)
    count, end = len(paid), until
    for page, some in groupby(on_pages, key=itemgetter(0)):
        if most is not None and count >= most:
            end = page - 1
            break
        count += sum(ledger in readable for _page, ledger in some)
    if not count:
        return start
    new = {ledger for page, ledger in on_pages if page <= end}
    return StreamPosition(end, start.owed.union(new).difference(readable))


def due(
    start: StreamPosition, end: StreamPosition, first_pages: Mapping[int, int]
) -> frozenset[int]:
    """The ledgers that come between two positions of one stream."""
    new = {ledger for _page, ledger in coming(start, first_pages, until=end.page)}
    return start.owed.union(new).difference(end.owed)
