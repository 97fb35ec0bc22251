"""The archived schemas of a topic, as payloads are read by them.

Owns: they come from the bucket alone, and once for all that is read. A record that cannot be read
is told, and its version counts as not archived.
"""

from __future__ import annotations

from base64 import b64decode

from tiering_assets.cold.values.payload_schema import PayloadSchema
from tiering_assets.ground.record_book import narrate_unreadable
from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.asked import parse_topic
from tiering_assets.lineage.messages.options import ColdOptions
from tiering_assets.look.topic.archived_schemas import archived_schemas
from tiering_assets.records.broker_models import TopicSchema


def with_schemas(stack: Stack, asked: ColdOptions) -> ColdOptions:
    """What is asked, with the schemas that it needs."""
    if not asked.messages.with_values:
        return asked
    name = parse_topic(asked.topic).managed_ledger_name
    found = archived_schemas(stack.book, name, narrate_unreadable(stack))
    return asked.with_schemas([payload_schema(one.record) for one in found])


def payload_schema(record: TopicSchema) -> PayloadSchema:
    """A record as payloads are read by it."""
    return PayloadSchema(
        version=record.version,
        type=record.type,
        definition=b64decode(record.definition),
        properties=record.properties,
        incarnation=record.incarnation,
        ledger_id=int(record.position.partition(":")[0]),
        registered_at_ms=record.registered_at_ms,
    )
