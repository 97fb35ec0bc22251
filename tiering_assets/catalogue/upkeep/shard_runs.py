"""Shards side by side where somebody carries them to other processes, or else one by one here.

Owns: results come in the order of the shards, and a few are under way at a time, as they lie in
memory. Reading records takes most of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, Protocol

import pyarrow as pa

from tiering_assets.catalogue.named import read_record
from tiering_assets.catalogue.upkeep.shard import Read, ShardRows, rows_of_shard
from tiering_assets.catalogue.upkeep.shard_bytes import bytes_of_task, rows_of
from tiering_assets.catalogue.upkeep.spans import Shard
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.resources.errors import PrerequisiteError

Task = tuple[Shard, pa.Table, pa.Table]
_ENTRY: Final = "tiering_assets.catalogue.upkeep.shard_worker:open_shards"


class Carrier(Protocol):
    """Brings lots to other processes, so many at once."""

    @property
    def at_once(self) -> int: ...

    def submit(self, lot: bytes) -> Future[bytes]: ...


OpenCarrier = Callable[[str, Mapping[str, Any]], AbstractContextManager[Carrier]]
"""For a function by its name, and what it is called with before the first lot."""


def reading(stack: Stack) -> Read:
    """Records by the client of this process."""

    def read(named: Sequence[NamedRecord]) -> dict[str, Any]:
        found = stack.in_parallel(lambda one: read_record(stack.book, one), named)
        return {one.key: record for one, record in zip(named, found, strict=True)}

    return read


def run_shards(
    stack: Stack,
    tasks: Iterable[Task],
    *,
    carried: OpenCarrier | None,
    tell: Callable[[str], None] = lambda _line: None,
) -> Iterator[ShardRows]:
    """Rows of each, in the order of the tasks."""
    with ExitStack() as exits:
        carrier = None
        if carried is not None:
            arguments = {
                "instance": stack.book.prefix.split("/")[1],
                "budget_key": stack.book.prefix + keys.BUDGET,
            }
            try:
                carrier = exits.enter_context(carried(_ENTRY, arguments))
            except PrerequisiteError as error:
                tell(f"records are read in this process: {error}")
        if carrier is None:
            read = reading(stack)
            yield from (rows_of_shard(shard, own, wide, read) for shard, own, wide in tasks)
        else:
            lots = (bytes_of_task(*task) for task in tasks)
            yield from map(rows_of, _in_order(carrier.submit, lots, ahead=carrier.at_once + 1))


def _in_order(
    submit: Callable[[bytes], Future[bytes]], lots: Iterable[bytes], *, ahead: int
) -> Iterator[bytes]:
    under_way: deque[Future[bytes]] = deque()
    for lot in lots:
        under_way.append(submit(lot))
        if len(under_way) > ahead:
            yield under_way.popleft().result()
    for future in under_way:
        yield future.result()
