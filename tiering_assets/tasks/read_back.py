"""Verification tasks: walk the stored blocks with the independent decoder, or the source again.

Owns: nothing that the encoder computed is trusted here. READ_BACK sees only the object's bytes;
READ_SOURCE sees only the bookies. The driver compares the two (look/ledger/verification.py). What
messages a block holds is told beside that, and compared with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from hashlib import sha256

from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES
from tiering_assets.offload_format.decoder import BlockWalker
from tiering_assets.offload_format.digests import EntriesDigest, FramesDigest, digest_of
from tiering_assets.offload_format.message_facts import MessageCount, MessageFacts
from tiering_assets.offload_format.segments.block import SegmentBlock
from tiering_assets.resources.garbage import no_collection
from tiering_assets.resources.native.core import Core
from tiering_assets.tasks.block_body import digest_entries
from tiering_assets.tasks.descriptors import Block, BlockRow, BlockTask
from tiering_assets.tasks.ranges import read_blocks
from tiering_assets.tasks.worker import Worker


def read_back_blocks(task: BlockTask, worker: Worker) -> Iterator[BlockRow]:
    """Read every byte of the blocks by ranged GETs and decode them."""
    started = worker.clock()
    with closing(read_blocks(task, worker)) as blocks:
        for block, whole in blocks:
            digest, digest_of_bytes, facts = _decoded(task, block, whole, worker.core)
            row = _row(task, block, digest, seconds=worker.clock() - started)
            yield replace(
                row,
                sha256=digest_of_bytes,
                header=whole[:HEADER_BYTES].hex(),
                messages=facts.messages,
                publish_min_ms=facts.publish_min_ms,
                publish_max_ms=facts.publish_max_ms,
            )
            started = worker.clock()


@no_collection()
def _decoded(
    task: BlockTask, block: Block, whole: memoryview, core: Core | None
) -> tuple[EntriesDigest, str, MessageFacts]:
    """Digest of the entries in a block, SHA-256 of its bytes, and what messages the entries hold.

    Raises:
        FormatError: it is not a block with these entries; whatever they hold is good.
    """
    digest = digest_of(task.digest, block.header())
    facts: MessageFacts | None = None
    ledger_id = block.ledger_id if isinstance(block, SegmentBlock) else None
    if core is not None:
        walked = core.walk(
            whole, first_entry_id=block.first_entry_id, count=block.entries, ledger_id=ledger_id
        )
        if walked is not None:
            payload_bytes, messages, earliest, latest = walked
            facts = MessageFacts(messages=messages, publish_min_ms=earliest, publish_max_ms=latest)
            if isinstance(digest, FramesDigest):
                end = HEADER_BYTES + FRAME_BYTES * block.entries + payload_bytes
                digest.update_frames(
                    whole[HEADER_BYTES:end], entries=block.entries, payload_bytes=payload_bytes
                )
                return digest, digest.with_padding(whole[end:]).hex(), facts
    walker = BlockWalker(
        block_length=block.block_length,
        first_entry_id=block.first_entry_id,
        entries_expected=block.entries,
        offset=block.offset,
        ledger_id=ledger_id,
    )
    count = MessageCount()
    for entry_id, payload in walker.feed(whole):
        digest.update(entry_id, payload)
        if facts is None:
            count.add(payload)
    walker.finish()
    return digest, sha256(whole).hexdigest(), count.facts() if facts is None else facts


def read_source_blocks(task: BlockTask, worker: Worker) -> Iterator[BlockRow]:
    """Read the blocks' entry ranges from the bookies again and digest them.

    Other replicas are preferred than those the copy was read from, where the ledger has them.
    Entries without a digest are believed when their replicas agree.
    """
    reader = worker.reader(task.source)
    read = reader.iter_agreed if task.source.is_unchecked else partial(reader.iter_runs, replica=1)
    for block in task.blocks:
        started = worker.clock()
        runs = read(first_entry_id=block.first_entry_id, last_entry_id=block.last_entry_id)
        digest = digest_entries(block, runs, digest_of(task.digest, block.header()), worker.core)
        yield _row(task, block, digest, seconds=worker.clock() - started)


def _row(task: BlockTask, block: Block, digest: EntriesDigest, *, seconds: float) -> BlockRow:
    return BlockRow(
        kind=task.kind,
        attempt=task.attempt,
        ledger_id=task.source.ledger_id,
        part_number=block.part_number,
        entries=digest.entries,
        payload_bytes=digest.payload_bytes,
        block_length=block.block_length,
        sha256="",
        entries_sha256=digest.hexdigest(),
        seconds=seconds,
    )
