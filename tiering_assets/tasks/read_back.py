"""Verification tasks: walk the stored blocks with the independent decoder, or the source again.

Owns: nothing that the encoder computed is trusted here. READ_BACK sees only the object's bytes;
READ_SOURCE sees only the bookies. The driver compares the two (look/ledger/verification.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256

from tiering_assets.offload_format.block import HEADER_BYTES
from tiering_assets.offload_format.decoder import BlockWalker
from tiering_assets.offload_format.digests import EntriesDigest
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.bookkeeper.batch_body import Entry
from tiering_assets.resources.garbage import no_collection
from tiering_assets.tasks.descriptors import BlockRow, BlockTask
from tiering_assets.tasks.worker import Worker


def read_back_blocks(task: BlockTask, worker: Worker) -> Iterator[BlockRow]:
    """Read every byte of the blocks by ranged GETs and decode them."""
    for block in task.blocks:
        yield _read_back(task, block, worker)


@no_collection()
def _read_back(task: BlockTask, block: BlockPlan, worker: Worker) -> BlockRow:
    started = worker.clock()
    digest = EntriesDigest()
    bytes_digest = sha256()
    walker = BlockWalker(
        block_length=block.block_length,
        first_entry_id=block.first_entry_id,
        entries_expected=block.entries,
        offset=block.offset,
    )
    header = b""
    for chunk in _chunks(task, block, worker):
        header += chunk[: HEADER_BYTES - len(header)]
        bytes_digest.update(chunk)
        for entry_id, payload in walker.feed(chunk):
            digest.update(entry_id, payload)
    walker.finish()
    return _row(
        task,
        block,
        digest,
        sha256_hex=bytes_digest.hexdigest(),
        seconds=worker.clock() - started,
        header=header.hex(),
    )


def _chunks(task: BlockTask, block: BlockPlan, worker: Worker) -> Iterator[bytes]:
    step = worker.settings.offload.read_range_bytes
    end = block.offset + block.block_length
    for start in range(block.offset, end, step):
        yield worker.store.get_range(
            task.data_key,
            start=start,
            length=min(step, end - start),
            version_id=task.version_id,
        )


def read_source_blocks(task: BlockTask, worker: Worker) -> Iterator[BlockRow]:
    """Read the blocks' entry ranges from the bookies again and digest them.

    Other replicas are preferred than those the copy was read from, where the ledger has them.
    Entries without a digest are believed when their replicas agree.
    """
    reader = worker.reader(task)
    read = (
        reader.iter_agreed if task.source.is_unchecked else partial(reader.iter_batches, replica=1)
    )
    for block in task.blocks:
        started = worker.clock()
        digest = _digest_of(block, read)
        yield _row(task, block, digest, seconds=worker.clock() - started)


@no_collection()
def _digest_of(block: BlockPlan, read: Callable[..., Iterator[list[Entry]]]) -> EntriesDigest:
    digest = EntriesDigest()
    for batch in read(first_entry_id=block.first_entry_id, last_entry_id=block.last_entry_id):
        digest.update_many(batch[0][0], [entry[1] for entry in batch])
    return digest


def _row(
    task: BlockTask,
    block: BlockPlan,
    digest: EntriesDigest,
    *,
    seconds: float,
    sha256_hex: str = "",
    header: str = "",
) -> BlockRow:
    return BlockRow(
        kind=task.kind,
        attempt=task.attempt,
        ledger_id=task.source.ledger_id,
        part_number=block.part_number,
        entries=digest.entries,
        payload_bytes=digest.payload_bytes,
        block_length=block.block_length,
        sha256=sha256_hex,
        entries_sha256=digest.hexdigest(),
        seconds=seconds,
        header=header,
    )
