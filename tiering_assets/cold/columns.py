"""Columns of a message that lies in an object, and what each stands on. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import pyarrow as pa

from tiering_assets.resources.arrow_columns import chosen

_MOMENT: Final[Any] = pa.timestamp("ms", "UTC")
PROPERTIES: Final[Any] = pa.map_(pa.string(), pa.string())
COLUMNS: Final[pa.Schema] = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("entry_id", pa.int64()),
        ("batch_index", pa.int32()),  # -1 where the message is not of a batch
        ("batch_size", pa.int32()),
        ("publish_time", _MOMENT),
        ("event_time", _MOMENT),
        ("broker_time", _MOMENT),
        ("broker_index", pa.int64()),  # of the last message of its entry
        ("producer", pa.string()),
        ("sequence_id", pa.int64()),
        ("key", pa.string()),
        ("key_is_base64", pa.bool_()),
        ("ordering_key", pa.binary()),
        ("properties", PROPERTIES),
        ("schema_version", pa.binary()),
        ("replicated_from", pa.string()),
        ("marker", pa.int32()),
        ("txn_most", pa.int64()),
        ("txn_least", pa.int64()),
        ("encrypted", pa.bool_()),
        ("null_value", pa.bool_()),
        ("compacted_out", pa.bool_()),
        ("codec", pa.string()),
        ("uncompressed_bytes", pa.int64()),  # of the payload of the entry, as its producer says
        ("chunk", pa.int32()),  # which piece of a message this is, counted from 0
        ("chunks", pa.int32()),
        ("chunk_uuid", pa.string()),
        ("first_chunk_ledger_id", pa.int64()),  # where a message begins whose pieces are joined
        ("first_chunk_entry_id", pa.int64()),
        ("payload", pa.binary()),
        ("error", pa.string()),  # why the entry cannot be read; then the row has nothing else
    ]
)
OF_MESSAGE: Final = frozenset(
    [
        "batch_index",
        "event_time",
        "sequence_id",
        "key",
        "key_is_base64",
        "ordering_key",
        "properties",
        "null_value",
        "compacted_out",
        "payload",
    ]
)
"""What the messages of one entry have each. All else is of the entry."""


def schema_of(names: Collection[str], every: pa.Schema = COLUMNS) -> pa.Schema:
    """Columns by these names, in that order. ValueError for one that no message has."""
    return chosen(every, names, "no column of a message:")
