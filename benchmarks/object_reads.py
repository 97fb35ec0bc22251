"""Every payload of a data object, by the independent decoder, from ranges that are read ahead.

Owns: ranges are fed in order, and no more of them are in memory than are asked for at once, so that
a store far away costs its latency once in so many ranges. The first ones are short: what they hold
is decoded while the rest is on its way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.decoder import BlockWalker, block_lengths, decode_index
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.tasks.block_memory import block_memory
from tiering_assets.tasks.worker import FETCHES_AT_ONCE

RANGES_AHEAD = 2 * FETCHES_AT_ONCE  # all at once: a reader has one store to wait for
FIRST_BYTES = 1024 * 1024


def iter_payloads_of(stack: Stack, key: str) -> Iterator[memoryview]:
    """Yield each entry's payload; it is valid until the next step."""
    stored = stack.objects.get(f"{key}-index")
    if stored is None:
        raise IntegrityError(f"object {key}-index is not there")
    blocks = list(block_lengths(decode_index(stored.body)))
    places = [
        ranges_of(b.offset, b.length, longest=stack.settings.offload.read_range_bytes, first=not i)
        for i, b in enumerate(blocks)
    ]
    fed = _read_ahead(stack, key, [place for of_block in places for place in of_block])
    for block, of_block in zip(blocks, places, strict=True):
        last = block.last_entry_id
        walker = BlockWalker(
            block_length=block.length,
            first_entry_id=block.first_entry_id,
            entries_expected=None if last is None else last - block.first_entry_id + 1,
            offset=block.offset,
        )
        for _ in of_block:
            for _entry_id, payload in walker.feed(next(fed)):
                yield payload
        walker.finish()


def ranges_of(start: int, length: int, *, longest: int, first: bool) -> list[tuple[int, int]]:
    """Start and length of each range of a block; those of the first one grow to the longest."""
    found, at, step = [], 0, min(FIRST_BYTES, longest) if first else longest
    while at < length:
        found.append((start + at, min(step, length - at)))
        at += step
        step = min(2 * step, longest)
    return found


def _read_ahead(stack: Stack, key: str, places: Sequence[tuple[int, int]]) -> Iterator[memoryview]:
    """Yield each range; it is valid until the next step."""
    free = [block_memory(max(n for _, n in places)) for _ in places[: RANGES_AHEAD + 1]]
    asked: deque[tuple[memoryview, memoryview, Future[bytes]]] = deque()
    following = iter(places)
    with ThreadPoolExecutor(RANGES_AHEAD, thread_name_prefix="range-fetch") as threads:

        def ask(places: Iterable[tuple[int, int]]) -> None:
            for start, length in places:
                buffer = free.pop()
                part = buffer[:length]
                task = threads.submit(
                    stack.objects.get_range, key, start=start, length=length, into=part
                )
                asked.append((buffer, part, task))

        try:
            ask(islice(following, RANGES_AHEAD))
            while asked:
                buffer, part, task = asked.popleft()
                task.result()
                ask(islice(following, 1))
                yield part
                free.append(buffer)
        finally:
            for *_memory, task in asked:
                task.cancel()
