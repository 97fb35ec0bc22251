"""The functions of core.c over Python's buffers: plain values in, plain values out.

Owns: a function gives None, or stops before the end, wherever something is not plainly good. Then
the caller asks the Python reference over the same bytes; nothing is refused by a word from here.
Calls let other threads run. A buffer that Python may not write is not taken: views of received
bytes and of our own blocks are.
"""

from __future__ import annotations

import ctypes
from typing import Final, NamedTuple

ABI: Final = 2  # core.c's

_BYTES, _COUNT, _OUT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
_FUNCTIONS: Final = {
    "core_begin": (ctypes.c_int32, ()),
    "core_crc32c": (ctypes.c_uint32, (_BYTES, _COUNT, ctypes.c_uint32)),
    "core_find": (_COUNT, (_BYTES, _COUNT, _COUNT, _OUT)),
    "core_verify": (_COUNT, (_BYTES, _COUNT, _COUNT, _COUNT, _COUNT, _OUT)),
    "core_frame": (_COUNT, (_BYTES, _COUNT, _COUNT, _COUNT, _OUT, _COUNT)),
    "core_walk": (_COUNT, (_BYTES, _COUNT, _COUNT, _COUNT, _OUT)),
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

    def walk(self, block: memoryview, *, first_entry_id: int, count: int) -> Walked | None:
        """Look at a whole block; None unless each byte is as it must be."""
        if not _is_taken(block):
            return None
        facts = (ctypes.c_int64 * 3)()
        payload_bytes: int = self._library.core_walk(
            _address(block), len(block), first_entry_id, count, facts
        )
        if payload_bytes < 0:
            return None
        messages, earliest, latest = facts
        if messages < 0:
            return Walked(payload_bytes, None, None, None)
        if earliest > latest:
            return Walked(payload_bytes, messages, None, None)
        return Walked(payload_bytes, messages, earliest, latest)


def _is_taken(view: memoryview) -> bool:
    return not view.readonly and len(view) > 0


def _address(view: memoryview) -> ctypes.c_char:
    """The first byte by reference; it keeps the buffer as long as the call lasts."""
    return ctypes.byref(ctypes.c_char.from_buffer(view))  # type: ignore[return-value]
