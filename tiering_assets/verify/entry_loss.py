"""Exactly which entries of a damaged copy nobody can read any more. Reads only.

Owns: an entry counts as lost when no broker can find it in the object, or when it is there and
differs from its own checksum. A block whose certified digest still holds has lost nothing. Asked
only where the bookie copy is gone: before that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.decoder import decode_index_fields
from tiering_assets.offload_format.keys import check_format_version
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.offload_format.salvage import look_into_block, ranges_of
from tiering_assets.records.models import EntryRange
from tiering_assets.resources.errors import FormatError
from tiering_assets.verify.object_check import ObjectSight


def lost_entries(
    stack: Stack, sight: ObjectSight | None, *, last_entry_id: int
) -> tuple[EntryRange, ...]:
    """Ranges of the ledger's entries 0 to `last_entry_id` that are lost, ascending."""
    everything = (EntryRange(0, last_entry_id),)
    if sight is None or sight.data is None:
        return everything
    if sight.index is None:
        stack.objects.get(
            sight.index_key, bytes_max=INDEX_BYTES_MAX
        )  # an archived one can be restored: that is an error
        return everything
    try:
        check_format_version(sight.data.metadata)
        check_format_version(sight.index.head.metadata)
        index = decode_index_fields(sight.index.body)
    except FormatError:
        return everything  # a broker refuses the object as a whole
    lost: set[int] = set()
    seen_from = last_entry_id + 1  # entries before the first block of the index
    ends = [(e.offset, e.first_entry_id) for e in index.entries[1:]]
    ends.append((index.data_object_length, last_entry_id + 1))
    for entry, (end, next_first) in zip(index.entries, ends, strict=True):
        first, last = max(entry.first_entry_id, 0), min(next_first - 1, last_entry_id)
        seen_from = min(seen_from, first)
        if last < first:
            continue
        length = min(end, sight.data.size) - entry.offset
        if entry.offset < 0 or length <= 0:
            lost.update(range(first, last + 1))
            continue
        where, version_id = (entry.offset, length), sight.data.version_id
        lost.update(_lost_in_block(stack, sight, *where, first, last, version_id=version_id))
    lost.update(range(min(seen_from, last_entry_id + 1)))
    return tuple(EntryRange(first, last) for first, last in ranges_of(lost))


def _lost_in_block(
    stack: Stack,
    sight: ObjectSight,
    offset: int,
    length: int,
    first: int,
    last: int,
    *,
    version_id: str | None,
) -> Iterator[int]:
    body = bytearray()
    step = stack.settings.offload.read_range_bytes
    for start in range(offset, offset + length, step):
        body += stack.objects.get_range(
            sight.data_key,
            start=start,
            length=min(step, offset + length - start),
            version_id=version_id,
        )
    certified = _certified_digest(sight, offset)
    if sha256(body).hexdigest() == certified:
        return
    found = look_into_block(memoryview(body), first_entry_id=first, last_entry_id=last)
    lost = [*found.missing(first, last), *found.wrong]
    if not lost and certified is not None:
        lost = [*found.unjudged]  # some byte differs, and nothing tells whose: none can be trusted
    yield from lost


def _certified_digest(sight: ObjectSight, offset: int) -> str | None:
    if sight.certificate is None:
        return None
    blocks = sight.certificate.record.blocks
    return next((block.sha256 for block in blocks if block.offset == offset), None)
