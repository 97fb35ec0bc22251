"""The `bookkeeperDeleted` marks of a topic's contexts: set for a release, taken back when it fails."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from resources.metastore.ledger_info import ManagedLedger
from resources.metastore.offload_context import mark_bookkeeper_deleted, unmark_bookkeeper_deleted
from tiering_assets.steps.node_edit import edit_topic
from tiering_assets.steps.stack import Stack


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


def set_marks(stack: Stack, ml_name: str, uids: Mapping[int, UUID], *, czxid: int) -> None:
    """Mark these ledgers' contexts in one compare-and-set; marks that are there stay."""

    def edit(topic: ManagedLedger) -> ManagedLedger | None:
        missing = {i: uid for i, uid in uids.items() if not is_marked(topic, i, uid)}
        return mark_bookkeeper_deleted(topic, missing) if missing else None

    edit_topic(stack, ml_name, edit, czxid=czxid, applied=lambda topic: edit(topic) is None)


def take_marks_back(stack: Stack, ml_name: str, uids: Mapping[int, UUID], *, czxid: int) -> None:
    """Unmark these ledgers' contexts in one compare-and-set; others are left alone."""

    def edit(topic: ManagedLedger) -> ManagedLedger | None:
        there = {i: uid for i, uid in uids.items() if is_marked(topic, i, uid)}
        return unmark_bookkeeper_deleted(topic, there) if there else None

    edit_topic(stack, ml_name, edit, czxid=czxid, applied=lambda topic: edit(topic) is None)
