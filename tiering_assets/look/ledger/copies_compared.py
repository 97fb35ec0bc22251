"""Do two copies of a ledger in the store hold the same entries? Both are read whole.

Sizes and ETags say nothing of a byte that changed where it lies, and what a broker wrote has no
certificate to meet. Memory is bounded by one range.
"""

from __future__ import annotations

from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.decoder import (
    BlockRange,
    BlockWalker,
    block_lengths,
    decode_index,
)
from tiering_assets.offload_format.digests import EntriesDigest
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.resources.errors import ObjectNotFoundError, TierkeeperError


def why_not_equal(
    stack: Stack, ledger_id: int, *, ml_name: str, uid: UUID, read: UUID
) -> str | None:
    """Why the attempt's copy may be the only sound one; None where `read`'s has the same entries.

    `read` is the attempt that the topic reads. Reads both, within the topic's budgets.
    """
    try:
        with stack.spending_for(ml_name):
            ours, theirs = (_entries_of(stack, ledger_id, one) for one in (uid, read))
    except TierkeeperError as error:
        why = str(error)
    else:
        if ours == theirs:
            return None
        why = f"its entries {ours} differ from {theirs} of attempt {read}"
    return f"what the topic reads was not found equal to it: {why}; it may be the only sound copy"


def _entries_of(stack: Stack, ledger_id: int, uid: UUID) -> str:
    """Number, bytes and digest of all entries, however they are cut into blocks."""
    key = data_key(uid, ledger_id)
    index = stack.objects.get(index_key(uid, ledger_id), bytes_max=INDEX_BYTES_MAX)
    if index is None:
        raise ObjectNotFoundError(f"object {index_key(uid, ledger_id)} is not there")
    found = EntriesDigest()
    for block in block_lengths(decode_index(index.body)):
        _add_block(stack, key, block, found)
    return f"({found.entries} of {found.payload_bytes} bytes, {found.hexdigest()})"


def _add_block(stack: Stack, key: str, block: BlockRange, found: EntriesDigest) -> None:
    walker = BlockWalker(
        block_length=block.length, first_entry_id=block.first_entry_id, offset=block.offset
    )
    step = stack.settings.offload.read_range_bytes
    end = block.offset + block.length
    for start in range(block.offset, end, step):
        part = stack.objects.get_range(key, start=start, length=min(step, end - start))
        for entry_id, payload in walker.feed(part):
            found.update(entry_id, payload)
    walker.finish()
