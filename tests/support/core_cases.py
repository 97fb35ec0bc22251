"""Batches and blocks, sound and damaged, on which the library and the Python reference must agree.

Owns: one case is one seed. What it gives the library lies flush against memory that nobody may
read, on one side or the other, so that a byte too far ends the process at once.
"""

from __future__ import annotations

import ctypes
import mmap
import random
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from struct import pack, pack_into, unpack_from

from google_crc32c import value

from tests.support.layouts import plan_layout_from_sizes
from tests.support.message_cases import MessageCases
from tests.support.pulsar_entries import any_entry
from tiering_assets.offload_format.decoder import BlockWalker
from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.offload_format.message_facts import MessageCount
from tiering_assets.offload_format.segments.block import SegmentBlock
from tiering_assets.resources.bookkeeper.batch_body import find_records, verify_records
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.native.core import Core, Walked

LEDGER = 7
CODEC = EntryCodec(ledger_id=LEDGER, digest_type=DigestType.CRC32C, password=b"")
SIZES = (0, 0, 1, 3, 7, 8, 9, 40, 100, 255, 256, 767, 768, 769, 1024, 5000, 12287, 12288, 12300)
_NOBODY = 0  # PROT_NONE


class Fenced:
    """Memory with a page on either side that may not be touched."""

    def __init__(self, capacity: int) -> None:
        page = mmap.PAGESIZE
        pages = -(-capacity // page)
        self._map = mmap.mmap(-1, (pages + 2) * page)
        whole = memoryview(self._map)
        self._room = whole[page : page + pages * page]
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for at in (start, start + (pages + 1) * page):
            if protect(ctypes.c_void_p(at), ctypes.c_size_t(page), _NOBODY) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")

    def take(self, size: int, *, at_the_end: bool) -> memoryview:
        return self._room[len(self._room) - size :] if at_the_end else self._room[:size]

    def hold(self, data: bytes | bytearray, *, at_the_end: bool) -> memoryview:
        view = self.take(len(data), at_the_end=at_the_end)
        view[:] = data
        return view


class Plain(Fenced):
    """Memory of its own for each use, as an address sanitizer wants it."""

    def __init__(self) -> None:
        """Nothing is kept."""

    def take(self, size: int, *, at_the_end: bool) -> memoryview:
        del at_the_end
        return memoryview(bytearray(size))


class Cases:
    """Runs cases. `memory` is for what is read and `out` for what is written."""

    def __init__(self, core: Core, *, fenced: bool = True) -> None:
        self._core = core
        self._memory = Fenced(1 << 20) if fenced else Plain()
        self._out = Fenced(1 << 20) if fenced else Plain()
        self._messages = MessageCases(core, self._memory.hold, self._out.take)

    def run(self, seed: int) -> None:
        """One case. AssertionError where both do not agree."""
        source = random.Random(seed)
        match source.randrange(6):
            case 0 | 1:
                self._batch(source)
            case 2:
                self._block(source, whole=False)
            case 3:
                self._block(source, whole=True)
            case _:
                self._messages.run(source)

    def _batch(self, source: random.Random) -> None:
        first = source.choice((0, 1, 40, 2**31 - 3, 2**40))
        body = _damaged(source, batch(source, first), record_starts)
        if len(body) == 0:
            return
        records = self._memory.hold(body, at_the_end=source.random() < 0.5)
        most = source.choice((0, 1, 2, 1000, 1000, 1000))
        bounds = None
        with suppress(FormatError):
            bounds = find_records(records, count_max=most)
        found = self._core.find(records, count_max=most)
        assert found == (None if bounds is None else (len(bounds) - 1, bounds[-1])), (found, bounds)
        if bounds is None:
            bounds, count = [0], source.randint(0, 5)
        else:
            count = len(bounds) - 1
            entries, _failure = verify_records(CODEC, records, bounds, first_entry_id=first)
            good = self._core.verify(records, count=count, ledger_id=LEDGER, first_entry_id=first)
            wanted = (len(entries), bounds[len(entries)], sum(len(e[1]) for e in entries))
            assert tuple(good) == wanted, (good, wanted)
        self._frame(source, records, bounds, count, first)

    def _frame(
        self, source: random.Random, records: memoryview, bounds: list[int], count: int, first: int
    ) -> None:
        wanted: bytes | None = b""
        if len(bounds) == count + 1:
            wanted = framed(records, bounds, first)
        elif count:
            wanted = None
        size = source.choice(
            (len(records), max(1, len(wanted or b"") - 1), len(wanted or b"") or 1)
        )
        out = self._out.take(size, at_the_end=source.random() < 0.5)
        written = self._core.frame(records, count=count, first_entry_id=first, out=out)
        if len(bounds) != count + 1:  # a count that nothing was found for must only do no harm
            return
        if wanted is None or len(wanted) > size:
            assert written is None, (written, size)
        else:
            assert written == len(wanted)
            assert out[:written] == wanted

    def _block(self, source: random.Random, *, whole: bool) -> None:
        entries = self._entries(source)
        sizes = [len(one) for one in entries]
        [plan] = plan_layout_from_sizes(sizes, block_bytes_max=1 << 20)
        encoder = BlockEncoder(plan.block_length + source.choice((0, 0, 1, 4, 5, 4000)))
        ledger_id = source.choice((None, 0, 7, 2**62 + 1))
        encoder.begin(plan if ledger_id is None else _of_segment(plan, ledger_id))
        encoder.add_many(0, entries)
        body = _padded(source, encoder.finish())
        if whole:
            count = len(sizes)
        else:
            body = _damaged(source, body, frame_starts)
            count = source.choice((len(sizes), len(sizes), len(sizes) + 1, max(1, len(sizes) - 1)))
        if len(body) == 0:
            return
        block = self._memory.hold(body, at_the_end=source.random() < 0.5)
        wanted: Walked | None = None
        asked = source.choice((ledger_id, ledger_id, ledger_id, None, 8))
        walker = BlockWalker(
            block_length=len(block), first_entry_id=0, entries_expected=count, ledger_id=asked
        )
        with suppress(FormatError):
            found, messages = 0, MessageCount()
            for _id, payload in walker.feed(block):
                found += len(payload)
                messages.add(payload)
            walker.finish()
            facts = messages.facts()
            wanted = Walked(found, facts.messages, facts.publish_min_ms, facts.publish_max_ms)
        walked = self._core.walk(block, first_entry_id=0, count=count, ledger_id=asked)
        assert walked == wanted, (walked, wanted)

    def _entries(self, source: random.Random) -> list[bytes]:
        """Of anybody, or Pulsar's: few of these, as one that is damaged hides all others."""
        if source.random() < 0.3:
            return [source.randbytes(source.choice(SIZES)) for _ in range(source.randint(1, 12))]
        return [
            any_entry(source, source.randbytes(source.choice(SIZES)))
            for _ in range(source.choice((1, 1, 2, 5)))
        ]


def _of_segment(plan: BlockPlan, ledger_id: int) -> SegmentBlock:
    """The same block with the header of a streaming segment's."""
    return SegmentBlock(
        ledger_id=ledger_id,
        part_number=plan.part_number,
        first_entry_id=plan.first_entry_id,
        last_entry_id=plan.last_entry_id,
        offset=plan.offset,
        block_length=plan.block_length,
        payload_bytes=plan.payload_bytes,
    )


def batch(source: random.Random, first: int) -> bytearray:
    """The records of a sound answer that begins with entry `first`."""
    body, length = bytearray(), 0
    for entry_id in range(first, first + source.randint(1, 12)):
        payload = source.randbytes(source.choice(SIZES))
        length += len(payload)
        stored = CODEC.encode(
            entry_id=entry_id,
            last_add_confirmed=entry_id - 1,
            cumulative_length=length,
            payload=payload,
        )
        body += pack(">i", len(stored)) + stored
    return body


def framed(records: memoryview, bounds: list[int], first: int) -> bytes | None:
    """What records become in a block; None where one has not its digest."""
    frames = bytearray()
    for i, (start, end) in enumerate(pairwise(bounds)):
        stored = bytes(records[start + 4 : end])
        if len(stored) < 36 or value(stored[:32] + stored[36:]) != unpack_from(">I", stored, 32)[0]:
            return None
        frames += pack(">iq", len(stored) - 36, first + i) + stored[36:]
    return bytes(frames)


def record_starts(body: bytearray) -> list[int]:
    starts, at = [], 0
    while at + 4 <= len(body):
        starts.append(at)
        at += 4 + int(unpack_from(">i", body, at)[0])
    return starts


def frame_starts(body: bytearray) -> list[int]:
    starts, at = [], 128
    while at + 12 <= len(body) and (length := int(unpack_from(">i", body, at)[0])) >= 0:
        starts.append(at)
        at += 12 + length
    return starts


def _padded(source: random.Random, block: memoryview) -> bytearray:
    """The block with more padding behind it, of any length, and its header so."""
    body = bytearray(block)
    more = source.choice((0, 0, 1, 2, 3, 4, 9, 1000))
    body += (b"\xfe\xdc\xde\xad" * (more // 4 + 1))[:more]
    pack_into(">q", body, 12, len(body))
    return body


def _damaged(
    source: random.Random, body: bytearray, starts_of: Callable[[bytearray], list[int]]
) -> bytearray:
    starts = starts_of(body)
    for _ in range(source.choice((0, 0, 1, 1, 2))):
        at = source.choice(starts)
        match source.randrange(9):
            case 0 if body:
                body[source.randrange(len(body))] ^= 1 << source.randrange(8)
            case 1:
                del body[source.choice((source.randrange(len(body) + 1), len(body) - 1)) :]
            case 2:
                body += source.randbytes(source.choice((1, 3, 4, 40)))
            case 3 if at + 4 <= len(body):
                wild = (
                    -1,
                    -(2**31),
                    2**31 - 1,
                    0,
                    35,
                    36,
                    len(body),
                    len(body) - at - 4,
                    len(body) - at - 3,
                )
                pack_into(">i", body, at, source.choice(wild))
            case 4 if at + 20 <= len(body):
                pack_into(">q", body, at + 4, source.choice((0, 1, LEDGER, -1, 2**63 - 1)))
            case 5 if at + 28 <= len(body):
                pack_into(">q", body, at + 12, source.choice((0, 1, 2, -1, 2**63 - 1)))
            case 6:
                other = source.choice(starts)
                body[at : at + 4], body[other : other + 4] = (
                    body[other : other + 4],
                    body[at : at + 4],
                )
            case 7 if body:
                body[-1 - source.randrange(min(8, len(body)))] ^= 1 << source.randrange(8)
            case 8:
                _sealed_anew(source, body, at)
            case _:  # there is nothing left to damage
                pass
    return body


def _sealed_anew(source: random.Random, body: bytearray, at: int) -> None:
    """Another ledger or entry in a record, under a digest that is right."""
    if at + 40 > len(body):
        return
    length = int(unpack_from(">i", body, at)[0])
    if 36 <= length <= len(body) - at - 4:
        field = at + source.choice((4, 12))
        found = int(unpack_from(">q", body, field)[0])
        pack_into(">q", body, field, found + source.choice((-1, 1)) if abs(found) < 2**62 else 0)
        stored = bytes(body[at + 4 : at + 4 + length])
        pack_into(">I", body, at + 36, value(stored[:32] + stored[36:]))
