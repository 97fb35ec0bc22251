"""Every payload of a data object, by the independent decoder, from ranges that are read ahead.

Owns: ranges are fed in order, and no more of them are in memory than are asked for at once, so that
a store far away costs its latency once in so many ranges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.decoder import BlockWalker, block_lengths, decode_index
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.tasks.worker import FETCHES_AT_ONCE

RANGES_AHEAD = 2 * FETCHES_AT_ONCE  # all at once: a reader has one store to wait for


def iter_payloads_of(stack: Stack, key: str) -> Iterator[memoryview]:
    """Yield each entry's payload; it is valid until the next step."""
    stored = stack.objects.get(f"{key}-index")
    if stored is None:
        raise IntegrityError(f"object {key}-index is not there")
    blocks = list(block_lengths(decode_index(stored.body)))
    step = stack.settings.offload.read_range_bytes
    ranges = [
        (start, min(step, block.offset + block.length - start))
        for block in blocks
        for start in range(block.offset, block.offset + block.length, step)
    ]
    fed = _read_ahead(stack, key, ranges)
    for block in blocks:
        last = block.last_entry_id
        walker = BlockWalker(
            block_length=block.length,
            first_entry_id=block.first_entry_id,
            entries_expected=None if last is None else last - block.first_entry_id + 1,
            offset=block.offset,
        )
        for _ in range(0, block.length, step):
            for _entry_id, payload in walker.feed(next(fed)):
                yield payload
        walker.finish()


def _read_ahead(stack: Stack, key: str, ranges: list[tuple[int, int]]) -> Iterator[bytes]:
    asked: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(RANGES_AHEAD, thread_name_prefix="range-fetch") as threads:
        try:
            for start, length in ranges:
                if len(asked) == RANGES_AHEAD:
                    yield asked.popleft().result()
                asked.append(
                    threads.submit(stack.objects.get_range, key, start=start, length=length)
                )
            while asked:
                yield asked.popleft().result()
        finally:
            for one in asked:
                one.cancel()
