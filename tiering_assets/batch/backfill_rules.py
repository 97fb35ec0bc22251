"""How a backfill of many ledgers is cut into lots, and when it will be finished. Pure.

Owns: a lot is copied and read back before the next one begins. So what was done is proven, a pause
keeps the rest from beginning, and the time of whole lots tells how long the rest takes. Sizes are
mixed: a lot of small ledgers costs by their number, a large one by its bytes, and both are fitted.
Oldest first, as they are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tiering_assets.resources.metastore.ledger_info import LedgerInfo

LOTS: Final = 40  # about; each costs its runner a start
LOT_LEDGERS_MIN: Final = 5
DOUBT: Final = 0.02  # of a lot's time; what single ledgers are off from any law
TOLD_FROM: Final = 0.1  # of the bytes and of the ledgers, before which too little is known
_TICK_S: Final = 1e-3
_NEARLY: Final = 1e-200


@dataclass(frozen=True, slots=True)
class LotDone:
    """What one lot was, and how long it took."""

    ledgers: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a ledger costs whatever its size, and what a byte does."""

    ledger_s: float
    byte_s: float

    def seconds(self, ledgers: int, size: int) -> float:
        return self.ledger_s * ledgers + self.byte_s * size


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillFigures:
    """Where a backfill is. `seconds_left` is None until a tenth of both is done."""

    ledgers_done: int
    ledgers: int
    bytes_done: int
    bytes: int
    seconds_left: float | None


def cut_lots(ledgers: Sequence[LedgerInfo]) -> list[list[LedgerInfo]]:
    """All of them, in their order; a lot ends with the ledger that fills its share."""
    bytes_share = sum(one.size or 0 for one in ledgers) / LOTS
    ledgers_share = max(LOT_LEDGERS_MIN, len(ledgers) / LOTS)
    lots: list[list[LedgerInfo]] = [[]]
    if len(ledgers) <= LOT_LEDGERS_MIN:
        return [list(ledgers)]
    for one in ledgers:
        lot = lots[-1]
        if len(lot) >= ledgers_share or sum(other.size or 0 for other in lot) >= bytes_share > 0:
            lots.append(lot := [])
        lot.append(one)
    return lots


def fit_costs(done: Sequence[LotDone], *, ledgers: int, size: int) -> Costs:
    """The costs that come nearest to what the lots took; none is below zero.

    Errors count by a lot's share of its own time, as noise is in proportion to it. Lots that are
    all alike cannot tell number from bytes. So in doubt each of both takes half of the time of all
    `ledgers` and of their `size`, which DOUBT weighs against the lots.
    """
    ledgers, size = max(1, ledgers), max(1, size)
    rows = [
        (one.ledgers / ledgers / seconds, one.bytes / size / seconds)
        for one in done
        for seconds in (max(one.seconds, _TICK_S),)
    ]
    n1, b1 = sum(n for n, _ in rows), sum(b for _, b in rows)
    shares = sum(one.ledgers / ledgers + one.bytes / size for one in done) / 2
    doubt = DOUBT * shares / max(sum(one.seconds for one in done), _TICK_S)
    nn = sum(n * n for n, _ in rows) + doubt**2
    bb = sum(b * b for _, b in rows) + doubt**2
    nb = sum(n * b for n, b in rows) - doubt**2
    det = max(nn * bb - nb * nb, _NEARLY)
    whole_n, whole_b = (n1 * bb - b1 * nb) / det, (b1 * nn - n1 * nb) / det
    if whole_n < 0:
        whole_n, whole_b = 0.0, b1 / max(bb, _NEARLY)
    elif whole_b < 0:
        whole_n, whole_b = n1 / max(nn, _NEARLY), 0.0
    return Costs(ledger_s=whole_n / ledgers, byte_s=whole_b / size)


def is_told(done: Sequence[LotDone], *, found: LotDone, ledgers: int, size: int) -> bool:
    """Whether enough was copied to tell a finish: of what was to be copied, a tenth of both."""
    copied_ledgers, copied_bytes = sum(one.ledgers for one in done), sum(one.bytes for one in done)
    return copied_bytes >= TOLD_FROM * (size - found.bytes) and copied_ledgers >= TOLD_FROM * (
        ledgers - found.ledgers
    )


def figures_of(
    done: Sequence[LotDone],
    *,
    found: LotDone,
    ledgers: int,
    size: int,
    publish_s: float,
) -> BackfillFigures:
    """Where it is after these lots, of so many ledgers and bytes.

    `found` is what needed no copy, as an earlier run's, which says nothing of the pace. `publish_s`
    is what the publications to come will take. The first lot that copied is left out of the pace
    where there are others: imports and connections are made in it, once.
    """
    ledgers_copied, bytes_copied = sum(one.ledgers for one in done), sum(one.bytes for one in done)
    ledgers_due, bytes_due = ledgers - found.ledgers, size - found.bytes
    left = None
    if is_told(done, found=found, ledgers=ledgers, size=size):
        copied = [one for one in done if one.ledgers]
        costs = fit_costs(copied[1:] or copied, ledgers=ledgers_due, size=bytes_due)
        left = costs.seconds(ledgers_due - ledgers_copied, bytes_due - bytes_copied) + publish_s
    return BackfillFigures(
        ledgers_done=found.ledgers + ledgers_copied,
        ledgers=ledgers,
        bytes_done=found.bytes + bytes_copied,
        bytes=size,
        seconds_left=left,
    )
