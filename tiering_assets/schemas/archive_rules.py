"""Which versions of a topic's schemas are still to be archived, and what counts as their bytes.

Owns: a version is archived where a record names the very entry that the topic's node names, as
entries never change. What a broker tells counts only where its SHA-256 is the one that the node
has: it tells text, and of some types another text than what is stored. Pure.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tiering_assets.records.broker_models import TopicSchema
from tiering_assets.resources.pulsar.schema_storage import SchemaPlace, StoredSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaSight:
    """The node of a topic's schemas, and what the bucket has of this incarnation by version."""

    incarnation: int
    places: Sequence[SchemaPlace]
    archived: Mapping[int, TopicSchema]


def decide_missing(sight: SchemaSight) -> tuple[SchemaPlace, ...]:
    """The versions to read, in order; also one whose record names another entry."""
    return tuple(
        place
        for place in sight.places
        if place.version not in sight.archived
        or sight.archived[place.version].position != place.position
    )


def is_as_stored(told: StoredSchema, place: SchemaPlace) -> bool:
    """Whether what a broker told is the bytes that it stored."""
    return sha256(told.definition).digest() == place.hash


def why_another(record: TopicSchema, found: StoredSchema) -> str | None:
    """What differs between a record and the cluster's schema of its version; None: nothing."""
    expected = (record.type, b64decode(record.definition), record.properties)
    if expected == (found.type, found.definition, dict(found.properties)):
        return None
    digest = sha256(found.definition).hexdigest()
    return (
        f"archived is {record.type} with SHA-256 {record.sha256} and properties "
        f"{record.properties!r:.200}, the cluster has {found.type} with SHA-256 {digest} and "
        f"properties {dict(found.properties)!r:.200}"
    )
