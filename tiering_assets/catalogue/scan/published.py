"""Which topics were published behind a page of the day book, as the posted tables have it.

Owns: a publication counts once it is posted. Its record says which topic it is of; one that cannot
be read is told and passed over, as views are.
"""

from __future__ import annotations

from collections.abc import Iterator

from tiering_assets.catalogue.view import Tables, answer
from tiering_assets.ground.record_book import narrate_unreadable
from tiering_assets.ground.stack import Stack
from tiering_assets.records.models import Publication


def published_behind(stack: Stack, tables: Tables, page: int) -> Iterator[tuple[int, str]]:
    """Page and managed ledger of each publication behind this page, in order."""
    found = answer(
        tables,
        "select page, key from events where kind = 'publications' and what = 'written' "  # noqa: S608
        f"and page > {int(page)} order by page, key",
    )
    for row in found.to_pylist():
        stored = stack.book.read_readable(Publication, row["key"], narrate_unreadable(stack))
        if stored is not None:
            yield row["page"], stored.record.ml_name
