"""The least that an offload does which checks its copy: read, hashed, sent, fetched, hashed.

Owns: entries come from bookies by our reader, digests checked, and as many bytes as theirs are sent
and read back by bare clients, each hashed once on both ways. Nothing is planned, framed, decoded or
recorded. Buffers, parts, connections and order are those of our tasks (tasks/copy.py, ranges.py):
two parts are on their way while the next one is filled, and four ranges while one is hashed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from benchmarks.bare_clients import RANGE_BYTES, BareUpload, fetch_range
from tiering_assets.offload_format.block import HEADER_BYTES
from tiering_assets.resources.bookkeeper.runs import Run
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.tasks.block_memory import block_memory
from tiering_assets.tasks.copy import BUFFERS
from tiering_assets.tasks.ranges import read_ahead
from tiering_assets.tasks.worker import FETCHES_AT_ONCE, UPLOADS_AT_ONCE

T = TypeVar("T")


def shared_out(things: Sequence[T], shares: int) -> Iterator[Sequence[T]]:
    """Yield that many neighbouring runs of the things, equally long but for one; none is empty."""
    each, more = divmod(len(things), shares)
    at = 0
    for number in range(min(shares, len(things))):
        end = at + each + (number < more)
        yield things[at:end]
        at = end


def least_work(runs: Iterable[Run], client: Any, bucket: str, *, size: int, part_bytes: int) -> str:
    """Do it with so many bytes of a ledger; the key of the object, which the caller deletes.

    IntegrityError if other bytes come back.
    """
    starts = range(0, size, part_bytes)
    sizes = [min(part_bytes, size - start) for start in starts]
    key, sent = _sent(runs, client, bucket, sizes)
    back = _fetched(client, bucket, key, list(zip(starts, sizes, strict=True)))
    if back != sent:
        raise IntegrityError(f"{key} has other bytes than those sent")
    return key


def _sent(
    runs: Iterable[Run], client: Any, bucket: str, sizes: Sequence[int]
) -> tuple[str, list[bytes]]:
    """The key of what was sent, and the digest of each part."""
    upload = BareUpload(client, bucket)
    buffers = [block_memory(max(sizes)) for _ in range(min(BUFFERS, len(sizes)))]
    parts = _filled(runs, sizes, buffers)
    digests: list[bytes] = []
    done: list[dict[str, Any]] = []
    sending: deque[Future[dict[str, Any]]] = deque()
    with ThreadPoolExecutor(UPLOADS_AT_ONCE) as threads:
        for number in range(1, len(sizes) + 1):
            if len(sending) == len(buffers):
                done.append(sending.popleft().result())
            part = next(parts)
            head = min(len(part), HEADER_BYTES)
            part[:head] = bytes(head)  # as a block begins: a store may compress what begins so
            digests.append(sha256(part).digest())
            sending.append(threads.submit(upload.send, number, part))
        done += [one.result() for one in sending]
    upload.complete(done)
    return upload.key, digests


def _filled(
    runs: Iterable[Run], sizes: Sequence[int], buffers: Sequence[memoryview]
) -> Iterator[memoryview]:
    """Yield each part, of as many bytes of the records as the entries have."""
    following, rest = iter(runs), memoryview(b"")
    for number, size in enumerate(sizes):
        part, at = buffers[number % len(buffers)][:size], 0
        while at < size:
            if not rest:
                rest = _bytes_of(next(following))
            count = min(len(rest), size - at)
            part[at : at + count] = rest[:count]
            rest, at = rest[count:], at + count
        yield part


def _bytes_of(run: Run) -> memoryview:
    if run.records is not None:
        return run.records[: run.payload_bytes]
    return memoryview(b"".join(payload for _id, payload, _length in run.built))


def _fetched(client: Any, bucket: str, key: str, places: Sequence[tuple[int, int]]) -> list[bytes]:
    """The digest of each part as it came back."""
    read = partial(fetch_range, client, bucket, key)
    with (
        ThreadPoolExecutor(FETCHES_AT_ONCE) as threads,
        closing(read_ahead(places, read, threads, range_bytes=RANGE_BYTES)) as bodies,
    ):
        return [sha256(body).digest() for body in bodies]
