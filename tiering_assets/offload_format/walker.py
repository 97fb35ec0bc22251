"""The way back: the bytes of one block to its entries, in chunks of any size.

Owns: every byte of the block is accounted for: header, frames with consecutive ids, and padding
that repeats its pattern to the very end. Memory is bounded by the chunk at hand and one entry that
crosses chunks, so that a block is never held whole.

Padding begins where a whole frame cannot follow, where all expected entries were seen, or where a
length field shows the pattern. Takes nothing from the encoder but the constants of block.py. Any
bytes decode or raise FormatError with offset, expected and found.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from enum import Enum
from struct import Struct
from typing import Final

from tiering_assets.offload_format.block import (
    FRAME_BYTES,
    HEADER_BYTES,
    MAGIC,
    PAD_PATTERN,
    STREAMING_MAGIC,
)
from tiering_assets.resources.errors import FormatError

_HEADER: Final = Struct(">Iqqq")  # magic, header length, block length, first entry id
_LEDGER: Final = Struct(">q")  # behind it in blocks of a streaming segment
_FRAME: Final = Struct(">iq")  # payload length, entry id
_PADDING_LENGTH: Final = int.from_bytes(PAD_PATTERN, "big", signed=True)  # the pattern as a length
_PAD: Final = PAD_PATTERN * 16_384
_ALIGNED: Final = len(_PAD)


def format_error(what: str, offset: int, expected: object, found: object) -> FormatError:
    """The one shape of a decoding error; `offset` counts bytes from the start of the object."""
    return FormatError(f"{what} at byte {offset}: expected {expected}, found {found}")


class _Next(Enum):
    """What the next byte belongs to."""

    HEADER = "header"
    FRAME = "frame"
    PAYLOAD = "payload"
    PADDING = "padding"


class BlockWalker:
    """Decodes one block: `feed` every byte of it in order, then `finish`.

    The entries of a chunk come lazily and must all be taken before the next `feed` or `finish`; a
    payload is a view, valid until the next one is taken.
    """

    def __init__(
        self,
        *,
        block_length: int,
        first_entry_id: int,
        entries_expected: int | None = None,
        offset: int = 0,
        ledger_id: int | None = None,
    ) -> None:
        """Expect a block of `block_length` bytes; `offset` is its own in the object, for messages.

        `entries_expected` comes from the next block's first entry id, or from the ledger's last
        entry id; without it the frames themselves say where they end. With `ledger_id` it is a
        block of a streaming segment (PIP-76), which has that in its header.
        """
        self._block_length = block_length
        self._first_entry_id = first_entry_id
        self._end_id = None if entries_expected is None else first_entry_id + entries_expected
        self._offset = offset
        self._ledger_id = ledger_id
        self._position = 0  # bytes decoded so far, those in _carry excluded
        self._next_id = first_entry_id
        self._next = _Next.HEADER
        self._carry = bytearray()  # header, frame head or payload of which the rest is to come
        self._payload_length = 0
        self._padding_at = 0
        self._walking = False

    @property
    def entries(self) -> int:
        """Entries decoded so far."""
        return self._next_id - self._first_entry_id

    def feed(self, chunk: bytes | bytearray | memoryview) -> Iterator[tuple[int, memoryview]]:
        """Yield (entry id, payload) of the entries that end in this chunk.

        Raises:
            FormatError: at the first byte that no such block has there.
            ValueError: the entries of an earlier chunk have not all been taken.
        """
        self._require_idle()
        fed = self._position + len(self._carry) + len(chunk)
        if fed > self._block_length:
            raise self._error("block end", self._block_length, "no further bytes", fed)
        self._walking = True
        return self._walk(memoryview(chunk).toreadonly())

    def finish(self) -> None:
        """Raise FormatError unless the whole block and all expected entries were seen."""
        self._require_idle()
        seen = self._position + len(self._carry)
        if seen != self._block_length:
            raise self._error("block", seen, f"{self._block_length} bytes", seen)
        if self.entries == 0:
            raise self._error("block", self._position, "at least one entry", "none")
        if self._end_id is not None and self._next_id != self._end_id:
            raise self._missing()

    def _walk(self, view: memoryview) -> Iterator[tuple[int, memoryview]]:
        at, size = 0, len(view)
        while at < size:
            if self._next is _Next.FRAME and not self._carry:
                at = yield from self._whole_frames(view, at)
                if at == size or self._next is not _Next.FRAME:
                    continue
            if self._next is _Next.HEADER:
                at = self._collect(view, at, HEADER_BYTES)
                if len(self._carry) == HEADER_BYTES:
                    require_header(
                        self._carry,
                        block_length=self._block_length,
                        first_entry_id=self._first_entry_id,
                        offset=self._offset,
                        ledger_id=self._ledger_id,
                    )
                    self._position = HEADER_BYTES
                    self._carry = bytearray()
                    self._after_frame()
            elif self._next is _Next.FRAME:
                at = self._collect(view, at, FRAME_BYTES)
                if len(self._carry) == FRAME_BYTES:
                    self._begin_frame()
            elif self._next is _Next.PAYLOAD:
                at = self._collect(view, at, self._payload_length)
            else:
                self._check_padding(view[at:])
                at = size
            if self._next is _Next.PAYLOAD and len(self._carry) == self._payload_length:
                payload = memoryview(self._carry).toreadonly()
                self._carry = bytearray()
                self._position += self._payload_length
                entry_id = self._next_id
                self._next_id += 1
                self._after_frame()
                yield entry_id, payload
        self._walking = False

    def _whole_frames(
        self, view: memoryview, at: int
    ) -> Generator[tuple[int, memoryview], None, int]:
        """The hot loop: frames wholly in the chunk, until one is not; returns where it stopped."""
        unpack_from, frame_bytes = _FRAME.unpack_from, FRAME_BYTES
        start = self._position - at  # position in the block of the chunk's first byte
        next_id, end_id, size = self._next_id, self._end_id, len(view)
        while size - at >= frame_bytes and next_id != end_id:
            length, entry_id = unpack_from(view, at)
            end = at + frame_bytes + length
            if entry_id != next_id or length < 0 or end > size:
                break  # the careful path says whether it is padding, an error or the chunk's end
            payload = view[at + frame_bytes : end]
            at = end
            next_id += 1
            self._position = start + at
            self._next_id = next_id
            yield entry_id, payload
        self._after_frame()
        return at

    def _collect(self, view: memoryview, at: int, wanted: int) -> int:
        end = min(len(view), at + wanted - len(self._carry))
        self._carry += view[at:end]
        return end

    def _after_frame(self) -> None:
        room = self._block_length - self._position
        if self._next_id == self._end_id or room < FRAME_BYTES:
            self._next = _Next.PADDING
            self._padding_at = self._position
        else:
            self._next = _Next.FRAME

    def _begin_frame(self) -> None:
        length, entry_id = _FRAME.unpack_from(self._carry)
        if length == _PADDING_LENGTH:
            head, self._carry = self._carry, bytearray()
            self._next = _Next.PADDING
            self._padding_at = self._position
            self._check_padding(memoryview(head))
            return
        room = self._block_length - self._position - FRAME_BYTES
        if not 0 <= length <= room:
            raise self._error("payload length", self._position, f"0 to {room}, or padding", length)
        if entry_id != self._next_id:
            raise self._error("entry id", self._position + 4, self._next_id, entry_id)
        self._position += FRAME_BYTES
        self._payload_length = length
        self._carry = bytearray()
        self._next = _Next.PAYLOAD

    def _check_padding(self, view: memoryview) -> None:
        if self._end_id is not None and self._next_id != self._end_id:
            raise self._missing()
        at = 0
        while at < len(view):
            phase = (self._position - self._padding_at) % len(PAD_PATTERN)
            n = min(len(view) - at, _ALIGNED - phase)
            expected, found = _PAD[phase : phase + n], bytes(view[at : at + n])
            if found != expected:
                wrong = next(i for i in range(n) if found[i] != expected[i])
                raise self._error(
                    "padding",
                    self._position + wrong,
                    f"{expected[wrong]:#04x}",
                    f"{found[wrong]:#04x}",
                )
            self._position += n
            at += n

    def _missing(self) -> FormatError:
        expected = f"entries {self._first_entry_id} to {(self._end_id or 0) - 1}"
        return self._error("block", self._position, expected, f"{self.entries} of them")

    def _error(self, what: str, position: int, expected: object, found: object) -> FormatError:
        return format_error(what, self._offset + position, expected, found)

    def _require_idle(self) -> None:
        if self._walking:
            raise ValueError("entries of the chunk before this one have not all been taken")


def iter_block_entries(
    block: bytes | bytearray | memoryview,
    *,
    first_entry_id: int,
    entries_expected: int | None = None,
) -> Iterator[tuple[int, memoryview]]:
    """Yield (entry id, payload) of a whole block, then check that nothing but padding follows.

    Raises:
        FormatError: also after the last entry, so take them all before believing any.
    """
    walker = BlockWalker(
        block_length=len(block), first_entry_id=first_entry_id, entries_expected=entries_expected
    )
    yield from walker.feed(block)
    walker.finish()


def require_header(
    header: bytes | bytearray,
    *,
    block_length: int,
    first_entry_id: int,
    offset: int,
    ledger_id: int | None = None,
) -> None:
    """Raise FormatError unless these 128 bytes head a block of that length and first entry.

    It is V1's without a ledger, else one of a streaming segment. `offset` is the header's own, for
    the message.
    """
    magic, header_length, found_length, found_first = _HEADER.unpack_from(header)
    kinds = {MAGIC: "a V1 one", STREAMING_MAGIC: "a streaming (PIP-76) one"}
    wanted = MAGIC if ledger_id is None else STREAMING_MAGIC
    if magic in kinds and magic != wanted:
        raise format_error("block", offset, kinds[wanted], f"{kinds[magic]}, not supported here")
    if magic != wanted:
        raise format_error("block magic", offset, f"{wanted:#010x}", f"{magic:#010x}")
    if header_length != HEADER_BYTES:
        raise format_error("block header length", offset + 4, HEADER_BYTES, header_length)
    if found_length != block_length:
        raise format_error("block length", offset + 12, block_length, found_length)
    if found_first != first_entry_id:
        raise format_error("first entry id", offset + 20, first_entry_id, found_first)
    size = _HEADER.size
    if ledger_id is not None:
        (found_ledger,) = _LEDGER.unpack_from(header, size)
        if found_ledger != ledger_id:
            raise format_error("ledger id", offset + size, ledger_id, found_ledger)
        size += _LEDGER.size
    reserved = bytes(header[size:HEADER_BYTES])
    if reserved.strip(b"\0"):
        at = len(reserved) - len(reserved.lstrip(b"\0"))
        raise format_error("reserved bytes", offset + size + at, "zero", f"{reserved[at]:#04x}")
