"""The schemas of a topic that the bucket keeps.

Owns: which records those are. Partitions share the schemas of their topic; a topic that was made
again has those of each incarnation. It asks the bucket alone.
"""

from __future__ import annotations

from collections.abc import Callable

from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.records.broker_models import TopicSchema
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name


def whole_topic(ml_name: str) -> str:
    """Managed-ledger name of the topic whose partition this is, else the name itself."""
    return parse_managed_ledger_name(ml_name).unpartitioned.managed_ledger_name


def archived_schemas(
    book: RecordBook, ml_name: str, tell: Callable[[str, FormatError], None]
) -> tuple[Stored[TopicSchema], ...]:
    """By incarnation and version; `tell` gets key and error of a record that cannot be read."""
    found = book.iter_readable(TopicSchema, keys.schemas_of(whole_topic(ml_name)), tell)
    return tuple(sorted(found, key=lambda one: (one.record.incarnation, one.record.version)))
