"""Copy task: bookies -> digest check -> frames in a reused buffer -> parts of the upload.

Owns: a part is sent only after every entry of its blocks passed its digest and their payload bytes
equal the plan; one that an earlier run sent is not sent again if its checksum is right. One part
is encoded while those before it are being sent; there are three buffers, however large the ledger.

A part is one block. Of a segment it may be several: a store takes parts below 5 MiB at an upload's
end alone, and the block that ends a ledger may be smaller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from hashlib import md5, sha256
from itertools import islice
from typing import NamedTuple

from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.errors import IntegrityError, ObjectExistsError, TierkeeperError
from tiering_assets.tasks.block_body import BlockBody, encode_block
from tiering_assets.tasks.block_memory import block_memory
from tiering_assets.tasks.descriptors import Block, BlockRow, BlockTask, ledger_of
from tiering_assets.tasks.worker import UPLOADS_AT_ONCE, Worker

BUFFERS = UPLOADS_AT_ONCE + 1  # of one part each


class _Part(NamedTuple):
    number: int
    blocks: Sequence[Block]

    @property
    def size(self) -> int:
        return sum(block.block_length for block in self.blocks)


def copy_blocks(task: BlockTask, worker: Worker) -> Iterator[BlockRow]:
    """Send the task's parts, and yield the rows of their blocks in order."""
    parts = _parts(task)
    capacity = max(part.size for part in parts)
    buffers = [block_memory(capacity) for _ in range(min(BUFFERS, len(parts)))]
    readers = _Readers(task, worker)
    sending: deque[Future[list[BlockRow]]] = deque()
    with worker.uploader() as uploader:
        for i, part in enumerate(parts):
            if len(sending) == len(buffers):  # every buffer is being sent
                yield from sending.popleft().result()
            started = worker.clock()
            body = buffers[i % len(buffers)][: part.size]
            try:
                built = _encoded(part, readers, body, worker)
            except (TierkeeperError, OSError):
                # The parts before this one are whole and on their way: none of them must be taken
                # for the one that failed.
                for sent in sending:
                    yield from sent.result()
                raise
            seconds = worker.clock() - started
            sending.append(uploader.submit(_send, task, worker, part, body, built, seconds))
        for sent in sending:
            yield from sent.result()


def _parts(task: BlockTask) -> list[_Part]:
    if not task.parts:
        return [_Part(block.part_number, (block,)) for block in task.blocks]
    if sum(part.blocks for part in task.parts) != len(task.blocks):
        raise ValueError(f"{task.parts} are not the parts of {len(task.blocks)} blocks")
    blocks = iter(task.blocks)
    return [_Part(part.number, tuple(islice(blocks, part.blocks))) for part in task.parts]


class _Readers:
    """One for each ledger that the task has entries of, made when it comes to that."""

    def __init__(self, task: BlockTask, worker: Worker) -> None:
        self._task, self._worker = task, worker
        self._sources = {source.ledger_id: source for source in (task.source, *task.others)}
        self._made: dict[int, LedgerReader] = {}

    def of(self, block: Block) -> LedgerReader:
        ledger_id = ledger_of(self._task, block)
        if ledger_id not in self._made:
            self._made[ledger_id] = self._worker.reader(self._sources[ledger_id])
        return self._made[ledger_id]


def _encoded(part: _Part, readers: _Readers, body: memoryview, worker: Worker) -> list[BlockBody]:
    built, at = [], 0
    for block in part.blocks:
        end = at + block.block_length
        runs = readers.of(block).iter_runs(
            first_entry_id=block.first_entry_id, last_entry_id=block.last_entry_id
        )
        built.append(encode_block(block, runs, BlockEncoder(body[at:end]), worker.core))
        at = end
    return built


def _send(
    task: BlockTask,
    worker: Worker,
    part: _Part,
    body: memoryview,
    built: Sequence[BlockBody],
    encoded_s: float,
) -> list[BlockRow]:
    """Send one part; its seconds are those of encoding and sending it, not of waiting its turn."""
    began = worker.clock()
    digest = built[0].sha256 if len(built) == 1 else sha256(body).digest()
    listed = _listed_before(task, part.number, body, digest)
    if listed is not None:
        etag = listed
    elif task.upload_id is None:
        etag = _put_whole(task, worker, body, digest)
    else:
        etag = worker.store.upload_part(
            task.data_key, task.upload_id, part_number=part.number, body=body, sha256=digest
        ).etag
    if listed is None:
        worker.reached("copy.part_sent", task.source.ledger_id, topic=task.topic)
    seconds = (encoded_s + worker.clock() - began) / len(built)
    return [
        BlockRow(
            kind=task.kind,
            attempt=task.attempt,
            ledger_id=ledger_of(task, block),
            part_number=block.part_number,
            entries=block.entries,
            payload_bytes=block.payload_bytes,
            block_length=block.block_length,
            sha256=one.sha256.hex(),
            etag=etag,
            entries_sha256=one.entries_sha256,
            sent=listed is None,
            seconds=seconds,
            part=part.number,
            part_bytes=len(body),
            part_sha256=digest.hex(),
        )
        for block, one in zip(part.blocks, built, strict=True)
    ]


def _listed_before(task: BlockTask, number: int, body: memoryview, digest: bytes) -> str | None:
    """ETag of the same part from an earlier run; None when it has to be sent.

    A store that lists no SHA-256 is believed by an ETag that is the body's MD5, as S3's is for a
    part without a key of the customer's.
    """
    for part in task.listed:
        if part.part_number != number or part.size != len(body):
            continue
        if part.sha256:
            same = part.sha256 == digest.hex()
        else:
            same = part.etag.strip('"').lower() == md5(body, usedforsecurity=False).hexdigest()
        if same:
            return part.etag
    return None


def _put_whole(task: BlockTask, worker: Worker, body: memoryview, digest: bytes) -> str:
    """The only part of a small object. A second run of the task finds the first one's object."""
    try:
        return worker.store.put(
            task.data_key, body, metadata=task.user_metadata, if_absent=True, sha256=digest
        ).etag
    except ObjectExistsError:
        head = worker.store.head(task.data_key)
        if head is not None and head.size == len(body):
            found = worker.store.get_range(task.data_key, start=0, length=len(body))
            if sha256(found).digest() == digest:
                return head.etag
        raise IntegrityError(
            f"ledger {task.source.ledger_id}: object {task.data_key} already exists with other "
            f"bytes than this attempt's; a new attempt will use a new key"
        ) from None
