"""Digests of a block's entries, and of objects. Source and read-back must agree on the first.

Owns the two kinds that certificates name. `frames`: SHA-256 over the block's header and its
frames, the block without its padding, so that one pass gives it and the digest of the whole block.
`entries`, of certificates before version 2: SHA-256 over (entry id int64, payload length int32,
both big-endian, payload) of each entry. Either is fed from the entries that the bookies served, not
from what the encoder made of them; or from frames whose payloads their stored digests checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from struct import Struct
from typing import Final, Literal

from tiering_assets.offload_format.block import FRAME

DigestKind = Literal["entries", "frames"]


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

    @staticmethod
    def _head(entry_id: int, length: int) -> bytes:
        """What is digested before a payload."""
        return _ENTRY.pack(entry_id, length)

    def update(self, entry_id: int, payload: bytes | bytearray | memoryview) -> None:
        length = len(payload)
        self._sha256.update(self._head(entry_id, length))
        self._sha256.update(payload)
        self.entries += 1
        self.payload_bytes += length

    def update_many(
        self, first_entry_id: int, payloads: Iterable[bytes | bytearray | memoryview]
    ) -> None:
        """Add consecutive entries that begin with `first_entry_id`."""
        add, head = self._sha256.update, self._head  # looked up once: it is Python's hot loop
        entry_id, payload_bytes = first_entry_id, 0
        for payload in payloads:
            length = len(payload)
            add(head(entry_id, length))
            add(payload)
            entry_id += 1
            payload_bytes += length
        self.entries += entry_id - first_entry_id
        self.payload_bytes += payload_bytes

    def hexdigest(self) -> str:
        """Digest of what was added so far: 64 lower-case hex digits."""
        return self._sha256.hexdigest()


class FramesDigest(EntriesDigest):
    """The same over header and frames; frames may be added as they lie in the block."""

    __slots__ = ()

    def __init__(self, header: bytes) -> None:
        super().__init__()
        self._sha256.update(header)

    @staticmethod
    def _head(entry_id: int, length: int) -> bytes:
        return FRAME.pack(length, entry_id)

    def update_frames(self, frames: memoryview, *, entries: int, payload_bytes: int) -> None:
        """Add frames whose payloads are known to be those that were served."""
        self._sha256.update(frames)
        self.entries += entries
        self.payload_bytes += payload_bytes

    def with_padding(self, padding: memoryview) -> bytes:
        """SHA-256 of the whole block, which ends with this padding; 32 bytes."""
        whole = self._sha256.copy()
        whole.update(padding)
        return whole.digest()


def digest_of(kind: DigestKind, header: bytes) -> EntriesDigest:
    """An empty digest of that kind for a block, which begins with this header."""
    return FramesDigest(header) if kind == "frames" else EntriesDigest()


def object_digest(blocks: Iterable[str]) -> str:
    """Digest of a data object: SHA-256 over its blocks' SHA-256 digests (hex) in part order."""
    whole = sha256()
    for block in blocks:
        whole.update(bytes.fromhex(block))
    return whole.hexdigest()


def is_sha256(text: str) -> bool:
    """Whether a text is a SHA-256 as records have it: 64 lower-case hex digits."""
    return len(text) == _SHA256_DIGITS and _HEX.issuperset(text)
