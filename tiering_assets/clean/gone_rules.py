"""Is a ledger gone for good, and may then what is left of it go by an approved plan? Pure.

Owns: a metadata store that went back in time looks like a trim, so one is believed only where all
that the topic lists is younger: trims take the oldest ledger first, and ids only grow. Whatever
still has the ledger keeps what is left of it: any topic's list, any context, a shadow, BookKeeper.
What goes, goes by a plan that is at least KEPT old, decided again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

KEPT = timedelta(hours=1)  # a broker that opened the object may still be reading it


class Fate(StrEnum):
    """What became of the ledger."""

    TRIMMED = "trimmed"
    TOPIC_DELETED = "topic deleted"
    TOPIC_MADE_AGAIN = "topic deleted and made again"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneEvidence:
    """Where a ledger still may be, and who keeps what is left of it.

    `node_czxid` is None when its topic has no node now; `listed` are the ids that it lists.
    `elsewhere` names another topic that lists the ledger or names the attempt, or a shadow.
    `planned_at` is when the store took the plan; None while one is made. `store_now` is by its
    clock.
    """

    ledger_id: int
    node_czxid: int | None
    listed: Collection[int]
    elsewhere: str | None
    in_bookkeeper: bool
    store_now: datetime
    claimed_live: bool
    held: str | None
    planned_at: datetime | None


def why_not_taken(
    gone: GoneEvidence, *, left: str | None = None, young: str | None, until: str
) -> str | None:
    """The first reason to keep what is left of a ledger; None when it may go, or be planned to.

    `left` says what must go before it, `young` that it is too young, and `until` what KEPT is for.
    """
    here = why_not_gone(
        gone.ledger_id,
        has_node=gone.node_czxid is not None,
        listed=gone.listed,
        elsewhere=gone.elsewhere,
        in_bookkeeper=gone.in_bookkeeper,
    )
    if here is not None:
        return here
    if left is not None:
        return left
    if gone.held is not None:
        return f"held: {gone.held}"
    if gone.claimed_live:
        return "a run holds a live claim on the ledger"
    if young is not None:
        return young
    if gone.planned_at is not None:
        since = gone.store_now - gone.planned_at
        if since <= KEPT:
            return f"planned {since} ago; {until} {KEPT}"
    return None


def fate_of(node_czxid: int | None, published_czxid: int | None) -> Fate:
    """By the czxid of its topic's node now, and of the one that its publication was confirmed
    in.
    """
    if node_czxid is None:
        return Fate.TOPIC_DELETED
    return Fate.TRIMMED if node_czxid == published_czxid else Fate.TOPIC_MADE_AGAIN


def why_not_gone(
    ledger_id: int,
    *,
    has_node: bool,
    listed: Collection[int],
    elsewhere: str | None,
    in_bookkeeper: bool,
) -> str | None:
    """Why a ledger is not believed to be trimmed or deleted; None when it is gone for good."""
    if ledger_id in listed:
        return "its topic lists the ledger"
    if elsewhere is not None:
        return f"{elsewhere} may read it"
    if has_node:
        if not listed:
            return "its topic lists no ledger at all, which no trim leaves"
        older = [i for i in listed if i < ledger_id]
        if older:
            return (
                f"its topic lists the older ledger {min(older)}: a trim takes the oldest first, and "
                f"a topic made again has younger ones"
            )
    if in_bookkeeper:
        return "BookKeeper has the ledger still: its broker has not deleted it yet"
    return None
