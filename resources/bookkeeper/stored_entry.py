"""Stored entries: what a bookie keeps for one entry, and the check that it is the one asked for.

Owns: a stored entry is 32 header bytes, the digest, the payload, and is accepted only with the
ledger id and entry id asked for and a digest that matches (BookKeeper
`DigestManager.verifyDigestAndReturnData`). The cumulative length counts payload bytes of entries 0
to this one. No setting switches the check off; only a DUMMY ledger has none.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from tiering_assets.resources.bookkeeper.digest import DIGEST_BYTES, Buffer, digest_function
from tiering_assets.resources.bookkeeper.ledger import DigestType, LedgerMetadata
from tiering_assets.resources.errors import FormatError, IntegrityError

HEADER = Struct(">qqqq")  # ledger, entry, last add confirmed, cumulative length
_HINTS = {
    DigestType.HMAC: "; is bookies.password this ledger's? Without it every entry looks wrong"
}


class StoredEntry(NamedTuple):
    """One verified entry. `cumulative_length` is the payload bytes of entries 0 to this one."""

    entry_id: int
    last_add_confirmed: int
    cumulative_length: int
    payload: memoryview


class EntryCodec:
    """Encodes and verifies the entries of one ledger."""

    __slots__ = ("_digest", "digest_bytes", "digest_type", "ledger_id", "overhead_bytes")

    def __init__(self, *, ledger_id: int, digest_type: DigestType, password: bytes) -> None:
        self.ledger_id = ledger_id
        self.digest_type = digest_type
        self.digest_bytes = DIGEST_BYTES[digest_type]
        self.overhead_bytes = HEADER.size + self.digest_bytes
        self._digest = digest_function(digest_type, password)

    def encode(
        self, *, entry_id: int, last_add_confirmed: int, cumulative_length: int, payload: bytes
    ) -> bytes:
        """Return the stored entry; `cumulative_length` includes this payload."""
        header = HEADER.pack(self.ledger_id, entry_id, last_add_confirmed, cumulative_length)
        return header + self._digest(header, payload) + payload

    def decode_last(self, stored: Buffer) -> StoredEntry:
        """Verify the last entry that a bookie has, whichever that is; errors as in `decode`.

        An entry confirms those before it alone: one that says more of itself is none.
        """
        view = memoryview(stored)
        claimed = HEADER.unpack_from(view)[1] if len(view) >= HEADER.size else -1
        entry = self.decode(view, entry_id=claimed)
        if not -1 <= entry.last_add_confirmed < max(entry.entry_id, 0):
            raise IntegrityError(
                f"ledger {self.ledger_id} entry {entry.entry_id} says that "
                f"{entry.last_add_confirmed} is confirmed; expected one before it"
            )
        return entry

    def decode(self, stored: Buffer, *, entry_id: int) -> StoredEntry:
        """Verify one stored entry; the payload is a view of `stored`.

        Raises:
            FormatError: shorter than header and digest.
            IntegrityError: another ledger or entry than asked for, or the digest differs.
        """
        view = memoryview(stored)
        if len(view) < self.overhead_bytes:
            raise FormatError(
                f"stored entry {entry_id} of ledger {self.ledger_id} needs "
                f"{self.overhead_bytes} bytes, got {len(view)}"
            )
        ledger_found, entry_found, last_add_confirmed, cumulative = HEADER.unpack_from(view)
        if (ledger_found, entry_found) != (self.ledger_id, entry_id):
            raise IntegrityError(
                f"asked for ledger {self.ledger_id} entry {entry_id}, "
                f"got ledger {ledger_found} entry {entry_found}"
            )
        payload = view[self.overhead_bytes :]
        expected = self._digest(view[: HEADER.size], payload)
        found = view[HEADER.size : self.overhead_bytes]
        if expected != found:
            raise IntegrityError(
                f"{self.digest_type.name} digest of ledger {self.ledger_id} entry {entry_id}: "
                f"stored {found.hex()}, computed {expected.hex()}{_HINTS.get(self.digest_type, '')}"
            )
        return StoredEntry(entry_id, last_add_confirmed, cumulative, payload)


def codec_for(metadata: LedgerMetadata, *, fallback_password: bytes = b"") -> EntryCodec:
    """Return the codec of a ledger; metadata of old ledgers has no password of its own."""
    password = fallback_password if metadata.password is None else metadata.password
    return EntryCodec(
        ledger_id=metadata.ledger_id, digest_type=metadata.digest_type, password=password
    )
