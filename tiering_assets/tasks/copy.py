"""Copy task: bookies -> digest check -> frames in a reused buffer -> one part of the upload.

Owns: a part is sent only after every entry of its block passed its digest and the block's payload
bytes equal the plan; one that an earlier run sent is not sent again if its checksum is right. One
block is encoded while those before it are being sent; there are three buffers, however large the
ledger.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from hashlib import md5, sha256

from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.errors import IntegrityError, ObjectExistsError, TierkeeperError
from tiering_assets.tasks.block_body import BlockBody, encode_block
from tiering_assets.tasks.block_memory import block_memory
from tiering_assets.tasks.descriptors import BlockRow, BlockTask
from tiering_assets.tasks.worker import UPLOADS_AT_ONCE, Worker

BUFFERS = UPLOADS_AT_ONCE + 1  # of one block each


def copy_blocks(task: BlockTask, worker: Worker) -> Iterator[BlockRow]:
    """Send the task's blocks, one part each, and yield their rows in order."""
    capacity = max(block.block_length for block in task.blocks)
    encoders = [BlockEncoder(block_memory(capacity)) for _ in range(min(BUFFERS, len(task.blocks)))]
    reader = worker.reader(task)
    sending: deque[Future[BlockRow]] = deque()
    with worker.uploader() as uploader:
        for i, block in enumerate(task.blocks):
            if len(sending) == len(encoders):  # every buffer is being sent
                yield sending.popleft().result()
            started = worker.clock()
            runs = reader.iter_runs(
                first_entry_id=block.first_entry_id, last_entry_id=block.last_entry_id
            )
            try:
                built = encode_block(block, runs, encoders[i % len(encoders)], worker.core)
            except (TierkeeperError, OSError):
                # The blocks before this one are whole and on their way: none of them must be taken
                # for the one that failed.
                for sent in sending:
                    yield sent.result()
                raise
            seconds = worker.clock() - started
            sending.append(uploader.submit(_send, task, worker, block, built, seconds))
        for sent in sending:
            yield sent.result()


def _send(
    task: BlockTask,
    worker: Worker,
    block: BlockPlan,
    built: BlockBody,
    encoded_s: float,
) -> BlockRow:
    """Send one block; its seconds are those of encoding and sending it, not of waiting its turn."""
    began = worker.clock()
    body, digest = built.body, built.sha256
    listed = _listed_before(task, block, body, digest)
    if listed is not None:
        etag = listed
    elif task.upload_id is None:
        etag = _put_whole(task, worker, body, digest)
    else:
        etag = worker.store.upload_part(
            task.data_key, task.upload_id, part_number=block.part_number, body=body, sha256=digest
        ).etag
    if listed is None:
        worker.reached("copy.part_sent", task.source.ledger_id, topic=task.topic)
    return BlockRow(
        kind=task.kind,
        attempt=task.attempt,
        ledger_id=task.source.ledger_id,
        part_number=block.part_number,
        entries=block.entries,
        payload_bytes=block.payload_bytes,
        block_length=len(body),
        sha256=digest.hex(),
        etag=etag,
        entries_sha256=built.entries_sha256,
        sent=listed is None,
        seconds=encoded_s + worker.clock() - began,
    )


def _listed_before(
    task: BlockTask, block: BlockPlan, body: memoryview, digest: bytes
) -> str | None:
    """ETag of the same part from an earlier run; None when it has to be sent.

    A store that lists no SHA-256 is believed by an ETag that is the body's MD5, as S3's is for a
    part without a key of the customer's.
    """
    for part in task.listed:
        if part.part_number != block.part_number or part.size != len(body):
            continue
        if part.sha256:
            same = part.sha256 == digest.hex()
        else:
            same = part.etag.strip('"').lower() == md5(body, usedforsecurity=False).hexdigest()
        if same:
            return part.etag
    return None


def _put_whole(task: BlockTask, worker: Worker, body: memoryview, digest: bytes) -> str:
    """The single block of a small ledger. A second run of the task finds the first one's object."""
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
            f"bytes than this attempt's block; a new attempt will use a new key"
        ) from None
