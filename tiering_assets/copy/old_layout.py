"""Where a broken copy's entries lay, so that the copy in its place keeps their offsets. Reads only.

A broker remembers offsets by ledger and entry without the attempt's uid, for half an hour after the
last read. A copy that lays out its blocks as the old one did is right by that memory, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.block import HEADER_BYTES, MAGIC
from tiering_assets.offload_format.decoder import decode_index_fields
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX, BlockPlan
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.store import ObjectHead

_HEADER: Final = Struct(">Iqqq")  # magic, header length, block length, first entry id

Place = tuple[int, int]  # first entry id, offset


@dataclass(frozen=True, slots=True)
class OldLayout:
    """Blocks that could be read, as (first entry id, offset). `block_bytes` is None if unknown.

    `known` is False where nothing is left that tells where they lay.
    """

    places: tuple[Place, ...]
    block_bytes: int | None
    known: bool = True

    def kept_by(self, blocks: Sequence[BlockPlan]) -> bool:
        """Whether every readable entry of the old object lies where it did."""
        there = {(block.first_entry_id, block.offset) for block in blocks}
        return self.known and there.issuperset(self.places)


def find_old_layout(stack: Stack, ledger_id: int, uid: UUID) -> OldLayout:
    """By our own records, or by the index object, or by the block headers of the data object."""
    certificate = stack.book.read(Certificate, keys.certificate(ledger_id, uid))
    attempt = stack.book.read(Attempt, keys.attempt(ledger_id, uid))
    if certificate is not None:
        places = [(b.first_entry_id, b.offset) for b in certificate.record.blocks]
        return OldLayout(tuple(places), None if attempt is None else attempt.record.block_bytes)
    index = stack.objects.get(index_key(uid, ledger_id), bytes_max=INDEX_BYTES_MAX)
    data = stack.objects.head(data_key(uid, ledger_id))
    try:
        if index is None:
            raise FormatError("no index object")
        fields = decode_index_fields(index.body)
    except FormatError:
        places = [] if data is None else [*_headers(stack, data)]
        end = 0 if data is None else data.size
        known = bool(places)
    else:
        known = True  # an index without a readable block: a broker never read an entry of it
        end = fields.data_object_length
        places = [(e.first_entry_id, e.offset) for e in fields.entries if e.offset < end]
    usual = stack.settings.offload.block_bytes
    return OldLayout(tuple(places), _block_bytes(places, end, usual), known)


def _block_bytes(places: Sequence[Place], end: int, usual: int) -> int | None:
    """All blocks of a broker but the last are as large as they may be."""
    if len(places) > 1:
        return places[1][1] - places[0][1]
    if end <= usual:
        return usual if places else None
    return end


def _headers(stack: Stack, data: ObjectHead) -> Iterator[Place]:
    offset = 0
    while offset + HEADER_BYTES <= data.size:
        header = stack.objects.get_range(
            data.key, start=offset, length=HEADER_BYTES, version_id=data.version_id
        )
        magic, _length, block_length, first_entry_id = _HEADER.unpack_from(header)
        if magic != MAGIC or block_length <= HEADER_BYTES:
            return
        yield first_entry_id, offset
        offset += block_length
