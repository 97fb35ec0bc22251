"""What a process that reads shards has: a client of its own, with its part of the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tiering_assets.catalogue.named import read_record
from tiering_assets.catalogue.upkeep.shard import rows_of_shard
from tiering_assets.catalogue.upkeep.shard_bytes import bytes_of_rows, task_of
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.resources.object_store.s3_bulk import BulkS3ObjectStore
from tiering_assets.resources.settings import Settings
from tiering_assets.tasks.budget_record import read_budget
from tiering_assets.tasks.rates import Rates, parts_of


def open_shards(settings: Settings, *, instance: str, budget_key: str) -> Callable[[bytes], bytes]:
    """A function from a shard to its rows, as bytes."""
    rates = Rates(
        settings.budget,
        parts=lambda: parts_of(settings),
        read=lambda: read_budget(store, budget_key),
    )
    store = BulkS3ObjectStore(settings.store, meter=rates)
    book, threads = RecordBook(store, instance), settings.store.connections_max

    def read(named: Sequence[NamedRecord]) -> dict[str, Any]:
        with ThreadPoolExecutor(threads) as pool:
            found = pool.map(partial(read_record, book), named)
            return {one.key: record for one, record in zip(named, found, strict=True)}

    return lambda lot: bytes_of_rows(rows_of_shard(*task_of(lot), read))
