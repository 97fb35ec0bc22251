"""One entry out of a block, by ranged GETs: from a place that is known, or from where it begins.

A block has no list of its entries: its frames are walked from the first on, or from one of which
the index cache says where it stands (known_places.py). What it says is never believed. Each frame
is judged as in a walk from the first one, and the last must end where the next place is. What does
not fit makes the cache forget the block, and it is walked from its beginning.

Owns: a block of up to READ_ON_MAX takes four requests at most, whatever sizes its entries have.
One that the cache could keep is read to its end at once, for it is the last time that it is walked.
Without a cache the first request is made so large, by the block's own figures, that there is seldom
a second.

What is read is not compared with the block's SHA-256, which is of the whole block: frames are
checked one by one, and an entry of Pulsar's has a checksum of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.known_places import known_places
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.places import BEGINNING, FramePlace, NotedPlaces, Places, Stretch
from tiering_assets.lineage.shown_entry import EntryInObject, NoEntry, ReadCost
from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES, encode_block_header
from tiering_assets.offload_format.walker import BlockWalker, format_error
from tiering_assets.resources.errors import FormatError, ObjectNotFoundError

_MORE: Final = 64 * 1024  # beside what is expected
_NEXT: Final = 4 * 1024 * 1024  # then four times as much, and so on
PIECE_MAX: Final = 64 * 1024 * 1024
READ_ON_MAX: Final = PIECE_MAX
"""What may be left of a block that is read on for the cache."""


def read_entry(stack: Stack, block: PlacedBlock, entry_id: int) -> EntryInObject:
    """That entry, which the block has. FormatError for a block whose frames say otherwise."""
    number = entry_id - block.first_entry_id

    def expected(begin: FramePlace) -> int:
        left = _frame_bytes(block) - (begin.byte - HEADER_BYTES)
        return max(0, left) * (number - begin.entry + 1) // max(1, block.entries - begin.entry)

    found = _Reading(
        stack=stack,
        block=block,
        is_it=lambda frame: frame.entry_id == entry_id,
        stretch=lambda places: places.of_entry(number),
        expected=expected,
    ).find()
    if isinstance(found, NoEntry):
        raise FormatError(f"{block.data_key}: part {block.part} does not have entry {entry_id}")
    return found


def read_at(stack: Stack, block: PlacedBlock, offset: int) -> EntryInObject | NoEntry:
    """The entry that has this byte of the object, or what else the byte belongs to."""
    byte = offset - block.offset
    if byte < HEADER_BYTES:
        return NoEntry(what="header", cost=ReadCost())
    return _Reading(
        stack=stack,
        block=block,
        is_it=lambda frame: byte < frame.end,
        stretch=lambda places: places.of_byte(byte),
        expected=lambda begin: byte - begin.byte + 2 * (_frame_bytes(block) // block.entries),
    ).find()


class _Frame(NamedTuple):
    """`payload` is valid until the next frame; bytes are counted from where the block begins."""

    entry_id: int
    begin: int
    end: int
    payload: memoryview


def _frame_bytes(block: PlacedBlock) -> int:
    return block.payload_bytes + FRAME_BYTES * block.entries


class _Walk:
    """Frames from a place on, in pieces that lie one behind the other.

    What is behind a place is judged as a block that begins there: by ids, lengths and padding. A
    FormatError tells if the entries are not those of the row. With `by_header` the block's own
    header is the first that is fed.
    """

    def __init__(self, block: PlacedBlock, begin: FramePlace, *, by_header: bool = False) -> None:
        before = begin.byte - HEADER_BYTES
        length, first = block.length - before, block.first_entry_id + begin.entry
        self._walker = BlockWalker(
            block_length=length,
            first_entry_id=first,
            entries_expected=block.entries - begin.entry,
            offset=block.offset + before,
        )
        self._entry, self._byte = begin
        self.next_byte = 0 if by_header else begin.byte
        if not by_header:
            header = encode_block_header(block_length=length, first_entry_id=first)
            deque(self._walker.feed(header), maxlen=0)

    @property
    def at(self) -> FramePlace:
        """The next frame."""
        return FramePlace(self._entry, self._byte)

    def feed(self, piece: bytes) -> Iterator[_Frame]:
        self.next_byte += len(piece)
        for entry_id, payload in self._walker.feed(piece):
            begin = self._byte
            self._entry += 1
            self._byte = begin + FRAME_BYTES + len(payload)
            yield _Frame(entry_id, begin, self._byte, payload)

    def finish(self) -> None:
        self._walker.finish()


@dataclass(kw_only=True)
class _Reading:
    """`is_it` tells the frame that is wanted, `stretch` the places that it lies between, and
    `expected` how many bytes lie from a place on to its end.
    """

    stack: Stack
    block: PlacedBlock
    is_it: Callable[[_Frame], bool]
    stretch: Callable[[Places], Stretch | None]
    expected: Callable[[FramePlace], int]
    cost: ReadCost = field(default_factory=ReadCost)

    def __post_init__(self) -> None:
        self.places = known_places(self.stack.settings.cache)

    def find(self) -> EntryInObject | NoEntry:
        found = self._found() or NoEntry(what="padding", cost=self.cost)
        return replace(found, cost=self.cost)

    def _found(self) -> EntryInObject | None:
        known = self.places.of(self.block)
        if known is not None:
            try:
                found = self._by(known)
            except FormatError:
                self.places.drop(self.block)
            else:
                self.cost = replace(self.cost, index_cache="used")
                return found
        return self._from(BEGINNING, None)

    def _by(self, known: Places) -> EntryInObject | None:
        stretch = self.stretch(known)
        if stretch is not None:
            return self._within(stretch)
        return self._from(known.places[-2] if self._whole(known) else known.end, known)

    def _whole(self, known: Places) -> bool:
        return known.end.entry == self.block.entries

    def _within(self, stretch: Stretch) -> EntryInObject:
        """Its frames, all of which are walked: the last one must end where the next place is."""
        walk, found = _Walk(self.block, stretch.first), None
        while walk.next_byte < stretch.end.byte:
            for frame in walk.feed(self._get(walk, stretch.end.byte - walk.next_byte)):
                if found is None and self.is_it(frame):
                    found = self._kept(frame)
        if walk.at != stretch.end or found is None:
            at = self.block.offset + walk.at.byte
            raise format_error("end of frames", at, stretch.end, walk.at)
        return found

    def _from(self, begin: FramePlace, known: Places | None) -> EntryInObject | None:
        """Walk on from there, and keep what is learnt on the way. None where padding is wanted."""
        whole = known is not None and self._whole(known)
        noted = None
        if not whole and self.places.can_keep(self.block):
            noted = NotedPlaces(self.block.length, known)
        walk, found = _Walk(self.block, begin, by_header=known is None), None
        wanted, after = self._first(walk, read_on=whole or noted is not None), _NEXT
        while found is None and walk.next_byte < self.block.length:
            found = self._walked(walk, self._get(walk, wanted), noted)
            wanted, after = after, 4 * after
        if found is None:
            walk.finish()
        learnt = None if noted is None else noted.places()
        if learnt is not None and self.places.keep(self.block, learnt):
            self.cost = replace(self.cost, index_cache="filled")
        return found

    def _walked(self, walk: _Walk, piece: bytes, noted: NotedPlaces | None) -> EntryInObject | None:
        """Frames up to the one that is wanted; those behind it are for the cache alone."""
        found, frames = None, walk.feed(piece)
        for frame in frames:
            if noted is not None:
                noted.note(frame.end)
            if self.is_it(frame):
                found = self._kept(frame)
                break
        if found is not None and noted is not None:
            with suppress(FormatError):  # nobody asked for what is there
                for frame in frames:
                    noted.note(frame.end)
        return found

    def _first(self, walk: _Walk, *, read_on: bool) -> int:
        left = self.block.length - walk.next_byte
        if read_on and left <= READ_ON_MAX:
            return left
        expected = self.expected(walk.at) + walk.at.byte - walk.next_byte
        return expected + expected // 8 + _MORE

    def _get(self, walk: _Walk, wanted: int) -> bytes:
        start = walk.next_byte
        length = min(wanted, self.block.length - start, PIECE_MAX)
        piece = get_bytes(self.stack, self.block, self.block.offset + start, length)
        self.cost = replace(
            self.cost,
            requests=self.cost.requests + 1,
            bytes_read=self.cost.bytes_read + length,
        )
        return piece

    def _kept(self, frame: _Frame) -> EntryInObject:
        return EntryInObject(
            entry_id=frame.entry_id,
            offset=self.block.offset + frame.begin,
            payload=bytes(frame.payload),
            cost=self.cost,
        )


def get_bytes(stack: Stack, block: PlacedBlock, start: int, length: int) -> bytes:
    """Bytes of the object that has the block, of its version, within the budgets of its topic."""
    try:
        with stack.spending_for(block.topic):
            return stack.objects.get_range(
                block.data_key, start=start, length=length, version_id=block.version_id
            )
    except ObjectNotFoundError as error:
        raise ObjectNotFoundError(
            f"{error}; the catalogue has the ledger as {block.state}: `tierkeeper ledger show "
            f"{block.ledger_id}` tells what is so now"
        ) from error
