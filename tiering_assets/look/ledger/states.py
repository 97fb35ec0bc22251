"""State of a ledger, computed from the three truths and stored nowhere. docs/states.md draws it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class LedgerState(Enum):
    """In the order in which a ledger normally passes them; the last four are side tracks."""

    OPEN = "open"
    SEALED = "sealed"
    COPYING = "copying"
    COPIED = "copied"
    VERIFIED = "verified"
    PUBLISHED = "published"
    RELEASE_DUE = "release_due"
    RELEASING = "releasing"
    RELEASED = "released"
    HELD = "held"
    QUARANTINED = "quarantined"
    EXPIRED = "expired"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEvidence:
    """What the topic's node says of a ledger, and which records exist for its attempt.

    The attempt is the one its context names, or without a context the newest.
    """

    listed: bool
    open: bool
    context_complete: bool
    context_other: bool
    marked_deleted: bool
    in_bookkeeper: bool
    claimed: bool
    has_index_object: bool
    certified: bool
    quarantined: bool
    published: bool
    lag_elapsed: bool
    held: bool


def decide_state(evidence: StateEvidence) -> LedgerState:
    """Exactly one state. What metadata says wins over what records say."""
    if not evidence.listed:
        return LedgerState.EXPIRED
    if evidence.open:
        return LedgerState.OPEN
    if evidence.context_complete:
        return _of_published(evidence)
    if not evidence.in_bookkeeper:
        return LedgerState.UNSAFE  # listed, not offloaded and gone: data is lost already
    return _of_unpublished(evidence)


def _of_published(evidence: StateEvidence) -> LedgerState:
    if not evidence.in_bookkeeper:
        return LedgerState.RELEASED
    if evidence.held:
        return LedgerState.HELD
    if evidence.marked_deleted:
        return LedgerState.RELEASING
    due = evidence.published and evidence.certified and evidence.lag_elapsed
    if due and not evidence.quarantined:
        return LedgerState.RELEASE_DUE
    return LedgerState.PUBLISHED


def _of_unpublished(evidence: StateEvidence) -> LedgerState:
    if evidence.claimed or evidence.context_other:
        return LedgerState.COPYING
    if evidence.quarantined:  # also when a later check of a certified attempt failed
        return LedgerState.QUARANTINED
    if evidence.certified:
        return LedgerState.VERIFIED
    return LedgerState.COPIED if evidence.has_index_object else LedgerState.SEALED
