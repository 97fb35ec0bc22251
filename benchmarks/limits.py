"""What bounds an offload, whoever does it: limits of goals from the ceilings of the same run.

Owns: nothing is a limit but what bare clients did on the same bytes. A pace is limited by the store
or by all of the least work, where a share of that was reached, or where the goal asks for more than
that leaves. A cost is limited where the least work takes as much of what the goal grants: requests,
records and framing cost more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

Row = Mapping[str, Any]
MBS = "mb_per_s"
CLIENTS, LEAST = "ceiling-put-get", "ceiling-least-work"
CLIENTS_SHARE = 0.8
LEAST_SHARE = 0.9


class By(Enum):
    """What may replace a goal."""

    STORE = auto()  # a pace
    LEAST_WORK = auto()  # a cost


class Ceilings:
    """Rows of one run, by contender, kind and store, as they bound one store's goals."""

    def __init__(self, rows: Mapping[tuple[str, str, str], Row], *, store: str) -> None:
        self.store = store
        self._rows = rows

    def row(self, contender: str, kind: str) -> Row | None:
        return self._rows.get((contender, kind, self.store))

    def share(self, own: Row, kind: str) -> float | None:
        """Of what bare clients reached on the same bytes; None if they were not measured."""
        bare = self.row(CLIENTS, kind)
        return None if bare is None else _pace(own) / _pace(bare)

    def pace(self, own: Row, kind: str, *, asked: float) -> str | None:
        """Why no more than this row's MB/s, or not those asked for, can be had; None if they can.

        `asked` is in MB/s. Of two ceilings the lower one is told: it is the one that binds.
        """
        ceilings = [(name, row) for name in (CLIENTS, LEAST) if (row := self.row(name, kind))]
        for name, bare in sorted(ceilings, key=lambda ceiling: _pace(ceiling[1])):
            share = _pace(own) / _pace(bare)
            if share >= CLIENTS_SHARE or asked >= LEAST_SHARE * _pace(bare):
                return (
                    f"{name} reached {_pace(bare):.0f} MB/s on the same bytes. "
                    f"Ours is {share:.0%} of it, and the goal asks for {asked:.0f}"
                )
        return None

    def work(self, kind: str, cost: Callable[[Row], float], *, granted: float) -> str | None:
        """Why it cannot cost less; None if it can. `granted` is in CPU s/GB, as `cost` is."""
        bare = self.row(LEAST, kind)
        if bare is None or cost(bare) < LEAST_SHARE * granted:
            return None
        spent = f"{LEAST} spends {cost(bare):.3g} CPU s/GB on the same bytes"
        return f"{spent}. The goal grants {granted:.3g}"


def _pace(row: Row) -> float:
    return float(row[MBS]["median"])
