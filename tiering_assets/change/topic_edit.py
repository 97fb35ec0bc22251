"""What one compare-and-set does to a topic's node: new contexts and marks, or their undoing.

Owns: contexts to publish and `bookkeeperDeleted` marks of due ledgers go out together, because each
write costs the topic a reload. A context of anybody else, complete or not, is never overwritten,
unless it is exactly the attempt that was found broken and is to be replaced; a ledger that left the
list was trimmed and is expired, not an error; a context of ours that is already there is done.
Undoing touches only what is still ours: a context of the same attempt, a mark of a ledger in the
same change. Pure: every call judges a fresh read.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.offload_context import (
    OffloadContext,
    mark_bookkeeper_deleted,
    publish_contexts,
    remove_contexts,
    unmark_bookkeeper_deleted,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationPlan:
    """Ledger ids by what the fresh read says of them."""

    write: tuple[int, ...]
    already: tuple[int, ...]
    waiting: Mapping[int, Wait] = field(default_factory=dict)


def plan_publication(
    topic: ManagedLedger,
    wanted: Mapping[int, UUID],
    replacing: Mapping[int, UUID] | None = None,
) -> PublicationPlan:
    """Sort the wanted ledgers (id -> attempt) into written now, written before, and not.

    `replacing` names broken attempts (id -> attempt) that a wanted one takes the place of.
    """
    broken = replacing or {}
    write: list[int] = []
    already: list[int] = []
    waiting: dict[int, Wait] = {}
    for ledger_id, uid in sorted(wanted.items()):
        listed = topic.ledger(ledger_id)
        if listed is None:
            waiting[ledger_id] = Wait(
                Reason.EXPIRED, "the topic no longer lists it; it was trimmed"
            )
        elif listed.is_open:  # one such ledger would make the edit of all others fail
            waiting[ledger_id] = Wait(Reason.OPEN, "the topic lists it as still written to")
        elif listed.offload is None:
            write.append(ledger_id)
        elif listed.offload.uid == uid and listed.offload.complete:
            already.append(ledger_id)
        elif listed.offload.complete and listed.offload.uid == broken.get(ledger_id):
            write.append(ledger_id)
        elif listed.offload.complete:
            waiting[ledger_id] = Wait(Reason.PUBLISHED, f"by attempt {listed.offload.uid}")
        else:
            waiting[ledger_id] = Wait(
                Reason.BROKER_COPYING, f"its context names attempt {listed.offload.uid}"
            )
    return PublicationPlan(write=tuple(write), already=tuple(already), waiting=waiting)


@dataclass(frozen=True, slots=True)
class Copy:
    """A certified copy of a ledger: its attempt and the ledger's last entry."""

    uid: UUID
    last_entry_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """Ledgers to publish and ledgers to mark, by id.

    `replacing` names the broken attempts whose contexts may be overwritten. Undoing takes the new
    context out and never puts a broken one back: without a context readers are on the bookies.
    """

    contexts: Mapping[int, Copy] = field(default_factory=dict)
    marks: Mapping[int, Copy] = field(default_factory=dict)
    replacing: Mapping[int, UUID] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.contexts or self.marks)

    @property
    def wanted(self) -> dict[int, UUID]:
        return {i: copy.uid for i, copy in self.contexts.items()}

    @property
    def last_entry_ids(self) -> dict[int, int]:
        return {i: copy.last_entry_id for i, copy in (*self.contexts.items(), *self.marks.items())}

    def only(self, ledger_ids: Container[int]) -> TopicChange:
        """The part of the change that is about these ledgers."""
        return TopicChange(
            contexts={i: copy for i, copy in self.contexts.items() if i in ledger_ids},
            marks={i: copy for i, copy in self.marks.items() if i in ledger_ids},
            replacing=self.replacing,
        )

    def without(self, ledger_ids: Mapping[int, object]) -> TopicChange:
        """The change without some of its ledgers to publish."""
        kept = {i: copy for i, copy in self.contexts.items() if i not in ledger_ids}
        return TopicChange(contexts=kept, marks=self.marks, replacing=self.replacing)


def apply_change(
    topic: ManagedLedger, change: TopicChange, contexts: Mapping[int, OffloadContext]
) -> ManagedLedger | None:
    """The edited topic, or None when nothing is left to do. Raises as the edits do."""
    write = plan_publication(topic, change.wanted, change.replacing).write
    missing = _missing_marks(topic, change)
    if not write and not missing:
        return None
    published = (
        publish_contexts(topic, {i: contexts[i] for i in write}, replacing=change.replacing)
        if write
        else topic
    )
    return mark_bookkeeper_deleted(published, missing) if missing else published


def is_applied(topic: ManagedLedger, change: TopicChange) -> bool:
    """True when a read after a lost answer shows that the write took effect."""
    write = plan_publication(topic, change.wanted, change.replacing).write
    return not write and not _missing_marks(topic, change)


def undo_change(topic: ManagedLedger, change: TopicChange) -> ManagedLedger | None:
    """The topic without this change, or None when nothing of it is there."""
    marked = {i: c.uid for i, c in change.marks.items() if is_marked(topic, i, c.uid)}
    there = {
        i: copy.uid
        for i, copy in change.contexts.items()
        if (listed := topic.ledger(i)) is not None
        and listed.offload is not None
        and listed.offload.uid == copy.uid
    }
    if not marked and not there:
        return None
    unmarked = unmark_bookkeeper_deleted(topic, marked) if marked else topic
    return remove_contexts(unmarked, there) if there else unmarked


def is_marked(topic: ManagedLedger, ledger_id: int, uid: UUID) -> bool:
    """True when the ledger's context is this attempt's, complete and marked."""
    listed = topic.ledger(ledger_id)
    context = None if listed is None else listed.offload
    return (
        context is not None
        and context.uid == uid
        and context.complete
        and context.bookkeeper_deleted
    )


def _missing_marks(topic: ManagedLedger, change: TopicChange) -> dict[int, UUID]:
    return {i: c.uid for i, c in change.marks.items() if not is_marked(topic, i, c.uid)}
