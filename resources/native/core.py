"""The functions of core.c over Python's buffers: plain values in, plain values out.

Owns: a function gives None, or stops before the end, wherever something is not plainly good. Then
the caller asks the Python reference over the same bytes; nothing is refused by a word from here.
Calls let other threads run. A view that Python may not write is not taken: views of received
bytes and of our own blocks are. Arrays lie in one piece, and hold what is said of them.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final, NamedTuple

ABI: Final = 4  # core.c's
KEYS: Final = 512
"""Slots of keys: those of fields below 64."""

_BYTES, _COUNT, _OUT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
_FUNCTIONS: Final = {
    "core_begin": (ctypes.c_int32, ()),
    "core_crc32c": (ctypes.c_uint32, (_BYTES, _COUNT, ctypes.c_uint32)),
    "core_find": (_COUNT, (_BYTES, _COUNT, _COUNT, _OUT)),
    "core_verify": (_COUNT, (_BYTES, _COUNT, _COUNT, _COUNT, _COUNT, _OUT)),
    "core_frame": (_COUNT, (_BYTES, _COUNT, _COUNT, _COUNT, _OUT, _COUNT)),
    "core_walk": (_COUNT, (_BYTES, _COUNT, _COUNT, _COUNT, _COUNT, _OUT)),
    "core_frames": (_COUNT, (_BYTES, _COUNT, _COUNT, _COUNT, _OUT)),
    "core_fields": (_COUNT, (_BYTES, _COUNT, _COUNT, *(_BYTES,) * 3, _OUT, _OUT)),
    "core_singles": (_COUNT, (_BYTES, _COUNT, _COUNT, *(_BYTES,) * 3, *(_OUT,) * 4)),
}


class Verified(NamedTuple):
    """The good records in front: how many, where the last ends, their payload bytes."""

    good: int
    end: int
    payload_bytes: int


class Walked(NamedTuple):
    """A whole block: payload bytes, and what its entries say of the messages in them.

    These are as offload_format/message_facts.py has them, None included.
    """

    payload_bytes: int
    messages: int | None
    publish_min_ms: int | None
    publish_max_ms: int | None


class FieldArrays(NamedTuple):
    """Arrays of numpy that fields of messages are written to, a row for each message.

    `slots` has KEYS int8: by the key of a field the slot of its values, or below 0. Slots of int64
    in `values`, and of bool in `present`, are first those of `numbers` numbers, then those of
    bytes, which begin there. `lengths` has the second ones alone.
    """

    numbers: int
    slots: Any
    values: Any
    lengths: Any
    present: Any


class _Fields(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rows", "numbers", "repeated", "room", "found")),
        *((name, ctypes.c_void_p) for name in ("slots", "values", "lengths", "present", "each")),
    )


class Core:
    """A loaded library. Shared by all threads of a process."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Take a library that nothing was called in.

        Raises:
            AttributeError: it lacks a function.
            OSError: it is of another version, or this processor lacks an instruction.
        """
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        if (found := library.core_begin()) != ABI:
            raise OSError(
                "this processor has no instruction for CRC32C"
                if found == 0
                else f"the library has version {found} of its functions, expected {ABI}"
            )
        self._library = library

    def crc32c(self, data: memoryview, before: int = 0) -> int:
        """CRC32C of some bytes, at least one, after others that had `before`."""
        value: int = self._library.core_crc32c(_address(data), len(data), before)
        return value

    def find(self, records: memoryview, *, count_max: int) -> tuple[int, int] | None:
        """How many whole records there are, and where the last of them ends."""
        if not _is_taken(records):
            return None
        end = ctypes.c_int64()
        count = self._library.core_find(
            _address(records), len(records), count_max, ctypes.byref(end)
        )
        return None if count < 0 else (count, end.value)

    def verify(
        self, records: memoryview, *, count: int, ledger_id: int, first_entry_id: int
    ) -> Verified:
        """Look at records of a CRC32C ledger, one after the other up to the first bad one."""
        facts = (ctypes.c_int64 * 2)()
        good = self._library.core_verify(
            _address(records), len(records), count, ledger_id, first_entry_id, facts
        )
        return Verified(good, facts[0], facts[1])

    def frame(
        self, records: memoryview, *, count: int, first_entry_id: int, out: memoryview
    ) -> int | None:
        """Write good records as frames; how many bytes. None: they do not fit, or are not good.

        Each payload is digested where it was written, against its stored digest.
        """
        if not (_is_taken(records) and _is_taken(out)):
            return None
        written: int = self._library.core_frame(
            _address(records), len(records), count, first_entry_id, _address(out), len(out)
        )
        return None if written < 0 else written

    def walk(
        self, block: memoryview, *, first_entry_id: int, count: int, ledger_id: int | None = None
    ) -> Walked | None:
        """Look at a whole block; None unless each byte is as it must be.

        With `ledger_id` it is one of a streaming segment, which has that in its header.
        """
        if not _is_taken(block):
            return None
        facts = (ctypes.c_int64 * 3)()
        payload_bytes: int = self._library.core_walk(
            _address(block),
            len(block),
            first_entry_id,
            count,
            -1 if ledger_id is None else ledger_id,
            facts,
        )
        if payload_bytes < 0:
            return None
        messages, earliest, latest = facts
        if messages < 0:
            return Walked(payload_bytes, None, None, None)
        if earliest > latest:
            return Walked(payload_bytes, messages, None, None)
        return Walked(payload_bytes, messages, earliest, latest)

    def frames(self, block: Any, *, first_entry_id: int, lengths: Any) -> int:
        """Lengths of the payloads of a block's entries, up to the first frame that is none.

        `block` is an array of bytes, `lengths` has int64 for as many entries as are asked for.
        Returns how many were found.
        """
        found: int = self._library.core_frames(
            _of(block), len(block), first_entry_id, len(lengths), _of(lengths)
        )
        return found

    def fields(
        self,
        data: Any,
        *,
        rows: Any,
        starts: Any,
        ends: Any,
        into: FieldArrays,
        repeated: int,
        each: Any,
        odd: Any,
    ) -> int:
        """Read fields of messages, each at its place in `data`, and mark rows that are `odd`.

        Fields of the key `repeated`, 0 for none, are written to the columns of `each`: row, start,
        length. Returns how many there are, which may be more than it has room for.

        Raises:
            ValueError: a place is outside of `data`, or a row of the arrays.
        """
        fields = _fields(into, repeated, each)
        some = (_of(one) for one in (rows, starts, ends))
        found: int = self._library.core_fields(
            _of(data), len(data), len(rows), *some, ctypes.byref(fields), _of(odd)
        )
        if found < 0:
            raise ValueError("fields are asked for outside of their bytes or rows")
        return found

    def singles(
        self,
        data: Any,
        *,
        starts: Any,
        ends: Any,
        counts: Any,
        into: FieldArrays,
        repeated: int,
        each: Any,
        payload_starts: Any,
        payload_lengths: Any,
        odd: Any,
    ) -> int:
        """Read messages of batches, so many of each, one row behind the other, as `fields` does.

        Batches in which anything is unusual are `odd`; nothing of them means anything.

        Raises:
            ValueError: a batch is outside of `data`, or has more messages than there are rows.
        """
        fields = _fields(into, repeated, each)
        some = (_of(one) for one in (starts, ends, counts))
        out = (_of(one) for one in (payload_starts, payload_lengths, odd))
        found: int = self._library.core_singles(
            _of(data), len(data), len(starts), *some, ctypes.byref(fields), *out
        )
        if found < 0:
            raise ValueError("messages are asked for outside of their bytes or rows")
        return found


def _fields(into: FieldArrays, repeated: int, each: Any) -> _Fields:
    rows, room = into.values.shape[1], each.shape[1]
    arrays = (into.slots, into.values, into.lengths, into.present, each)
    return _Fields(rows, into.numbers, repeated, room, 0, *(_of(one) for one in arrays))


def _of(array: Any) -> int:
    """Where an array begins; who calls keeps it as long as the call lasts."""
    address: int = array.ctypes.data
    return address


def _is_taken(view: memoryview) -> bool:
    return not view.readonly and len(view) > 0


def _address(view: memoryview) -> ctypes.c_char:
    """The first byte by reference; it keeps the buffer as long as the call lasts."""
    return ctypes.byref(ctypes.c_char.from_buffer(view))  # type: ignore[return-value]
