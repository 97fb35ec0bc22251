"""One block of verified entries: its bytes as they will be sent, and the digests of both.

Owns: the digest of the entries is of what the bookies served. In Python it is fed from the entries
themselves, beside the encoder. With the library, frames are digested after each payload was checked
where the encoder had put it, by the digest that is stored with it; the rest of the block is then
one pass with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from tiering_assets.offload_format.digests import EntriesDigest, FramesDigest
from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.resources.bookkeeper.runs import Run
from tiering_assets.resources.garbage import no_collection
from tiering_assets.resources.native.core import Core
from tiering_assets.tasks.descriptors import Block


@dataclass(frozen=True, slots=True)
class BlockBody:
    """`body` is the encoder's buffer, valid until it begins another block."""

    body: memoryview
    sha256: bytes
    entries_sha256: str


@no_collection()
def encode_block(
    block: Block, runs: Iterable[Run], encoder: BlockEncoder, core: Core | None
) -> BlockBody:
    """Frame the block's entries. Errors as of the encoder and of whoever reads the runs."""
    encoder.begin(block)
    digest = FramesDigest(block.header())
    one_pass = True
    for run in runs:
        frames = _framed(run, encoder, core)
        if frames is not None:
            digest.update_frames(frames, entries=run.count, payload_bytes=run.payload_bytes)
            continue
        one_pass = False
        payloads = [entry[1] for entry in run.entries()]
        encoder.add_many(run.first_entry_id, payloads)
        digest.update_many(run.first_entry_id, payloads)
    body = encoder.finish()
    # What Python framed is hashed as it lies there, too: that its copy is right is not known yet.
    whole = digest.with_padding(encoder.padding) if one_pass else sha256(body).digest()
    return BlockBody(body, whole, digest.hexdigest())


def _framed(run: Run, encoder: BlockEncoder, core: Core | None) -> memoryview | None:
    if core is None or run.records is None:
        return None
    return encoder.add_stored(
        core, run.records, first_entry_id=run.first_entry_id, entries=run.count
    )


@no_collection()
def digest_entries(
    block: Block, runs: Iterable[Run], digest: EntriesDigest, core: Core | None
) -> EntriesDigest:
    """Feed a block's entries to its digest; nothing is kept of them."""
    scratch = memoryview(b"")
    for run in runs:
        if core is not None and run.records is not None and isinstance(digest, FramesDigest):
            if len(scratch) < len(run.records):  # frames are shorter than what they are made of
                scratch = memoryview(bytearray(len(run.records)))
            written = core.frame(
                run.records, count=run.count, first_entry_id=run.first_entry_id, out=scratch
            )
            if written is not None:
                digest.update_frames(
                    scratch[:written], entries=run.count, payload_bytes=run.payload_bytes
                )
                continue
        digest.update_many(run.first_entry_id, [entry[1] for entry in run.entries()])
    return digest
