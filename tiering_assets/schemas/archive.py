"""Archive a topic's schemas as records, so that the bucket alone explains its payloads.

The order is the contract: the node of its schemas, the records that are there, the missing versions
from a broker that has the topic loaded and the node again, the rest from the entries that the node
names, then a record each, only if there is none. Nothing is loaded, fenced, replaced or taken away,
and nothing else waits for it. Other versions are archived though one cannot be.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import source_of
from tiering_assets.look.topic.archived_schemas import archived_schemas
from tiering_assets.look.topic.brokers_seen import locate
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.broker_models import TopicSchema
from tiering_assets.resources.errors import (
    BrokerError,
    FormatError,
    IntegrityError,
    LedgerNotFoundError,
    ObjectStoreError,
    TierkeeperError,
)
from tiering_assets.resources.metastore.store import Node
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name
from tiering_assets.resources.pulsar.admin import TopicLoad
from tiering_assets.resources.pulsar.schema_storage import (
    LEDGER_PASSWORD,
    SchemaPlace,
    StoredSchema,
    decode_locator,
    decode_schema_entry,
    schemas_path,
)
from tiering_assets.schemas.archive_rules import (
    SchemaSight,
    decide_missing,
    is_as_stored,
    why_another,
)

ReadFrom = Literal["broker", "bookies"]
Found = tuple[StoredSchema, ReadFrom]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTopic:
    """What one look at a topic did. `versions` are those of its node, `written` the new ones.

    `failed` has the error of each version that is not archived for it.
    """

    ml_name: str
    versions: int
    written: tuple[TopicSchema, ...] = ()
    failed: tuple[tuple[int, TierkeeperError], ...] = ()


def archive_schemas(stack: Stack, ml_name: str, partitions: Sequence[str]) -> ArchivedTopic:
    """Archive what is missing of a whole topic. `partitions` are managed ledgers that share it.

    Raises:
        MetadataError: the node cannot be asked for.
        FormatError: it says nothing that can be read.
        ObjectStoreError: the bucket cannot be asked, or does not take a record.
    """
    node = _node(stack, ml_name)
    if node is None:
        return ArchivedTopic(ml_name=ml_name, versions=0)
    sight = _sight(stack, ml_name, node)
    missing = decide_missing(sight)
    told = _told_by_broker(stack, ml_name, sight, partitions) if missing else {}
    written: list[TopicSchema] = []
    failed: list[tuple[int, TierkeeperError]] = []
    for place in missing:
        try:
            found = _find(stack, ml_name, place, told)
            record = _record(stack, ml_name, sight.incarnation, place, found)
            if _write(stack, record, found[0]):
                written.append(record)
        except ObjectStoreError:
            raise
        except TierkeeperError as error:
            failed.append((place.version, error))
        except ValueError as error:  # of a schema that is too large for a record
            failed.append((place.version, FormatError(str(error))))
    return ArchivedTopic(
        ml_name=ml_name, versions=len(sight.places), written=tuple(written), failed=tuple(failed)
    )


def _node(stack: Stack, ml_name: str) -> Node | None:
    return stack.metadata.get(schemas_path(parse_managed_ledger_name(ml_name)))


def _sight(stack: Stack, ml_name: str, node: Node) -> SchemaSight:
    try:
        places = decode_locator(node.data)
    except FormatError as error:
        raise FormatError(f"metadata node {node.path}: {error}") from error

    def tell(key: str, error: FormatError) -> None:
        stack.narrate(f"{key} stays as it is, though it cannot be read: {error}")

    incarnation = node.stat.czxid
    of_topic = (one.record for one in archived_schemas(stack.book, ml_name, tell))
    archived = {one.version: one for one in of_topic if one.incarnation == incarnation}
    return SchemaSight(incarnation=incarnation, places=places, archived=archived)


def _told_by_broker(
    stack: Stack, ml_name: str, sight: SchemaSight, partitions: Sequence[str]
) -> Mapping[int, StoredSchema]:
    """What a broker says that has one of them loaded. Nothing where none has, or none answers.

    Nor where the schemas were deleted meanwhile: then it may tell of those that came after.
    """
    for name in partitions:
        if parse_managed_ledger_name(name).cluster is not None:
            continue  # brokers' admin API knows no legacy names
        try:
            if locate(stack, name, stack.topics.read(name)).load is TopicLoad.LOADED:
                told = stack.broker.schemas(topic_of(name))
                again = _node(stack, ml_name)
                same = again is not None and again.stat.czxid == sight.incarnation
                return told if same else {}
        except (BrokerError, FormatError) as error:
            stack.tell(f"schemas of {name} are read from bookies: {error}", topic=name)
            break
    return {}


def _find(
    stack: Stack, ml_name: str, place: SchemaPlace, told: Mapping[int, StoredSchema]
) -> Found:
    schema = told.get(place.version)
    if schema is not None and is_as_stored(schema, place):
        return schema, "broker"
    return _read_entry(stack, ml_name, place), "bookies"


def _read_entry(stack: Stack, ml_name: str, place: SchemaPlace) -> StoredSchema:
    """The entry that the node names, without fencing: it was acknowledged before it was named.

    So the ledger's state is of no concern, and nothing behind that entry is asked for.
    """
    node = stack.ledgers.read(place.ledger_id)
    if node is None:
        raise LedgerNotFoundError(
            f"{topic_of(ml_name)}: schema version {place.version} lies in ledger "
            f"{place.ledger_id}, which BookKeeper does not have"
        )
    source = replace(source_of(stack, node), last_entry_id=place.entry_id)
    bookies = replace(stack.settings.bookies, password=LEDGER_PASSWORD)
    with stack.spending_for(ml_name), stack.open_points(bookies, source) as points:
        [payload] = points.payloads(place.entry_id, place.entry_id)
    try:
        return decode_schema_entry(payload)
    except FormatError as error:
        raise FormatError(f"ledger {place.ledger_id}, entry {place.entry_id}: {error}") from error


def _record(
    stack: Stack, ml_name: str, incarnation: int, place: SchemaPlace, found: Found
) -> TopicSchema:
    schema, read_from = found
    return TopicSchema(
        ml_name=ml_name,
        incarnation=incarnation,
        version=place.version,
        type=schema.type,
        definition=b64encode(schema.definition).decode(),
        sha256=sha256(schema.definition).hexdigest(),
        properties=dict(schema.properties),
        registered_at_ms=schema.registered_at_ms,
        position=place.position,
        read_from=read_from,
        archived_at=stack.now(),
        writer=stack.writer,
    )


def _write(stack: Stack, record: TopicSchema, schema: StoredSchema) -> bool:
    """Whether it is new. IntegrityError where there is another schema under its key."""
    key = keys.topic_schema(record.ml_name, record.incarnation, record.version)
    there, fresh = stack.book.create_or_read(key, record)
    another = why_another(there.record, schema)
    if another is not None:
        raise IntegrityError(
            f"{topic_of(record.ml_name)}: schema version {record.version}: {another}; record {key} "
            "stays as it is"
        )
    return fresh
