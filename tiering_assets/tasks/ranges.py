"""Whole blocks of one object in order, read by ranges while those before them are being decoded.

Owns: two blocks are in memory and no more, however long the object; and when the reading ends, at
its end, by an error, or because nobody wants the rest, no thread is left and none is begun.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Executor, Future

from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.tasks.block_memory import block_memory
from tiering_assets.tasks.descriptors import BlockTask
from tiering_assets.tasks.worker import Worker


def read_blocks(task: BlockTask, worker: Worker) -> Generator[tuple[BlockPlan, memoryview]]:
    """Yield each block of a task with its bytes, which are valid until the next step.

    What went wrong with a range is raised when its block is due.
    """
    longest = max(block.block_length for block in task.blocks)
    buffers = [block_memory(longest) for _ in range(min(2, len(task.blocks)))]
    with worker.fetcher() as fetcher:
        asked: list[Future[None]] = []
        ahead: list[Future[None]] = []
        try:
            for i, block in enumerate(task.blocks):
                asked = ahead or _ask(task, worker, block, buffers[0], fetcher)
                ahead = []
                if i + 1 < len(task.blocks):
                    following = task.blocks[i + 1]
                    ahead = _ask(task, worker, following, buffers[(i + 1) % 2], fetcher)
                for range_read in asked:
                    range_read.result()
                yield block, buffers[i % 2][: block.block_length]
        finally:
            for range_read in (*asked, *ahead):
                range_read.cancel()


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
