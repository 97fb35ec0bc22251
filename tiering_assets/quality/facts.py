"""What an index object is judged by: its raw bytes, and facts learned elsewhere.

Owns the input of the expectation suites. Nothing here comes from our own encoder: sizes are from
HEAD, headers are read back from the data object, lengths are from both metadata trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """One ledger. `headers` maps a part number to the first bytes found at its block's offset.

    `ledger_length` is BookKeeper's, which may count more than the `payload_bytes` of its entries.
    `topic_entries`/`topic_bytes` are the managed ledger's counts; None where it has none.
    """

    ledger_id: int
    index: bytes
    index_size: int
    data_size: int
    headers: Mapping[int, bytes]
    last_entry_id: int
    ledger_length: int
    payload_bytes: int
    topic_entries: int | None = None
    topic_bytes: int | None = None
