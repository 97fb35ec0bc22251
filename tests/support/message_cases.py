"""Fields of messages, batches and frames, sound and damaged, on which the library must agree with
the way without it.

Owns: one case is one seed. Bytes lie flush against memory that nobody may read.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from struct import pack, pack_into
from typing import Any

import numpy as np

from tests.support.pulsar_entries import varint
from tiering_assets.cold.frames import entries_of_block
from tiering_assets.cold.lockstep import Fields, padded
from tiering_assets.cold.singles import PAYLOAD_BYTES, Singles, read_singles
from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES, MAGIC
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.native.core import Core

NUMBERS = (8, 24, 232, 504)
REPEATED = 10
SLICES = (REPEATED, 18, 50, 234, 506)
KEYS = (*NUMBERS, *SLICES, 16, 34, 512, 514, 2**32 + 8, 2**63 - 8)
ODD_KEYS = (0, 2, 7, 9, 13, 11, 2**63, 2**64 - 8)
VALUES = (0, 1, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
Hold = Callable[[bytes], memoryview]


class MessageCases:
    """`hold` puts bytes where nobody may read on one side of them, `take` gives room for others."""

    def __init__(
        self, core: Core, hold: Callable[..., memoryview], take: Callable[..., memoryview]
    ) -> None:
        self._core, self._hold, self._take = core, hold, take

    def run(self, source: random.Random) -> None:
        """One case. AssertionError where both do not agree."""
        match source.randrange(4):
            case 0 | 1:
                self._fields(source)
            case 2:
                self._singles(source)
            case _:
                self._frames(source)

    def _data(self, source: random.Random, body: bytes) -> Any:
        return np.frombuffer(self._hold(body, at_the_end=source.random() < 0.8), np.uint8)

    def _fields(self, source: random.Random) -> None:
        made = [_message(source) for _ in range(source.choice((0, 1, 2, 5, 60)))]
        rows = source.sample(range(len(made) + 3), len(made))
        ends = np.cumsum([len(one) for one in made], dtype=np.int64)
        starts = ends - np.array([len(one) for one in made], np.int64)
        data = self._data(source, b"".join(made) or b"\0")
        repeated = source.choice((None, REPEATED))
        library, python = (
            Fields(len(made) + 3, numbers=NUMBERS, slices=SLICES, repeated=repeated, core=core)
            for core in (self._core, None)
        )
        library.walk(data, np.array(rows, int), starts, ends)
        python.walk(padded(data, ends), np.array(rows, int), starts, ends)
        _same_fields(library, python, ~library.odd)
        self._outside(source, data)
        if repeated is not None and made:
            self._little_room(source, data, starts, ends)

    def _little_room(self, source: random.Random, data: Any, starts: Any, ends: Any) -> None:
        """What there is no room for is counted and not written."""
        counts = []
        for room in (source.randint(1, 2), 1000):
            out = self._take(3 * 8 * room, at_the_end=True)
            each = np.frombuffer(out, np.int64).reshape(3, room)
            fields = Fields(len(starts))
            found = self._core.fields(
                data,
                rows=np.arange(len(starts)),
                starts=starts,
                ends=ends,
                into=fields.arrays,
                repeated=REPEATED,
                each=each,
                odd=fields.odd,
            )
            counts.append((found, each[:, : min(found, 1)].tolist()))
        assert counts[0] == counts[1]

    def _outside(self, source: random.Random, data: Any) -> None:
        """Whoever asks for what is outside has an error, and nothing is read."""
        fields = Fields(2, numbers=NUMBERS, core=self._core)
        row, start, end = source.choice(
            ((-1, 0, 1), (2, 0, 1), (0, -1, 1), (0, 0, len(data) + 1), (0, 1, 0))
        )
        with suppress(ValueError):
            fields.walk(data, np.array([row]), np.array([start]), np.array([end]))
            raise AssertionError(f"row {row} of 2, {start} to {end} of {len(data)} was read")
        few = Fields(1, numbers=(PAYLOAD_BYTES,), core=self._core)
        start, end, count = source.choice(
            ((0, 1, 2), (-1, 1, 1), (0, len(data) + 1, 1), (1, 0, 1), (0, 1, -1))
        )
        with suppress(ValueError):
            self._core.singles(
                data,
                starts=np.array([start]),
                ends=np.array([end]),
                counts=np.array([count]),
                into=few.arrays,
                repeated=0,
                each=np.empty((3, 0), np.int64),
                payload_starts=np.zeros(1, np.int64),
                payload_lengths=np.zeros(1, np.int64),
                odd=np.zeros(1, bool),
            )
            raise AssertionError(f"{count} messages, {start} to {end} of {len(data)} were read")

    def _singles(self, source: random.Random) -> None:
        some = [_batch(source) for _ in range(source.choice((0, 1, 2, 5, 20)))]
        made, counts = [one for one, _ in some], np.array([count for _, count in some], np.int64)
        ends = np.cumsum([len(one) for one in made], dtype=np.int64)
        starts = ends - np.array([len(one) for one in made], np.int64)
        data = self._data(source, b"".join(made) or b"\0")
        library, python = (
            read_singles(
                padded(data, ends) if core is None else data,
                *(starts, ends, counts),
                numbers=NUMBERS,
                slices=SLICES,
                properties=True,
                core=core,
            )
            for core in (self._core, None)
        )
        assert library.odd.tolist() == python.odd.tolist()
        assert _told(library) == _told(python)
        self._within(data, starts, ends, counts)

    def _within(self, data: Any, starts: Any, ends: Any, counts: Any) -> None:
        """What the library by itself calls sound ends within its batch."""
        total = int(counts.sum())
        fields = Fields(total, numbers=(PAYLOAD_BYTES,), core=self._core)
        at, size = np.zeros(total, np.int64), np.zeros(total, np.int64)
        odd = np.zeros(len(counts), bool)
        self._core.singles(
            data,
            starts=starts,
            ends=ends,
            counts=counts,
            into=fields.arrays,
            repeated=0,
            each=np.empty((3, 0), np.int64),
            payload_starts=at,
            payload_lengths=size,
            odd=odd,
        )
        sound = ~np.repeat(odd, counts)
        assert (at[sound] + size[sound] <= np.repeat(ends, counts)[sound]).all()

    def _frames(self, source: random.Random) -> None:
        first = source.choice((0, 7, 2**40))
        sizes = [source.choice((0, 1, 9, 300)) for _ in range(source.choice((1, 3, 8)))]
        body = bytearray(HEADER_BYTES)
        for number, size in enumerate(sizes):
            body += pack(">iq", size, first + number) + bytes(size)
        count = source.choice((len(sizes), len(sizes), len(sizes) + 1, 1))
        if source.random() < 0.5:
            at = HEADER_BYTES + source.choice((0, FRAME_BYTES + sizes[0]))
            if at + FRAME_BYTES <= len(body):
                wild = source.choice((-1, 2**31 - 1, len(body) - at - FRAME_BYTES + 1))
                pack_into(*source.choice(((">i", body, at, wild), (">q", body, at + 4, wild))))
        if source.random() < 0.3:
            del body[-source.randint(1, 5) :]
        if len(body) < HEADER_BYTES:
            return
        pack_into(">Iqqq", body, 0, MAGIC, HEADER_BYTES, len(body), first)
        block = self._hold(bytes(body), at_the_end=True)
        lengths = np.zeros(count, np.int64)
        whole = self._core.frames(
            np.frombuffer(block, np.uint8), first_entry_id=first, lengths=lengths
        )
        wanted = None
        with suppress(FormatError):
            asked = entries_of_block(block, ledger_id=7, first_entry_id=first, count=count)
            wanted = (asked.ends - asked.starts).tolist()
        assert (lengths.tolist() if whole == count else None) == wanted, (whole, wanted)


def _same_fields(library: Fields, python: Fields, sound: Any) -> None:
    assert library.odd.tolist() == python.odd.tolist()
    for ours, theirs in ((library.numbers, python.numbers), (library.slices, python.slices)):
        for key, one in ours.items():
            for name in one.__slots__:
                found, wanted = getattr(one, name)[sound], getattr(theirs[key], name)[sound]
                assert found.tolist() == wanted.tolist(), (key, name)
    assert _each_of(library, sound) == _each_of(python, sound)


def _each_of(fields: Fields, sound: Any) -> list[tuple[int, ...]]:
    columns = (part.tolist() for part in fields.each())
    return [row for row in zip(*columns, strict=True) if sound[row[0]]]


def _told(found: Singles) -> list[object]:
    """All that is known of messages, batch by batch."""
    rows: list[object] = []
    each: dict[int, list[tuple[int, int]]] = {}
    for row, *place in zip(*(part.tolist() for part in found.fields.each()), strict=True):
        each.setdefault(row, []).append((place[0], place[1]))
    for at in found.places.tolist():
        if at < 0:
            rows.append(None)
            continue
        numbers = [(one.values[at], one.present[at]) for one in found.fields.numbers.values()]
        slices = [
            (one.starts[at], one.lengths[at], one.present[at])
            for one in found.fields.slices.values()
        ]
        payload = (found.payloads.starts[at], found.payloads.lengths[at])
        rows.append((sorted(map(str, numbers)), sorted(map(str, slices)), payload, each.get(at)))
    return rows


def _message(source: random.Random, *, but: tuple[int, ...] = ()) -> bytes:
    """Fields one after the other, mostly sound."""
    body = bytearray()
    for _ in range(source.choice((0, 1, 3, 8))):
        key = source.choice(ODD_KEYS if source.random() < 0.02 else KEYS)
        if key in but:
            continue
        body += varint(key)
        if key & 7 == 2:
            size = source.choice((0, 1, 5, 130))
            body += varint(size) + source.randbytes(size)
        else:
            body += varint(source.choice(VALUES))
    match source.randrange(20):
        case 0 if body:
            del body[-source.randint(1, min(len(body), 3)) :]
        case 1 if body:
            body[source.randrange(len(body))] ^= 1 << source.randrange(8)
        case 2:
            body += b"\x08" + b"\x80" * source.choice((8, 9, 10, 11)) + b"\1"
        case 3:
            body += varint(18) + varint(source.choice((1, 2, 200, 2**31, 2**63, 2**64 - 1)))
        case 4:
            body += source.choice((b"\x08", b"\x12", b"\x80"))
        case _:
            pass
    return bytes(body)


def _batch(source: random.Random) -> tuple[bytes, int]:
    """A batch, and how many messages it is said to have."""
    body, count = bytearray(), source.choice((1, 1, 2, 5, 30))
    for _ in range(count):
        size = source.choice((0, 1, 40))
        head = _message(source, but=(PAYLOAD_BYTES,)) if source.random() < 0.3 else b""
        said = size if source.random() < 0.98 else source.choice(VALUES)
        head += varint(PAYLOAD_BYTES) + varint(said) if size or source.random() < 0.5 else b""
        length = len(head) if source.random() < 0.99 else source.choice((0, 2**31, len(head) + 1))
        body += pack(">I", length) + head + source.randbytes(size)
    if source.random() < 0.1:
        del body[-source.randint(1, 5) :]
    return bytes(body), count + source.choice((0, 0, 0, 0, 1))
