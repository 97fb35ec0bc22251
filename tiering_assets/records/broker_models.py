"""The records about brokers: which were seen, which are gone, and changes they may not know of.

Owns the field names; docs/records.md explains them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
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


BrokerRecord = BrokersSeen | BrokerGone | Undo | UndoConfirmed
