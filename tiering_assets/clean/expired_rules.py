"""May a published copy go after its ledger? design section 6.4, for ledgers that retention took. Pure.

Owns: a published copy goes only by a plan that a person approved, after the trim or the deletion of
its topic was observed twice: when the plan was made and, at least KEPT later, when it is carried
out. A metadata store that went back in time looks like a trim, so one is believed only where all
that the topic lists is younger: trims take the oldest ledger first, and ids only grow. Whatever
still has the ledger keeps the copy: any topic's list, any context, a shadow, BookKeeper.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from tiering_assets.ground.reasons import NotNow, not_now

KEPT = timedelta(hours=1)  # a broker that opened the object may still be reading it


class Fate(StrEnum):
    """What became of the ledger."""

    TRIMMED = "trimmed"
    TOPIC_DELETED = "topic deleted"
    TOPIC_MADE_AGAIN = "topic deleted and made again"


@dataclass(frozen=True, slots=True)
class Expired:
    """The copy may go, or may be planned to."""

    ledger_id: int
    uid: UUID
    fate: Fate


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredEvidence:
    """`published_czxid` is of the node that its publication was confirmed in, None without a record.

    `node_czxid` is None when the topic has no node now; `listed` are the ids that it lists.
    `elsewhere` names another topic that lists the ledger or names the attempt, or a shadow.
    `planned_at` is when the store took the plan; None while one is made.
    """

    ledger_id: int
    uid: UUID
    outcome: str | None
    published_czxid: int | None
    node_czxid: int | None
    listed: Collection[int]
    elsewhere: str | None
    in_bookkeeper: bool
    attempt_stored_at: datetime
    store_now: datetime
    claimed_live: bool
    held: str | None
    planned_at: datetime | None


def decide_expired(evidence: ExpiredEvidence, *, guard_age: timedelta) -> Expired | NotNow[str]:
    """Return Expired only when all conditions hold; ages are by the store's clock alone."""
    reason = _reason_to_keep(evidence, guard_age)
    if reason is not None:
        return not_now(reason)
    return Expired(
        evidence.ledger_id, evidence.uid, fate_of(evidence.node_czxid, evidence.published_czxid)
    )


def fate_of(node_czxid: int | None, published_czxid: int | None) -> Fate:
    """By the czxid of its topic's node now, and of the one that its publication was confirmed in."""
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


def _reason_to_keep(evidence: ExpiredEvidence, guard_age: timedelta) -> str | None:
    if evidence.outcome != "publish":
        return "it was never published: `orphan sweep` collects it"
    if evidence.published_czxid is None:
        return "there is no record of its confirmed publication"
    here = why_not_gone(
        evidence.ledger_id,
        has_node=evidence.node_czxid is not None,
        listed=evidence.listed,
        elsewhere=evidence.elsewhere,
        in_bookkeeper=evidence.in_bookkeeper,
    )
    if here is not None:
        return here
    if evidence.held is not None:
        return f"held: {evidence.held}"
    if evidence.claimed_live:
        return "a run holds a live claim on the ledger"
    age = evidence.store_now - evidence.attempt_stored_at
    if age <= guard_age:
        return f"younger than the guard age ({age} of {guard_age})"
    if evidence.planned_at is not None:
        since = evidence.store_now - evidence.planned_at
        if since <= KEPT:
            return f"planned {since} ago; brokers may still read it for {KEPT}"
    return None
