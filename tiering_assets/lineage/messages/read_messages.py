"""Messages of blocks, as columns: what `topic read` prints and writes.

Owns: rows come in the order of the topic, block by block, of the attempt that counts alone. One
block is in memory at a time. What the rows of blocks say of times leaves out blocks and no message:
each message is asked for its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, groupby
from typing import Any, Final

import pyarrow as pa

from tiering_assets.cold.chunks import OF_CONTENT, OF_PIECES
from tiering_assets.cold.columns import COLUMNS, schema_of
from tiering_assets.cold.decode import Entries, decode_lots
from tiering_assets.cold.joined import JoinChunks
from tiering_assets.cold.plain_rows import as_columns
from tiering_assets.cold.transactions import OF_TRANSACTIONS
from tiering_assets.cold.values.payload_schema import PayloadSchema
from tiering_assets.cold.values.protobuf import ProtobufShape
from tiering_assets.cold.values.typed import NEEDED, TypedValues
from tiering_assets.lineage.asked import Span
from tiering_assets.lineage.messages.decided import Decided
from tiering_assets.lineage.messages.earlier_pieces import (
    CANNOT_BE_READ,
    Blocks,
    EarlierPieces,
    Read,
)
from tiering_assets.lineage.messages.topic_columns import OF_VALUE, with_topic
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.resources.arrow_columns import pc, scalar
from tiering_assets.resources.errors import FormatError, ObjectStoreError

_TIME: Final = "publish_time"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesAsked:
    """Which messages, and what of them: columns of topic_columns.py.

    `schemas` are those by which values are read, `protobuf` files and message of a descriptor for
    those without one. The rest are arguments of cold/decode.py.
    """

    span: Span | None
    columns: Sequence[str]
    markers: bool = False
    verify: bool = False
    on_error: str = "fail"
    pieces: bool = False
    committed: bool = False
    schemas: tuple[PayloadSchema, ...] = ()
    protobuf: tuple[bytes, str] | None = None

    @property
    def with_values(self) -> bool:
        """Whether payloads are to be read by schemas."""
        return not {*OF_VALUE}.isdisjoint(self.columns)

    def typed(self) -> TypedValues:
        """How values are made. FormatError for a descriptor that is none."""
        given = None if self.protobuf is None else ProtobufShape(*self.protobuf)
        return TypedValues(self.schemas, given)

    @property
    def decoded(self) -> list[str]:
        """The columns, and those that tell which messages they are."""
        names = [*(name for name in self.columns if name in COLUMNS.names), _TIME, "error"]
        if self.with_values:
            names += NEEDED
        if self.committed:
            names += OF_TRANSACTIONS
        if not self.pieces:
            names += [*OF_PIECES, *(OF_CONTENT if "payload" in names else ())]
        return [*dict.fromkeys(names)]


def read_messages(
    read: Read,
    blocks: Iterable[PlacedBlock],
    wanted: MessagesAsked,
    *,
    before: Blocks,
    after: Blocks,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The number of a block, counted from 1, and its messages of that time, some or none.

    A block whose messages would be very large comes several times. `read` gives the entries of one,
    `before` tells the blocks before it, where pieces of its messages may lie, and `after` those
    behind it, where it may be decided what becomes of transactions.

    Errors name ledger, block and entries. FormatError for what cannot be read, ObjectStoreError
    for what the store does not give, CatalogueError for a transaction that is not decided.
    """
    read = _naming(read)
    numbers = count(1)
    typed = wanted.typed() if wanted.with_values else None
    for _topic, some in groupby(blocks, key=lambda block: block.topic):
        content = "payload" in wanted.columns or wanted.with_values
        earlier = EarlierPieces(before, read, content=content)
        chunks = JoinChunks(on_error=wanted.on_error)
        decided = Decided(after, read, on_error=wanted.on_error)
        for block in some:
            number = next(numbers)
            for found in _joined(read, block, wanted, chunks, earlier, decided):
                asked = _of_time(found, wanted.span)
                if wanted.committed:
                    asked = decided.committed(block, asked)
                if typed is not None:
                    asked = _with_values(asked, typed)
                yield number, with_topic(asked, block.topic, wanted.columns)


def _naming(read: Read) -> Read:
    """The same; a store's errors name a key, and then ledger and entries as well."""

    def named(block: PlacedBlock) -> Entries:
        try:
            return read(block)
        except (FormatError, ObjectStoreError) as error:
            entries = f"entries {block.first_entry_id} to {block.last_entry_id}"
            said = f"ledger {block.ledger_id}, {entries}: {error}"
            raise type(error).retold(said) from error

    return named


def _with_values(found: pa.RecordBatch, typed: TypedValues) -> pa.RecordBatch:
    """Its columns, and those of values."""
    made = typed.columns({name: found.column(name) for name in NEEDED})
    return pa.RecordBatch.from_arrays(
        [*found.columns, *made], names=[*found.schema.names, *OF_VALUE]
    )


def _joined(
    read: Read,
    block: PlacedBlock,
    wanted: MessagesAsked,
    chunks: JoinChunks,
    earlier: EarlierPieces,
    decided: Decided,
) -> Iterator[pa.RecordBatch]:
    """Its messages, unless pieces are asked for as they are stored."""
    try:
        for found in _decoded(read, block, wanted):
            if wanted.committed:
                decided.learn(found)
                if not wanted.markers:
                    found = found.filter(pc.is_null(found.column("marker")))
            if wanted.pieces:
                yield found
            else:
                yield chunks.joined(found, partial(earlier.before, block))
    except FormatError as error:
        raise FormatError(
            f"{block.data_key or 'on bookies'}, part {block.part}: {error}; `tierkeeper ledger show "
            f"{block.ledger_id}` tells what is known of it, --keep-going reads on"
        ) from error


def _decoded(read: Read, block: PlacedBlock, wanted: MessagesAsked) -> Iterator[pa.RecordBatch]:
    names = wanted.decoded
    try:
        entries = read(block)
    except CANNOT_BE_READ as error:
        if wanted.on_error != "row":
            raise
        place = {"ledger_id": block.ledger_id, "entry_id": block.first_entry_id}
        said = f"none of entries {block.first_entry_id} to {block.last_entry_id}: {error}"
        yield as_columns([{**place, "error": said}], schema_of(names))
        return
    yield from decode_lots(
        entries,
        names,
        markers=wanted.markers or wanted.committed,
        verify=wanted.verify,
        on_error=wanted.on_error,
    )


def _of_time(found: pa.RecordBatch, span: Span | None) -> Any:
    """Its messages of that time, and errors, of which none is known."""
    if span is None:
        return found
    times: Any = found.column(_TIME)
    ms = times.cast(pa.int64())  # in finer units the latest that occur have no number
    first, last = -((_EPOCH - span.first) // _MS), (span.last - _EPOCH) // _MS
    inside = pc.and_(pc.greater_equal(ms, scalar(first)), pc.less_equal(ms, scalar(last)))
    return found.filter(pc.or_kleene(inside, pc.is_valid(found.column("error"))))
