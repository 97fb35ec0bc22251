"""Shards side by side, in this process or in some of its own: reading records takes most of it.

Owns: results come in the order of the shards, and a few are under way at a time, as they lie in
memory. A process is started, not forked: the tables' library must not be used in a forked one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import pyarrow as pa

from tiering_assets.catalogue.named import read_record
from tiering_assets.catalogue.upkeep.shard import Read, ShardRows, rows_of_shard
from tiering_assets.catalogue.upkeep.spool import Shard
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.ground.stack import REQUESTS_AT_ONCE, Stack
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import StoreSettings

Task = tuple[Shard, pa.Table, pa.Table]


def reading(stack: Stack) -> Read:
    """Records by the client of this process."""

    def read(named: Sequence[NamedRecord]) -> dict[str, Any]:
        found = stack.in_parallel(lambda one: read_record(stack.book, one), named)
        return {one.key: record for one, record in zip(named, found, strict=True)}

    return read


def run_shards(
    stack: Stack, tasks: Iterable[Task], *, processes: int
) -> Iterator[tuple[Shard, ShardRows]]:
    """Rows of each, in the order of the tasks."""
    if processes < 2:
        read = reading(stack)
        yield from ((shard, rows_of_shard(shard, own, wide, read)) for shard, own, wide in tasks)
        return
    given = (stack.settings.store, stack.book.prefix.split("/")[1])
    with ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_begin, initargs=given
    ) as pool:
        yield from _in_order(lambda task: pool.submit(_run, *task), tasks, ahead=processes + 1)


def _in_order(
    submit: Callable[[Task], Future[ShardRows]], tasks: Iterable[Task], *, ahead: int
) -> Iterator[tuple[Shard, ShardRows]]:
    under_way: deque[tuple[Shard, Future[ShardRows]]] = deque()
    for task in tasks:
        under_way.append((task[0], submit(task)))
        if len(under_way) > ahead:
            shard, future = under_way.popleft()
            yield shard, future.result()
    for shard, future in under_way:
        yield shard, future.result()


class _Worker:
    """What a process of its own has."""

    def __init__(self, settings: StoreSettings, instance: str) -> None:
        self._book = RecordBook(S3ObjectStore(settings), instance)
        self._pool = ThreadPoolExecutor(REQUESTS_AT_ONCE)

    def read(self, named: Sequence[NamedRecord]) -> dict[str, Any]:
        found = self._pool.map(partial(read_record, self._book), named)
        return {one.key: record for one, record in zip(named, found, strict=True)}


_OURS: list[_Worker] = []


def _begin(settings: StoreSettings, instance: str) -> None:
    _OURS[:] = [_Worker(settings, instance)]


def _run(shard: Shard, own: pa.Table, wide: pa.Table) -> ShardRows:
    return rows_of_shard(shard, own, wide, _OURS[0].read)
