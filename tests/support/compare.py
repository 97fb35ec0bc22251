"""The first difference between two byte strings, or between two streams of entries.

Owns: an answer of None means equal in every byte, count included. What differs is named closely
enough to be looked up with a hex viewer: offset, and 16 bytes either side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

_CONTEXT_BYTES: Final = 16
_STEP_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteDifference:
    """`expected` and `found` are what stands from 16 bytes before `offset` to 16 bytes after it."""

    offset: int
    expected: bytes
    found: bytes
    expected_length: int
    found_length: int

    def __str__(self) -> str:
        start = max(0, self.offset - _CONTEXT_BYTES)
        return (
            f"differ at byte {self.offset} (lengths {self.expected_length} and {self.found_length});"
            f" from byte {start}: expected {self.expected.hex(' ')}, found {self.found.hex(' ')}"
        )


@dataclass(frozen=True, slots=True)
class EntryDifference:
    """The first entry that is not the same on both sides, and how."""

    entry_id: int
    what: Literal["missing", "unexpected", "entry id", "payload"]
    detail: str

    def __str__(self) -> str:
        return f"entry {self.entry_id}: {self.what}: {self.detail}"


def first_byte_difference(
    expected: bytes | bytearray | memoryview, found: bytes | bytearray | memoryview
) -> ByteDifference | None:
    """Where two byte strings first differ; the end of the shorter one counts as a difference."""
    left, right = memoryview(expected), memoryview(found)
    shorter = min(len(left), len(right))
    for start in range(0, shorter, _STEP_BYTES):
        end = min(start + _STEP_BYTES, shorter)
        if bytes(left[start:end]) != bytes(right[start:end]):  # much faster than comparing views
            offset = next(i for i in range(start, end) if left[i] != right[i])
            break
    else:
        if len(left) == len(right):
            return None
        offset = shorter
    around = slice(max(0, offset - _CONTEXT_BYTES), offset + _CONTEXT_BYTES)
    return ByteDifference(
        offset=offset,
        expected=bytes(left[around]),
        found=bytes(right[around]),
        expected_length=len(left),
        found_length=len(right),
    )


def first_entry_difference(
    expected: Iterable[tuple[int, bytes | bytearray | memoryview]],
    found: Iterable[tuple[int, bytes | bytearray | memoryview]],
) -> EntryDifference | None:
    """The first difference between two streams of (entry id, payload), each taken one at a time."""
    found_entries = iter(found)
    for entry_id, payload in expected:
        pair = next(found_entries, None)
        if pair is None:
            return EntryDifference(entry_id, "missing", f"expected {len(payload)} bytes")
        if pair[0] != entry_id:
            return EntryDifference(entry_id, "entry id", f"expected {entry_id}, found {pair[0]}")
        difference = first_byte_difference(payload, pair[1])
        if difference is not None:
            return EntryDifference(entry_id, "payload", str(difference))
    extra = next(found_entries, None)
    if extra is not None:
        return EntryDifference(extra[0], "unexpected", f"found {len(extra[1])} bytes")
    return None
