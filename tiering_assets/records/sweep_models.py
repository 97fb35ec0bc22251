"""The records of clean-up, and of ledgers that are gone; see docs/records.md.

Owns: intent, act, done. What a broker left is noted, then intended, then swept; our own attempts
are swept after their outcome `abandon`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from pydantic import AwareDatetime

from tiering_assets.records.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Written when clean-up first finds the unfinished attempt of a broker in a topic's node.

    Its age by the store's clock is how long the broker has not finished it, at least.
    """

    kind: ClassVar[str] = "tierkeeper/leftover/1"
    ledger_id: int
    uid: UUID
    ml_name: str
    node_version: int
    seen_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepIntent:
    """Written before a broker's unfinished attempt is taken out of the node and its objects go."""

    kind: ClassVar[str] = "tierkeeper/sweep-intent/1"
    ledger_id: int
    uid: UUID
    ml_name: str
    objects: tuple[str, ...]
    uploads: int
    intended_at: AwareDatetime
    writer: Writer
    previous: str


@dataclass(frozen=True, slots=True)
class NamedVersion:
    """One version of an object; "null" where its bucket keeps none."""

    key: str
    version_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """Written after the uploads and objects of an attempt that is no more were deleted.

    `bytes_stay` are in versions that the store would not delete (object lock), which `stay` names;
    `why_stay` is its answer. None for both counts where an earlier run had deleted them and died.
    """

    kind: ClassVar[str] = "tierkeeper/swept/1"
    ledger_id: int
    uid: UUID
    ml_name: str
    objects: tuple[str, ...]
    uploads: int
    bytes_freed: int | None
    bytes_stay: int | None
    why_stay: str
    swept_at: AwareDatetime
    writer: Writer
    previous: str
    stay: tuple[NamedVersion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedExpiry:
    """A published copy whose ledger is gone. `only_copy`: a release of its bookie copy was begun.

    `versions` are those that go: what lies there besides, or came since, stays.
    """

    ledger_id: int
    uid: UUID
    ml_name: str
    fate: str
    bytes: int
    objects: tuple[str, ...]
    only_copy: bool
    versions: tuple[NamedVersion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredPlan:
    """Written when copies of trimmed or deleted ledgers were seen, for people to approve.

    It is the intent: its age by the store's clock is how long they were gone, at least.
    """

    kind: ClassVar[str] = "tierkeeper/expired-plan/1"
    instance: str
    bucket: str
    planned_at: AwareDatetime
    copies: tuple[PlannedExpiry, ...]
    fleet: int
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedForget:
    """A ledger that is gone, and the attempts whose records are to follow it."""

    ledger_id: int
    ml_name: str
    uids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPlan:
    """Written when the records of ledgers that are gone may go, for people to approve.

    It is the intent, and all that stays of those records: an audit misses nothing that it names.
    """

    kind: ClassVar[str] = "tierkeeper/forget-plan/1"
    instance: str
    bucket: str
    planned_at: AwareDatetime
    ledgers: tuple[PlannedForget, ...]
    fleet: int
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Written when the ledger of a published copy was seen to be gone, in two reads of its topic's
    node.

    By it an audit knows that the copy's objects may be missing. `fate` says what became of the
    ledger. `node_czxid` is that of the node in both reads, null where it was gone. `gone` counts
    the copies that the same look saw gone first, of `fleet` attempts: too many at once are no trim.
    """

    kind: ClassVar[str] = "tierkeeper/removal/1"
    ledger_id: int
    uid: UUID
    ml_name: str
    fate: str
    node_czxid: int | None
    seen_at: AwareDatetime
    seen_again_at: AwareDatetime
    gone: int
    fleet: int
    writer: Writer
    previous: str


CleanUpRecord = Leftover | SweepIntent | Swept | ExpiredPlan | ForgetPlan | Removal
