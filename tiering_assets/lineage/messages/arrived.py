"""What the catalogue tells who reads ledgers as they are posted.

One question for the first page of each ledger of the topic, whatever its size; for ledgers that
come next one for each lot of LOT.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final

from tiering_assets.catalogue.facts.known_ledger import BY_BROKER
from tiering_assets.catalogue.view import Tables, answer, rows_of
from tiering_assets.lineage.find import blocks_of_ledgers, rows_of_topics
from tiering_assets.lineage.messages.arrivals import StreamPosition, coming
from tiering_assets.lineage.placed_block import PlacedBlock, attempt_that_counts
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.lots import lots_of
from tiering_assets.resources.sql import sql_text

LOT: Final = 1000


def first_pages(tables: Tables, topic: str) -> dict[int, int]:
    """Of ledgers of a topic, or of those like a pattern: the page that first told of blocks."""
    of_topics, is_one = rows_of_topics(tables, topic)
    found = answer(
        tables,
        f"select topic, ledger_id, min(page) as page {of_topics} group by topic, ledger_id",
    )
    columns = (found[name].to_pylist() for name in ("topic", "ledger_id", "page"))
    return {ledger: page for name, ledger, page in zip(*columns, strict=True) if is_one(name)}


def copied_by_brokers(tables: Tables, topic: str) -> set[int]:
    """Ledgers of a topic, or of those like a pattern, that are read from a copy of a broker."""
    of_topics, is_one = rows_of_topics(tables, topic, "ledgers")
    found = answer(
        tables, f"select topic, ledger_id {of_topics} and offloaded_by = {sql_text(BY_BROKER)}"
    )
    columns = (found[name].to_pylist() for name in ("topic", "ledger_id"))
    return {ledger for name, ledger in zip(*columns, strict=True) if is_one(name)}


def readable(
    tables: Tables, start: StreamPosition, came: Mapping[int, int], *, until: int, most: int | None
) -> set[int]:
    """Ledgers that are owed, or come next, whose attempt that counts has blocks.

    Pages are looked at until there are `most` of them.
    """
    found = _with_blocks(tables, start.owed)
    lot: list[int] = []
    for _page, some in groupby(coming(start, came, until=until), key=itemgetter(0)):
        if most is not None and len(found) >= most:
            return found
        lot += [ledger for _, ledger in some]
        if len(lot) >= LOT:
            found |= _with_blocks(tables, lot)
            lot = []
    return found | _with_blocks(tables, lot)


def blocks_that_came(
    tables: Tables, ledger_ids: Collection[int], came: Mapping[int, int]
) -> list[PlacedBlock]:
    """Theirs, in the order in which ledgers came. CatalogueError where one has none any more."""
    blocks = blocks_of_ledgers(tables, sorted(ledger_ids))
    without = sorted({*ledger_ids} - {block.ledger_id for block in blocks})
    if without:
        raise CatalogueError(
            f"ledgers {', '.join(map(str, without[:20]))} ({len(without)} in all) were to be read "
            "next, and the catalogue has no sound copy of them any more. `tierkeeper ledger show "
            f"{without[0]}` tells what is so now. The stream goes on once they are published again"
        )
    return sorted(blocks, key=lambda one: (came.get(one.ledger_id, 0), one.ledger_id, one.part))


def _with_blocks(tables: Tables, ledger_ids: Collection[int]) -> set[int]:
    found: set[int] = set()
    for lot in lots_of(sorted(ledger_ids), LOT):
        counts = {row["ledger_id"]: attempt_that_counts(row) for row in rows_of(tables, lot)}
        ids = ", ".join(map(str, lot))
        pairs = answer(
            tables,
            f"select distinct ledger_id, uid from blocks where ledger_id in ({ids})",  # noqa: S608 - numbers
        )
        columns = (pairs[name].to_pylist() for name in ("ledger_id", "uid"))
        found |= {ledger for ledger, uid in zip(*columns, strict=True) if counts.get(ledger) == uid}
    return found
