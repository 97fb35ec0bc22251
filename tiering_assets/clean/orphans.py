"""May an attempt's leavings be deleted? design section 6.4, decided in one place.

Owns: only objects with an attempt record of this instance, that no context names in metadata read
after the listing, whose outcome we won with `abandon`, older than the guard age, and never one
whose chain holds a release intent: those may be the only copy. A proven copy whose publication
waits is no leftover, nor is any of a ledger that its topic lists and BookKeeper does not have, or
does not give.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from tiering_assets.ground.reasons import NotNow, not_now


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingsEvidence:
    """`contexts` are all uids the ledger's topic names now; None means it could not be read.

    `replaced_at` is when the store took the record of the confirmed publication of another attempt
    in this one's place, where this one is quarantined; None where nothing took its place.
    `never_stood_since` is when the store took the quarantine of an attempt that won the right to be
    published and of which no record confirms a publication; None for any other. `listed`: its topic
    lists the ledger, made again from a backup or not; `in_bookkeeper`: BookKeeper has it, closed.
    `proven`: it has a certificate, and nobody doubts it, so that it may be all that is left where
    what the topic reads has rotted since. `waits` is the newest of the ledger's proven attempts
    that nobody doubts, made for this very topic, and none is published; `served` says that the
    topic reads another attempt, complete and not doubted, and `context` which one it names.
    `doubted`: a check of this one failed.
    """

    ledger_id: int
    uid: UUID
    attempt_stored_at: datetime
    store_now: datetime
    contexts: frozenset[UUID] | None
    outcome: str | None
    release_intended: bool
    claimed_live: bool
    listed: bool
    in_bookkeeper: bool
    proven: bool
    waits: bool
    served: bool
    context: UUID | None = None
    doubted: bool = False
    replaced_at: datetime | None = None
    never_stood_since: datetime | None = None


REPLACED_KEPT = timedelta(hours=1)  # a broker that opened the old object may still be reading it


@dataclass(frozen=True, slots=True)
class Sweep:
    """`replaced`: its outcome is `publish`; a sound attempt took its place, or it never stood.

    `unserved`: its topic lists the ledger and reads no sound copy of it from the store, so that the
    bookies have to give every entry before an object goes. `read_alone`: BookKeeper does not have
    the ledger, and the topic reads this other attempt, so that both have to be found equal; but
    for one that a check has found to be none.
    """

    ledger_id: int
    uid: UUID
    replaced: bool = False
    unserved: bool = False
    read_alone: UUID | None = None

    def stands_on_more_than(self, before: Sweep) -> bool:
        """Whether something is to be read that was not for the decision before."""
        reads = self.unserved, self.read_alone
        return reads not in ((False, None), (before.unserved, before.read_alone))


def decide_sweep(evidence: LeavingsEvidence, *, guard_age: timedelta) -> Sweep | NotNow[str]:
    """Return Sweep only when all conditions hold; the age is by the store's clock alone."""
    reason = _reason_to_keep(evidence, guard_age)
    if reason is None:
        return Sweep(
            evidence.ledger_id,
            evidence.uid,
            replaced=evidence.outcome == "publish",
            unserved=evidence.listed and not evidence.served,
            read_alone=_read_alone(evidence),
        )
    return not_now(reason)


def _read_alone(evidence: LeavingsEvidence) -> UUID | None:
    """The attempt that all readers depend on once this one is gone.

    None where bookies have the ledger, or where this one is known to be no copy of it.
    """
    if evidence.listed and not evidence.in_bookkeeper and not evidence.doubted:
        return evidence.context
    return None


def _reason_to_keep(evidence: LeavingsEvidence, guard_age: timedelta) -> str | None:
    age = evidence.store_now - evidence.attempt_stored_at
    if evidence.release_intended:
        return "a release was intended from it: it may be the only copy"
    if evidence.contexts is None:
        return "the topic's metadata could not be read"
    if evidence.uid in evidence.contexts:
        return "an offload context names it"
    if evidence.listed and not evidence.in_bookkeeper and (evidence.proven or not evidence.served):
        return "its topic lists the ledger and BookKeeper does not have it: it may be the only copy"
    if evidence.outcome == "publish":
        ended = evidence.replaced_at or evidence.never_stood_since
        if ended is None:
            return "it won the right to be published"
        if evidence.listed and not evidence.served:
            return "it won the right to be published, and nothing sound has taken its place yet"
        since = evidence.store_now - ended
        if since <= (kept := max(guard_age, REPLACED_KEPT)):
            what = "replaced" if evidence.replaced_at is not None else "quarantined, never read,"
            return f"{what} {since} ago; brokers may still read it for {kept}"
    elif evidence.outcome is None and evidence.listed and evidence.waits:
        return "it is proven, and its publication waits"
    if evidence.claimed_live:
        return "a run holds a live claim on the ledger"
    if age <= guard_age:
        return f"younger than the guard age ({age} of {guard_age})"
    return None
