"""The columns of the catalogue's tables, with what people need to know of each.

Owns: names and types; docs/catalogue.md explains them. Times are UTC, digests are hex text, which
people can read and join.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_ID: Final[pa.DataType] = pa.int64()
_COUNT: Final[pa.DataType] = pa.int64()
_TEXT: Final[pa.DataType] = pa.string()
_AT: Final[pa.DataType] = pa.timestamp("us", "UTC")

BLOCKS: Final = pa.schema(
    [
        ("topic", _TEXT),  # managed-ledger name
        ("ledger_id", _ID),
        ("part", _COUNT),
        ("first_entry_id", _ID),
        ("last_entry_id", _ID),
        ("publish_min", _AT),  # null where the entries are not Pulsar's
        ("publish_max", _AT),
        ("messages", _COUNT),
        ("bucket", _TEXT),
        ("data_key", _TEXT),
        ("version_id", _TEXT),
        ("offset", _COUNT),
        ("length", _COUNT),
        ("payload_bytes", _COUNT),
        ("sha256", _TEXT),
        ("uid", _TEXT),
        ("certificate_sha256", _TEXT),
        ("run_id", _TEXT),
        ("written_by", _TEXT),
        ("page", _COUNT),
    ]
)
EVENTS: Final = pa.schema(
    [
        ("page", _COUNT),
        ("at", _AT),  # when the page was written, by its writer's clock
        ("what", _TEXT),  # written, gone, damaged, missing, page_damaged
        ("kind", _TEXT),  # folder of the key
        ("ledger_id", _ID),
        ("uid", _TEXT),
        ("run_id", _TEXT),
        ("command", _TEXT),
        ("key", _TEXT),
        ("sha256", _TEXT),
        ("why", _TEXT),
    ]
)
LEDGER_CHANGES: Final = pa.schema(
    [
        ("ledger_id", _ID),
        ("topic", _TEXT),
        ("tenant", _TEXT),
        ("namespace", _TEXT),
        ("partition", _COUNT),
        ("state", _TEXT),
        ("entries", _COUNT),
        ("bytes", _COUNT),
        ("object_bytes", _COUNT),
        ("closed_at", _AT),  # by the clock of the broker that closed it
        ("listed_as", _TEXT),  # by its topic when it was last read: seen_ledger.ListedAs
        ("context_uid", _TEXT),
        ("ml_version", _COUNT),
        ("seen_at", _AT),
        ("uid", _TEXT),
        ("offloaded_by", _TEXT),
        ("bookie_copy", _TEXT),  # live, marked, deleted, unknown
        ("attempts", _COUNT),
        ("attempted_at", _AT),
        ("certified_at", _AT),
        ("certificate_sha256", _TEXT),
        ("published_at", _AT),
        ("withdrawn_at", _AT),
        ("intended_at", _AT),
        ("released_at", _AT),
        ("verified_at", _AT),
        ("verified_depth", _TEXT),
        ("quarantined_at", _AT),
        ("damaged_at", _AT),
        ("removed_at", _AT),
        ("held", _TEXT),
        ("others", _TEXT),  # JSON: the same facts of the ledger's other attempts
        ("page", _COUNT),
        ("turn", _COUNT),  # commit of the table that brought it: the row of the last one counts
        # What was added since tables were first made stands at the end, as in these.
        ("deep_at", _AT),  # by the store's clock: shallow looks overwrite verified_at
    ]
)
TOPIC_CHANGES: Final = pa.schema(
    [
        ("topic", _TEXT),
        ("tenant", _TEXT),
        ("namespace", _TEXT),
        ("partition", _COUNT),
        ("czxid", _COUNT),  # of the node, null where there is none any more
        ("mzxid", _COUNT),
        ("ml_version", _COUNT),
        ("written_at", _AT),  # by the clock of the metadata store
        ("ledgers", _COUNT),
        ("on_bookies", _COUNT),  # closed ones without a copy that brokers read
        ("on_bookies_bytes", _COUNT),
        ("offloaded", _COUNT),
        ("terminated", pa.bool_()),
        ("left_alone", _TEXT),  # why tierkeeper never touches it
        ("why", _TEXT),  # what its node says cannot be read
        ("seen_at", _AT),
        ("turn", _COUNT),
    ]
)
POSTED: Final = ("blocks", "events", "ledger_changes")
"""Tables that pages are posted to, in the order in which that is done."""
TABLES: Final = {
    "blocks": BLOCKS,
    "events": EVENTS,
    "ledger_changes": LEDGER_CHANGES,
    "topic_changes": TOPIC_CHANGES,
}


def without_turn(schema: pa.Schema) -> pa.Schema:
    """Of rows before it is known which commit brings them."""
    return schema.remove(schema.get_field_index("turn"))
