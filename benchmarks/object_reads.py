"""Every payload of a data object, by the independent decoder, from ranges that are read ahead.

Owns: ranges are fed in order, and no more of them are in memory than are asked for at once, so that
a store far away costs its latency once in so many ranges. The first ones are short: what they hold
is decoded while the rest is on its way. The very first is asked for beside the index.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from itertools import islice

from benchmarks.even_frames import EvenWalker, TakeEven
from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.decoder import (
    BlockRange,
    BlockWalker,
    block_lengths,
    decode_index,
)
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.tasks.block_memory import block_memory
from tiering_assets.tasks.worker import FETCHES_AT_ONCE

RANGES_AHEAD = 2 * FETCHES_AT_ONCE  # all at once: a reader has one store to wait for
FIRST_BYTES = 1024 * 1024
FED_BYTES = 1024 * 1024  # where frames stop to be even, the rest of this goes one by one


def iter_payloads_of(
    stack: Stack, key: str, take_even: TakeEven | None = None
) -> Iterator[memoryview]:
    """Yield each entry's payload; it is valid until the next step.

    Where many that follow each other are of one length, `take_even` may have them instead.
    """
    longest = stack.settings.offload.read_range_bytes
    with ThreadPoolExecutor(RANGES_AHEAD, thread_name_prefix="range-fetch") as threads:
        ranges = _Ranges(stack, key, threads)
        try:
            ranges.ask(0, min(FIRST_BYTES, longest))
            blocks = _blocks_of(stack, key)
            places = [
                ranges_of(b.offset, b.length, longest=longest, first=not i)
                for i, b in enumerate(blocks)
            ]
            following = (place for of_block in places for place in of_block)
            ranges.keep_only(next(following))
            for place in islice(following, RANGES_AHEAD - 1):
                ranges.ask(*place)
            for block, of_block in zip(blocks, places, strict=True):
                walker = _walker(block, take_even)
                for _ in of_block:
                    body = ranges.next()
                    for place in islice(following, 1):
                        ranges.ask(*place)
                    for at in range(0, len(body), FED_BYTES):
                        for _entry_id, payload in walker.feed(body[at : at + FED_BYTES]):
                            yield payload
                walker.finish()
        finally:
            ranges.cancel()


def ranges_of(start: int, length: int, *, longest: int, first: bool) -> list[tuple[int, int]]:
    """Start and length of each range of a block; those of the first one grow to the longest."""
    found, at, step = [], 0, min(FIRST_BYTES, longest) if first else longest
    while at < length:
        found.append((start + at, min(step, length - at)))
        at += step
        step = min(2 * step, longest)
    return found


def _blocks_of(stack: Stack, key: str) -> list[BlockRange]:
    stored = stack.objects.get(f"{key}-index")
    if stored is None:
        raise IntegrityError(f"object {key}-index is not there")
    return block_lengths(decode_index(stored.body))


def _walker(block: BlockRange, take_even: TakeEven | None) -> BlockWalker:
    last = block.last_entry_id
    kind = BlockWalker if take_even is None else partial(EvenWalker, take_even)
    return kind(
        block_length=block.length,
        first_entry_id=block.first_entry_id,
        entries_expected=None if last is None else last - block.first_entry_id + 1,
        offset=block.offset,
    )


class _Ranges:
    """Ranges of one object on their way, in the order asked for."""

    def __init__(self, stack: Stack, key: str, threads: Executor) -> None:
        self._store, self._key, self._threads = stack.objects, key, threads
        self._longest = stack.settings.offload.read_range_bytes
        self._asked: deque[tuple[int, memoryview, Future[bytes]]] = deque()
        self._free: list[memoryview] = []  # buffers
        self._taken: memoryview | None = None

    def ask(self, start: int, length: int) -> None:
        buffer = self._free.pop() if self._free else block_memory(self._longest)
        reading = self._threads.submit(
            self._store.get_range, self._key, start=start, length=length, into=buffer[:length]
        )
        self._asked.append((length, buffer, reading))

    def keep_only(self, first: tuple[int, int]) -> None:
        """What was asked for beside the index is this place, or is longer than its block."""
        ((length, _buffer, reading),) = self._asked
        if (0, length) != first:
            reading.cancel()
            self._asked.clear()
            self.ask(*first)

    def next(self) -> memoryview:
        """The bytes of the next range; valid until another one is taken."""
        length, buffer, reading = self._asked.popleft()
        reading.result()
        if self._taken is not None:
            self._free.append(self._taken)
        self._taken = buffer
        return buffer[:length]

    def cancel(self) -> None:
        for _length, _buffer, reading in self._asked:
            reading.cancel()
