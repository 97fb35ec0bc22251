"""What BookKeeper's metadata says about one ledger, as plain values.

Owns the vocabulary that the wire, placement and metadata modules share. The bytes are decoded in
ledger_metadata.py; nothing here reads or writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class DigestType(Enum):
    """Values are those of LedgerMetadataFormat.DigestType; HMAC is called MAC in the Java API."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


class BookKeeperState(Enum):
    """Values are those of LedgerMetadataFormat.State."""

    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


@dataclass(frozen=True, slots=True)
class EnsembleFragment:
    """A run of entries with one ensemble; it ends where the next one begins."""

    first_entry_id: int
    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMetadata:
    """One ledger as its metadata node has it. `length` is payload bytes; -1 is "no entry yet"."""

    ledger_id: int
    state: BookKeeperState
    last_entry_id: int
    length: int
    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    segments: tuple[EnsembleFragment, ...]
    digest_type: DigestType = DigestType.CRC32
    password: bytes | None = field(default=None, repr=False)
    ctime_ms: int | None = None
    custom: Mapping[str, bytes] = field(default_factory=dict)
    format_version: int = 3

    @property
    def entries(self) -> int:
        """Number of entries of a closed ledger; ids run from 0 to `last_entry_id`."""
        return self.last_entry_id + 1
