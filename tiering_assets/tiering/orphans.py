"""May an attempt's leavings be deleted? design section 6.4, decided in one place.

Owns: only objects with an attempt record of this instance, that no context names in metadata read
after the listing, whose outcome we won with `abandon`, older than the guard age, and never one whose
chain holds a release intent: those may be the only copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingsEvidence:
    """`contexts` are all uids the ledger's topic names now; None means it could not be read.

    `replaced_at` is when the store took the record of the confirmed publication of another attempt
    in this one's place, where this one is quarantined; None where nothing took its place.
    """

    ledger_id: int
    uid: UUID
    attempt_stored_at: datetime
    store_now: datetime
    contexts: frozenset[UUID] | None
    outcome: str | None
    release_intended: bool
    claimed_live: bool
    replaced_at: datetime | None = None


REPLACED_KEPT = timedelta(hours=1)  # a broker that opened the old object may still be reading it


@dataclass(frozen=True, slots=True)
class Sweep:
    """`replaced`: it was published once, and a sound attempt has taken its place since."""

    ledger_id: int
    uid: UUID
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class Keep:
    ledger_id: int
    uid: UUID
    reason: str


def decide_sweep(evidence: LeavingsEvidence, *, guard_age: timedelta) -> Sweep | Keep:
    """Return Sweep only when all conditions hold; the age is by the store's clock alone."""
    reason = _reason_to_keep(evidence, guard_age)
    if reason is None:
        replaced = evidence.outcome == "publish"
        return Sweep(evidence.ledger_id, evidence.uid, replaced)
    return Keep(evidence.ledger_id, evidence.uid, reason)


def _reason_to_keep(evidence: LeavingsEvidence, guard_age: timedelta) -> str | None:
    age = evidence.store_now - evidence.attempt_stored_at
    if evidence.release_intended:
        return "a release was intended from it: it may be the only copy"
    if evidence.contexts is None:
        return "the topic's metadata could not be read"
    if evidence.uid in evidence.contexts:
        return "an offload context names it"
    if evidence.outcome == "publish":
        if evidence.replaced_at is None:
            return "it won the right to be published"
        since = evidence.store_now - evidence.replaced_at
        if since <= (kept := max(guard_age, REPLACED_KEPT)):
            return f"replaced {since} ago; brokers may still read it for {kept}"
    if evidence.claimed_live:
        return "a run holds a live claim on the ledger"
    if age <= guard_age:
        return f"younger than the guard age ({age} of {guard_age})"
    return None
