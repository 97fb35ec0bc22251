"""Whole blocks of one object in order, read by ranges while those before them are being decoded.

Owns: two blocks are in memory, three small ones, and no more, however long the object; and when the
reading ends, at its end, by an error, or because nobody wants the rest, no thread is left and none
is begun.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Executor, Future
from itertools import chain

from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.tasks.block_memory import block_memory
from tiering_assets.tasks.descriptors import BlockTask
from tiering_assets.tasks.worker import FETCHES_AT_ONCE, Worker


def read_blocks(task: BlockTask, worker: Worker) -> Generator[tuple[BlockPlan, memoryview]]:
    """Yield each block of a task with its bytes, which are valid until the next step.

    What went wrong with a range is raised when its block is due.
    """
    longest = max(block.block_length for block in task.blocks)
    ahead = _blocks_ahead(longest, worker.settings.offload.read_range_bytes)
    buffers = [block_memory(longest) for _ in range(min(ahead + 1, len(task.blocks)))]
    asked: deque[list[Future[None]]] = deque()
    with worker.fetcher() as fetcher:
        try:
            for i, block in enumerate(task.blocks):
                for following in range(i + len(asked), min(i + ahead + 1, len(task.blocks))):
                    buffer = buffers[following % len(buffers)]
                    asked.append(_ask(task, worker, task.blocks[following], buffer, fetcher))
                for range_read in asked[0]:
                    range_read.result()
                asked.popleft()
                yield block, buffers[i % len(buffers)][: block.block_length]
        finally:
            for range_read in chain.from_iterable(asked):
                range_read.cancel()


def _blocks_ahead(block_bytes: int, range_bytes: int) -> int:
    """Behind the one that is decoded: one, or two where one has too few ranges to keep all threads
    waiting for the store.
    """
    return 1 if block_bytes >= FETCHES_AT_ONCE * range_bytes else 2


def _ask(
    task: BlockTask, worker: Worker, block: BlockPlan, buffer: memoryview, fetcher: Executor
) -> list[Future[None]]:
    step = worker.settings.offload.read_range_bytes

    def read(at: int) -> None:
        length = min(step, block.block_length - at)
        worker.store.get_range(
            task.data_key,
            start=block.offset + at,
            length=length,
            version_id=task.version_id,
            into=buffer[at : at + length],
        )

    return [fetcher.submit(read, at) for at in range(0, block.block_length, step)]
