"""A topic's schemas as brokers keep them: a metadata node that points to entries of ledgers.

Owns: where the node of a topic is, and what its bytes and those of an entry say. Partitions share
the schemas of their topic, and a legacy name leaves out its cluster. A version that marks a
deletion is of type DELETED. Types keep the broker's names, a number it has no name for its number.
Source: Pulsar BookkeeperSchemaStorage, SchemaRegistryServiceImpl, SchemaType, 4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from tiering_assets.resources._proto import SchemaFormats_pb2 as schema_pb2
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import TopicName, encode_name
from tiering_assets.resources.proto_text import require_text

SCHEMAS_ROOT: Final = "/schemas"
LEDGER_PASSWORD: Final = ""  # BookkeeperSchemaStorage.LedgerPassword, of every schema's ledger
DELETED: Final = "DELETED"

_STORED_TYPES: Final = (  # SchemaRegistryFormat.SchemaType, from 1: SchemaType's value and 1
    *("NONE", "STRING", "JSON", "PROTOBUF", "AVRO", "BOOLEAN", "INT8", "INT16", "INT32", "INT64"),
    *("FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "KEY_VALUE", "INSTANT", "LOCAL_DATE"),
    *("LOCAL_TIME", "LOCAL_DATE_TIME", "PROTOBUF_NATIVE"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPlace:
    """Where the entry of one version lies. `hash` is SHA-256 of the definition, empty of none."""

    version: int
    ledger_id: int
    entry_id: int
    hash: bytes

    @property
    def position(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchema:
    """One version; `definition` is the bytes as they are stored."""

    type: str
    definition: bytes = field(repr=False)
    properties: Mapping[str, str]
    registered_at_ms: int


def schemas_path(topic: TopicName) -> str:
    """The node of a topic's schemas."""
    name = encode_name(topic.unpartitioned.local_name)
    return f"{SCHEMAS_ROOT}/{topic.tenant}/{topic.namespace}/{name}"


def decode_locator(data: bytes) -> tuple[SchemaPlace, ...]:
    """Every version that a topic's node names, in order. FormatError for anything else."""
    message = _parse(schema_pb2.SchemaLocator(), data)
    found: dict[int, SchemaPlace] = {}
    for one in (*message.index, message.info):
        place = SchemaPlace(
            version=one.version,
            ledger_id=one.position.ledgerId,
            entry_id=one.position.entryId,
            hash=one.hash,
        )
        if min(place.version, place.ledger_id, place.entry_id) < 0:
            raise FormatError(f"schema version {place.version} at {place.position}: below 0")
        if found.setdefault(place.version, place) != place:
            raise FormatError(
                f"schema version {place.version} at {found[place.version].position} and at "
                f"{place.position}"
            )
    return tuple(found[version] for version in sorted(found))


def decode_schema_entry(data: bytes) -> StoredSchema:
    """What an entry of a schema's ledger says. FormatError for anything else."""
    stored = _parse(schema_pb2.SchemaEntry(), data).schema_data
    if not stored:  # so older brokers marked a deletion
        return StoredSchema(type=DELETED, definition=b"", properties={}, registered_at_ms=0)
    info = _parse(schema_pb2.SchemaInfo(), stored)
    properties = {
        require_text("name of a schema's property", one.key): require_text(
            f"property {one.key} of a schema", one.value
        )
        for one in info.props
    }
    return StoredSchema(
        type=DELETED if info.deleted else _type_name(info.type),
        definition=info.schema,
        properties=properties,
        registered_at_ms=info.timestamp,
    )


def parse_schema_answer(body: Any) -> dict[int, StoredSchema]:
    """Versions of `GET …/schemas`; FormatError where it is none.

    A broker gives text: whether it is the bytes that are stored, their hash tells.
    """
    answers = body.get("getSchemaResponses") if isinstance(body, dict) else None
    if not isinstance(answers, list):
        raise FormatError(f"expected a list of schemas, found {body!r:.100}")
    found: dict[int, StoredSchema] = {}
    for one in answers:
        given = one.get("properties") if isinstance(one, dict) else ""
        properties: Any = {} if given is None else given  # of a schema without any
        said = isinstance(properties, dict) and (
            (one.get("version"), int),
            (one.get("timestamp"), int),
            (one.get("type"), str),
            (one.get("data"), str),
            *((value, str) for value in properties.values()),
        )
        if not said or not all(isinstance(value, kind) for value, kind in said):
            raise FormatError(f"expected a schema, found {one!r:.100}")
        found[one["version"]] = StoredSchema(
            type=one["type"],
            definition=one["data"].encode("utf-8", "surrogatepass"),
            properties=properties,
            registered_at_ms=one["timestamp"],
        )
    return found


def _type_name(number: int) -> str:
    return _STORED_TYPES[number - 1] if 0 < number <= len(_STORED_TYPES) else str(number - 1)


def _parse(message: Any, data: bytes) -> Any:
    name = message.DESCRIPTOR.name
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(f"not a {name} message ({len(data)} bytes)") from error
    if isinstance(message, Message) and not message.IsInitialized():
        raise FormatError(f"{name}: a required field is missing")
    return message
