"""Copy task: bookies -> digest check -> frames in a reused buffer -> one part of the upload.

Owns: a part is sent only after every entry of its block passed its digest and the block's payload
bytes equal the plan; one that an earlier run sent is not sent again if its checksum is right. One
block is encoded while the one before it is being sent; there are two buffers, however large the
ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from hashlib import md5, sha256

from tiering_assets.offload_format.digests import EntriesDigest
from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.errors import IntegrityError, ObjectExistsError, TierkeeperError
from tiering_assets.resources.garbage import no_collection
from tiering_assets.tasks.descriptors import BlockRow, BlockTask
from tiering_assets.tasks.worker import Worker


def copy_blocks(task: BlockTask, worker: Worker) -> Iterator[BlockRow]:
    """Send the task's blocks, one part each, and yield their rows in order."""
    capacity = max(block.block_length for block in task.blocks)
    encoders = [BlockEncoder(capacity) for _ in range(min(2, len(task.blocks)))]
    reader = worker.reader(task)
    waiting: Future[BlockRow] | None = None
    with worker.uploader() as uploader:
        for i, block in enumerate(task.blocks):
            started = worker.clock()
            encoder = encoders[i % len(encoders)]
            digest = EntriesDigest()
            try:
                body = _encode(block, reader, encoder, digest)
            except (TierkeeperError, OSError):
                # The block before this one is whole and on its way: it must not be taken for the
                # one that failed.
                if waiting is not None:
                    yield waiting.result()
                raise
            encoded_s = worker.clock() - started
            if waiting is not None:
                yield waiting.result()
            waiting = uploader.submit(
                _send, task, worker, block, body, digest.hexdigest(), encoded_s
            )
        if waiting is not None:
            yield waiting.result()


@no_collection()
def _encode(
    block: BlockPlan, reader: LedgerReader, encoder: BlockEncoder, digest: EntriesDigest
) -> memoryview:
    encoder.begin(block)
    for batch in reader.iter_batches(
        first_entry_id=block.first_entry_id, last_entry_id=block.last_entry_id
    ):
        payloads = [entry[1] for entry in batch]
        encoder.add_many(batch[0][0], payloads)
        digest.update_many(batch[0][0], payloads)
    return encoder.finish()


def _send(
    task: BlockTask,
    worker: Worker,
    block: BlockPlan,
    body: memoryview,
    entries_sha256: str,
    encoded_s: float,
) -> BlockRow:
    """Send one block; its seconds are those of encoding and sending it, not of waiting its turn."""
    began = worker.clock()
    digest = sha256(body).digest()
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
        entries_sha256=entries_sha256,
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
