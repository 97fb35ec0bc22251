"""All that keeps the catalogue fast to ask, in one go: settle, cut, join, delete.

Contract: each step may be repeated and left out; a question has the same answer before and behind
each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tiering_assets.catalogue.settled import SETTLED
from tiering_assets.catalogue.upkeep.keep import keep
from tiering_assets.catalogue.upkeep.old_tables import drop_old_tables
from tiering_assets.catalogue.upkeep.settle import TAIL_MAX, Absorbed, cut, settle
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.ground.record_book import utc_now
from tiering_assets.ground.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptUp:
    """By settled table what was absorbed, and up to which turn its tail was cut, if it was.

    `joined` tables had many small files. `deleted` is None where clocks differ. `old` counts
    objects of tables of before a rebuild.
    """

    settled: Mapping[str, Absorbed]
    cut: Mapping[str, int]
    joined: tuple[str, ...]
    deleted: int | None
    old: int


def keep_up(
    stack: Stack,
    catalogue: Catalogue,
    *,
    all_rows: bool,
    tell: Callable[[str], None],
    clock: Callable[[], datetime] = utc_now,
) -> KeptUp:
    """Settle each table that has much to settle, or anything with `all_rows`, and clear up."""
    tail_max = 0 if all_rows else TAIL_MAX
    settled = {}
    for name in SETTLED:
        settled[name] = settle(
            catalogue, name, at=stack.objects.server_time(), tail_max=tail_max, tell=tell
        )
    now = stack.objects.server_time()
    cuts = {name: cut(catalogue, name, now=now) for name in SETTLED}
    kept = keep(catalogue, store_now=now, now=clock())
    return KeptUp(
        settled=settled,
        cut={name: turn for name, turn in cuts.items() if turn},
        joined=kept.joined,
        deleted=kept.deleted,
        old=drop_old_tables(stack, now=now),
    )
