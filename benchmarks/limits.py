"""What bounds an offload, whoever does it: limits of goals from the ceilings of the same run.

Owns: nothing is a limit but what bare clients, bookies and library calls did on the same bytes. For
a pace it is the store, by a share of `ceiling-put-get`; or the cores, where the least work there
is would leave them a tenth at the pace asked for. For a cost it is the least work itself, where
that leaves a tenth of what the goal grants: requests, records and framing cost more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

Row = Mapping[str, Any]
MBS = "mb_per_s"
CLIENTS, BOOKIES, DIGESTS = "ceiling-put-get", "ceiling-bookies", "ceiling-digests"
CLIENTS_SHARE = 0.8
LEAST_SHARE = 0.9


class By(Enum):
    """What may replace a goal."""

    STORE = auto()  # a pace
    LEAST_WORK = auto()  # a cost


@dataclass(frozen=True, slots=True, kw_only=True)
class _Least:
    """The least work for a GB, and the words for what it consists of."""

    cost: float
    said: str


class Ceilings:
    """Rows of one run, by contender, kind and store, as they bound one store's goals.

    `cores` are those that all processes share; None where they do not.
    """

    def __init__(
        self,
        rows: Mapping[tuple[str, str, str], Row],
        *,
        store: str,
        first_store: str,
        cores: int | None,
    ) -> None:
        self.store = store
        self._rows, self._first, self._cores = rows, first_store, cores

    def row(self, contender: str, kind: str) -> Row | None:
        return self._rows.get((contender, kind, self.store))

    def share(self, own: Row, kind: str) -> float | None:
        """Of what bare clients reached on the same bytes; None if they were not measured."""
        bare = self.row(CLIENTS, kind)
        return None if bare is None else float(own[MBS]["median"]) / float(bare[MBS]["median"])

    def pace(self, own: Row, kind: str, *, asked: float) -> str | None:
        """Why no more than this row's MB/s, or not those asked for, can be had; None if they can.

        `asked` is in MB/s.
        """
        share = self.share(own, kind)
        if share is not None and share >= CLIENTS_SHARE:
            bare = self._rows[CLIENTS, kind, self.store][MBS]["median"]
            return (
                f"{share:.0%} of {CLIENTS}, the same bytes by bare clients. {bare:.0f} MB/s is all "
                "that this store gives"
            )
        least = self._least(kind, lambda row: float(row["cpu_s_per_gb"]["median"]))
        if least is None or self._cores is None:
            return None
        bears = 1000 * self._cores / least.cost
        if asked < LEAST_SHARE * bears:
            return None
        return (
            f"{least.said}. So {self._cores} cores bear {bears:.0f} MB/s at most. "
            f"The goal asks for {asked:.0f}"
        )

    def work(self, kind: str, cost: Callable[[Row], float], *, granted: float) -> str | None:
        """Why it cannot cost less; None if it can. `granted` is in CPU s/GB, as `cost` is."""
        least = self._least(kind, cost)
        if least is None or least.cost < LEAST_SHARE * granted:
            return None
        return f"{least.said}. The goal grants {granted:.3g}"

    def _least(self, kind: str, cost: Callable[[Row], float]) -> _Least | None:
        """Bookies and digests are measured on the first store only: they do not depend on it."""
        places = ((CLIENTS, self.store), (BOOKIES, self._first), (DIGESTS, self._first))
        rows = [self._rows.get((name, kind, store)) for name, store in places]
        found = [cost(row) for row in rows if row is not None]
        if len(found) < len(places):
            return None
        total = sum(found)
        names = f"{CLIENTS}, {BOOKIES} and {DIGESTS}"
        return _Least(cost=total, said=f"{names} spend {total:.3g} CPU s/GB on the same bytes")
