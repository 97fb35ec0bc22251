"""Whole blocks of one object in order, read by ranges while those before them are being decoded.

Owns: two blocks are in memory, three small ones, and no more, however long the object; and when the
reading ends, at its end, by an error, or because nobody wants the rest, no thread is left and none
is begun.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, Future
from contextlib import closing
from itertools import chain

from tiering_assets.tasks.block_memory import block_memory
from tiering_assets.tasks.descriptors import Block, BlockTask
from tiering_assets.tasks.worker import FETCHES_AT_ONCE, Worker


def read_blocks(task: BlockTask, worker: Worker) -> Generator[tuple[Block, memoryview]]:
    """Yield each block of a task with its bytes, which are valid until the next step.

    What went wrong with a range is raised when its block is due.
    """

    def read(start: int, into: memoryview) -> None:
        worker.store.get_range(
            task.data_key, start=start, length=len(into), version_id=task.version_id, into=into
        )

    places = [(block.offset, block.block_length) for block in task.blocks]
    range_bytes = worker.settings.offload.read_range_bytes
    with (
        worker.fetcher() as fetcher,
        closing(read_ahead(places, read, fetcher, range_bytes=range_bytes)) as bodies,
    ):
        yield from zip(task.blocks, bodies, strict=True)


def read_ahead(
    places: Sequence[tuple[int, int]],
    read: Callable[[int, memoryview], None],
    fetcher: Executor,
    *,
    range_bytes: int,
) -> Generator[memoryview]:
    """Yield the bytes at each place, a start and a length; they are valid until the next step.

    `read` fills a buffer from a start on, in the threads of `fetcher`.
    """
    longest = max(length for _start, length in places)
    ahead = _places_ahead(longest, range_bytes)
    buffers = [block_memory(longest) for _ in range(min(ahead + 1, len(places)))]
    asked: deque[list[Future[None]]] = deque()

    def ask(number: int) -> list[Future[None]]:
        start, length = places[number]
        body = buffers[number % len(buffers)][:length]
        return [
            fetcher.submit(read, start + at, body[at : at + range_bytes])
            for at in range(0, length, range_bytes)
        ]

    try:
        for i, (_start, length) in enumerate(places):
            asked.extend(map(ask, range(i + len(asked), min(i + ahead + 1, len(places)))))
            for range_read in asked[0]:
                range_read.result()
            asked.popleft()
            yield buffers[i % len(buffers)][:length]
    finally:
        for range_read in chain.from_iterable(asked):
            range_read.cancel()


def _places_ahead(longest: int, range_bytes: int) -> int:
    """Behind the one that is decoded: one, or two where one has too few ranges to keep all threads
    waiting for the store.
    """
    return 1 if longest >= FETCHES_AT_ONCE * range_bytes else 2
