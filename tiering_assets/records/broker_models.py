"""The records about brokers: which were seen, which are gone, changes they may not know of, and the
schemas that they keep.

Owns the field names; docs/records.md explains them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal
from uuid import UUID

from pydantic import AwareDatetime

from tiering_assets.records.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBroker:
    """One broker by its `host:port`. Times are the store's.

    `seen_at`: last found registered. `answered_at`: last found not registered and answering.
    """

    name: str
    seen_at: AwareDatetime
    answered_at: AwareDatetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersSeen:
    """Every broker that was registered lately: one that is not any more may still serve topics."""

    kind: ClassVar[str] = "tierkeeper/brokers-seen/1"
    brokers: tuple[SeenBroker, ...]
    written_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerGone:
    """A person's word that a broker's process has ended. It holds until it is registered again."""

    kind: ClassVar[str] = "tierkeeper/broker-gone/1"
    broker: str
    reason: str
    author: str
    gone_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Written before a topic is reloaded. `broker` is `host:port`, null if unknown."""

    kind: ClassVar[str] = "tierkeeper/disturbance/1"
    ml_name: str
    broker: str | None
    why: str
    disturbed_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True)
class WithdrawnContext:
    """An offload context that is taken out of its topic's node: of which ledger and attempt."""

    ledger_id: int
    uid: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """Contexts or marks of a topic are taken back. Until it is confirmed nothing of it is deleted.

    `withdrawn` are the contexts among them: published again, their lag begins anew.
    """

    kind: ClassVar[str] = "tierkeeper/undo/1"
    ml_name: str
    ml_czxid: int
    ledger_ids: tuple[int, ...]
    why: str
    undone_at: AwareDatetime
    writer: Writer
    withdrawn: tuple[WithdrawnContext, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoConfirmed:
    """No broker remembers what was taken back any more."""

    kind: ClassVar[str] = "tierkeeper/undo-confirmed/1"
    undo_key: str
    undo_sha256: str
    confirmed_by: str
    confirmed_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchema:
    """One version of a topic's schema as its brokers keep it; written once.

    `ml_name` is of the whole topic: partitions share its schemas. `incarnation` is the creation id
    of the schemas' node: a topic made again has another, and counts versions from 0 again.
    `definition` is the bytes as stored in base64, `sha256` their digest. `position` is where the
    brokers' own copy lay, `ledger:entry`.
    """

    kind: ClassVar[str] = "tierkeeper/topic-schema/1"
    ml_name: str
    incarnation: int
    version: int
    type: str
    definition: str
    sha256: str
    properties: dict[str, str]
    registered_at_ms: int
    position: str
    read_from: Literal["broker", "bookies"]
    archived_at: AwareDatetime
    writer: Writer


BrokerRecord = BrokersSeen | BrokerGone | Undo | UndoConfirmed | TopicSchema
