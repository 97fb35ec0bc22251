"""Messages of blocks, as columns: what `topic read` prints and writes.

Owns: rows come in the order of the topic, block by block, of the attempt that counts alone. One
block is in memory at a time. What the rows of blocks say of times leaves out blocks and no message:
each message is asked for its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from tiering_assets.cold.columns import schema_of
from tiering_assets.cold.decode import decode_lots
from tiering_assets.cold.frames import entries_of_block
from tiering_assets.cold.plain_rows import as_columns
from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.asked import Span
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.read_entry import PIECE_MAX, get_bytes
from tiering_assets.resources.arrow_columns import pc, scalar
from tiering_assets.resources.errors import FormatError

_TIME: Final = "publish_time"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesAsked:
    """Which messages, and what of them: the arguments of cold/decode.py."""

    span: Span
    columns: Sequence[str]
    markers: bool = False
    verify: bool = False
    on_error: str = "fail"


def read_messages(
    stack: Stack, blocks: Iterable[PlacedBlock], wanted: MessagesAsked
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The number of a block, counted from 1, and its messages of that time, some or none.

    A block whose messages would be very large comes several times.

    FormatError that names ledger, block and entry, for what cannot be read.
    """
    names = [*wanted.columns, *({_TIME, "error"} - {*wanted.columns})]
    for number, block in enumerate(blocks, 1):
        try:
            for found in _decoded(stack, block, names, wanted):
                yield number, _of_time(found, wanted.span).select([*wanted.columns])
        except FormatError as error:
            raise FormatError(
                f"{block.data_key}, part {block.part}: {error}; `tierkeeper ledger show "
                f"{block.ledger_id}` tells what is known of it, --keep-going reads on"
            ) from error


def _decoded(
    stack: Stack, block: PlacedBlock, names: Sequence[str], wanted: MessagesAsked
) -> Iterator[pa.RecordBatch]:
    try:
        entries = entries_of_block(
            _whole(stack, block),
            ledger_id=block.ledger_id,
            first_entry_id=block.first_entry_id,
            count=block.entries,
        )
    except FormatError as error:
        if wanted.on_error != "row":
            raise
        place = {"ledger_id": block.ledger_id, "entry_id": block.first_entry_id}
        said = f"none of entries {block.first_entry_id} to {block.last_entry_id}: {error}"
        yield as_columns([{**place, "error": said}], schema_of(names))
        return
    yield from decode_lots(
        entries,
        names,
        markers=wanted.markers,
        verify=wanted.verify,
        on_error=wanted.on_error,
    )


def _whole(stack: Stack, block: PlacedBlock) -> bytes:
    pieces = [
        get_bytes(stack, block, block.offset + at, min(PIECE_MAX, block.length - at))
        for at in range(0, block.length, PIECE_MAX)
    ]
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _of_time(found: pa.RecordBatch, span: Span) -> Any:
    """Its messages of that time, and errors, of which none is known."""
    times: Any = found.column(_TIME)
    ms = times.cast(pa.int64())  # in finer units the latest that occur have no number
    first, last = -((_EPOCH - span.first) // _MS), (span.last - _EPOCH) // _MS
    inside = pc.and_(pc.greater_equal(ms, scalar(first)), pc.less_equal(ms, scalar(last)))
    return found.filter(pc.or_kleene(inside, pc.is_valid(found.column("error"))))
