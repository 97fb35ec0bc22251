"""Rows of some ledgers, from the names of their records and from the records themselves.

Owns: the same rules as a posting, by the same functions: names are put on pages again, and facts
are joined in the order of those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tiering_assets.catalogue.columns import BLOCKS, LEDGER_CHANGES
from tiering_assets.catalogue.facts.changes import changed_rows, changes_of
from tiering_assets.catalogue.facts.read_pages import FoundRecord, ReadPage, ReadPages
from tiering_assets.catalogue.facts.record_facts import told_by
from tiering_assets.catalogue.facts.rows import block_rows
from tiering_assets.catalogue.named import to_read
from tiering_assets.catalogue.upkeep.spans import Shard
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage, NamedRecord
from tiering_assets.records.stored import Stored
from tiering_assets.records.writer import Writer

Read = Callable[[Sequence[NamedRecord]], Mapping[str, FoundRecord]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRows:
    """`doubts` are records that are not what their page says."""

    ledgers: pa.Table
    blocks: pa.Table
    doubts: list[dict[str, Any]]


def rows_of_shard(shard: Shard, own: pa.Table, wide: pa.Table, read: Read) -> ShardRows:
    """`own` are names of records of these ledgers, `wide` of those that tell of others as well."""
    names = [*own.to_pylist(), *wide.to_pylist()]
    found = read_live(names, read)
    batch = ReadPages([*as_pages(names)], found)
    changes = (one for one in changes_of(batch) if shard.has(one.ledger_id))
    rows = [{**row, "turn": 1} for row in changed_rows(changes, [])]
    return ShardRows(
        ledgers=pa.Table.from_pylist(rows, schema=LEDGER_CHANGES),
        blocks=pa.Table.from_pylist([*block_rows(batch)], schema=BLOCKS),
        doubts=doubts_of(found),
    )


def doubts_of(found: Mapping[str, FoundRecord]) -> list[dict[str, Any]]:
    """What was found instead of a record."""
    return [
        {"key": key, "what": "missing" if one.missing else "damaged", "why": one.why}
        for key, one in sorted(found.items())
        if one.stored is None
    ]


def ledgers_told_of(found: Mapping[str, FoundRecord]) -> Iterator[dict[str, Any]]:
    """Which ledgers records tell of."""
    for key, one in sorted(found.items()):
        if one.stored is not None:
            for ledger_id in sorted({told[0] for told in told_by(one.stored)}):
                yield {"ledger_id": ledger_id, "key": key}


def read_live(names: Sequence[Mapping[str, Any]], read: Read) -> Mapping[str, FoundRecord]:
    """The records that no page said to go since, as far as their content counts."""
    live = {
        row["key"]: NamedRecord(key=row["key"], sha256=row["sha256"])
        for row in names
        if row["came"] > (row["went"] or 0)
    }
    return read([live[key] for key in to_read(live)])


def as_pages(names: Sequence[Mapping[str, Any]]) -> Iterator[ReadPage]:
    """Names by page, as pages that have no others."""
    by_page: dict[int, list[Mapping[str, Any]]] = {}
    for row in names:
        by_page.setdefault(row["page"], []).append(row)
    for number, rows in sorted(by_page.items()):
        first = rows[0]  # of a page all say the same of its run
        record = DayBookPage(
            number=number,
            previous="",
            phase="close",
            command=first["command"],
            written_at=first["at"],
            writer=Writer(tool_version="", host="", run_id=first["run_id"]),
            records=tuple(NamedRecord(key=one["key"], sha256=one["sha256"]) for one in rows),
        )
        stored = Stored(
            key=keys.page(number), record=record, sha256="", stored_at=first["at"], etag=""
        )
        yield ReadPage(number=number, stored=stored)
