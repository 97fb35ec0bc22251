"""What the bookies of an open ledger's newest ensemble say is confirmed. Reads only.

Owns: nothing here fences or writes: a read of a ledger's last entry is a read like any other, with
flags 0. An entry is believed once its digest is checked, which covers the last add confirmed
that it carries. One answer is enough to be safe, more make it newer.

Grows with the bookies of one ensemble: a request for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tiering_assets.resources.bookkeeper.ledger import LedgerMetadata
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.stored_entry import codec_for
from tiering_assets.resources.bookkeeper.wire_v2 import LAST_ENTRY, ReadEntry
from tiering_assets.resources.errors import (
    BookieError,
    BookieNotAuthorizedError,
    FormatError,
    IntegrityError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TailLook:
    """By bookie, what is confirmed, and why others said nothing.

    `visible` is the highest entry that any of them has. It may be above what is confirmed, and is
    for people alone.
    """

    confirmed: Mapping[str, int]
    failures: Mapping[str, Exception]
    visible: int


def look_at_tail(metadata: LedgerMetadata, pool: BookiePool, *, password: bytes = b"") -> TailLook:
    """Ask each bookie of the newest ensemble for the last entry that it has.

    `password` is the ledger's where its metadata has none. A bookie that has nothing of the ledger
    yet is among the failures, as is one that gives a wrong digest.

    Raises:
        BookieNotAuthorizedError: at once; the next one would say the same.
    """
    codec = codec_for(metadata, fallback_password=password)
    request = ReadEntry(metadata.ledger_id, LAST_ENTRY)
    confirmed: dict[str, int] = {}
    failures: dict[str, Exception] = {}
    visible = -1
    for bookie_id in dict.fromkeys(metadata.segments[-1].bookies):
        try:
            entry = codec.decode_last(pool.connection(bookie_id).read(request))
        except BookieNotAuthorizedError:
            raise
        except (BookieError, FormatError, IntegrityError) as error:
            failures[bookie_id] = error
            continue
        confirmed[bookie_id] = entry.last_add_confirmed
        visible = max(visible, entry.entry_id)
    return TailLook(confirmed=confirmed, failures=failures, visible=visible)
