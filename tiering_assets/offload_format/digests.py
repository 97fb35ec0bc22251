"""Digests of entries and objects. That of entries is what source and read-back must agree on.

Owns: SHA-256 over (entry id int64, payload length int32, both big-endian, payload) of each entry in
order. It does not depend on the block format, so equal digests mean equal entries however they were
stored, and neither encoder nor decoder computes it for itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from struct import Struct
from typing import Final

_ENTRY: Final = Struct(">qi")  # entry id, payload length
_HEX: Final = frozenset("0123456789abcdef")
_SHA256_DIGITS: Final = 64


class EntriesDigest:
    """Feed it the entries of a block, in order."""

    __slots__ = ("_sha256", "entries", "payload_bytes")

    def __init__(self) -> None:
        self._sha256 = sha256()
        self.entries = 0
        self.payload_bytes = 0

    def update(self, entry_id: int, payload: bytes | bytearray | memoryview) -> None:
        length = len(payload)
        self._sha256.update(_ENTRY.pack(entry_id, length))
        self._sha256.update(payload)
        self.entries += 1
        self.payload_bytes += length

    def update_many(
        self, first_entry_id: int, payloads: Iterable[bytes | bytearray | memoryview]
    ) -> None:
        """Add consecutive entries that begin with `first_entry_id`."""
        update, pack = self._sha256.update, _ENTRY.pack
        entry_id, payload_bytes = first_entry_id, 0
        for payload in payloads:
            length = len(payload)
            update(pack(entry_id, length))
            update(payload)
            entry_id += 1
            payload_bytes += length
        self.entries += entry_id - first_entry_id
        self.payload_bytes += payload_bytes

    def hexdigest(self) -> str:
        """Digest of the entries so far: 64 lower-case hex digits."""
        return self._sha256.hexdigest()


def object_digest(blocks: Iterable[str]) -> str:
    """Digest of a data object: SHA-256 over its blocks' SHA-256 digests (hex) in part order."""
    whole = sha256()
    for block in blocks:
        whole.update(bytes.fromhex(block))
    return whole.hexdigest()


def is_sha256(text: str) -> bool:
    """Whether a text is a SHA-256 as records have it: 64 lower-case hex digits."""
    return len(text) == _SHA256_DIGITS and _HEX.issuperset(text)
