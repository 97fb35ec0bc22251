"""May what a broker's own offloader left be deleted? design section 6.4, decided in one place.

A broker names its attempt in the topic's node before it uploads, so an unfinished one is either at
work or dead, and nothing there says which. Owns: it is dead only when it was seen a guard age ago
and nothing was sent for as long, both by the store's clock; it is taken out of the node before its
objects go; and they go only while the bookies have the ledger. If the broker lives after all, its
completion finds another uid, or none, and gives up: it has lost its work and nothing else.

A complete attempt of a broker that a check found broken, and that a copy of ours took the place of,
is a leftover too: it goes when brokers have surely closed it, by the record of that publication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from tiering_assets.clean.orphans import REPLACED_KEPT
from tiering_assets.ground.moments import moment
from tiering_assets.ground.reasons import NotNow, not_now
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.offload_context import remove_contexts


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoverEvidence:
    """One attempt of a broker, in metadata read after the bucket was listed.

    `noted_at` is the store's time of our first note of it, None without one; `last_sent_at` that of
    the newest object, part or upload. `never_touched` says why the topic is none of ours to edit.

    `damaged`: a check found the attempt broken; `replaced_at` is when the store took the record of
    the publication of a copy of ours in its place, None without one; `served` says that the topic
    reads another attempt, complete, not doubted, and all there.
    """

    ledger_id: int
    uid: UUID
    named_unfinished: bool
    named_complete: bool
    noted_at: datetime | None
    last_sent_at: datetime | None
    store_now: datetime
    listed: bool
    in_bookkeeper: bool
    never_touched: str | None
    damaged: bool = False
    replaced_at: datetime | None = None
    served: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """Seen for the first time: write it down, so that its age is known from now on."""


@dataclass(frozen=True, slots=True)
class Collect:
    """Delete what it left; `take_out` of the topic's node first."""

    take_out: bool


LeftoverDecision = Note | Collect | NotNow[str]


def decide_leftover(evidence: LeftoverEvidence, *, guard_age: timedelta) -> LeftoverDecision:
    """Collect only when all conditions hold; whoever is not known to be dead is alive."""
    if evidence.named_complete:
        return not_now("the broker finished it: the topic is read from it")
    if evidence.never_touched is not None:
        return not_now(evidence.never_touched)
    if not evidence.listed:
        return not_now("its topic does not list the ledger as closed: it may be the only copy")
    if evidence.damaged and not evidence.named_unfinished:
        return _decide_replaced(evidence, guard_age=guard_age)
    if not evidence.in_bookkeeper:
        return not_now("BookKeeper does not have the closed ledger: it may be the only copy")
    if evidence.noted_at is None:
        return Note()
    known_for = evidence.store_now - evidence.noted_at
    if known_for <= guard_age:
        return not_now(f"the broker may be at work: known for {known_for} of {guard_age}")
    return _quiet(evidence, guard_age) or Collect(take_out=evidence.named_unfinished)


def _decide_replaced(evidence: LeftoverEvidence, *, guard_age: timedelta) -> LeftoverDecision:
    """A broker's broken copy that no topic names any more."""
    if evidence.replaced_at is None:
        return not_now("a check found it broken, and no copy of ours has taken its place")
    if not evidence.served and not evidence.in_bookkeeper:
        return not_now(
            "neither BookKeeper nor a sound copy has the ledger: it may be all that is left"
        )
    goes_at = evidence.replaced_at + max(guard_age, REPLACED_KEPT)
    if evidence.store_now <= goes_at:
        return not_now(
            f"a copy of ours took its place, and brokers may still read it; it goes with a sweep after "
            f"{moment(goes_at)}"
        )
    return _quiet(evidence, guard_age) or Collect(take_out=False)


def _quiet(evidence: LeftoverEvidence, guard_age: timedelta) -> NotNow[str] | None:
    """Why its broker is not believed to be done with it; None when it sent nothing for a guard
    age.
    """
    if evidence.last_sent_at is None:
        return None
    quiet_for = evidence.store_now - evidence.last_sent_at
    if quiet_for > guard_age:
        return None
    return not_now(f"the broker is at work: it sent something {quiet_for} ago")


def take_out_unfinished(topic: ManagedLedger, uids: Mapping[int, UUID]) -> ManagedLedger | None:
    """The topic without these unfinished attempts; None when none of them is there (any more)."""
    there = {
        ledger_id: uid
        for ledger_id, uid in uids.items()
        if (listed := topic.ledger(ledger_id)) is not None
        and (context := listed.offload) is not None
        and context.uid == uid
        and not context.complete
        and not context.bookkeeper_deleted
    }
    return remove_contexts(topic, there) if there else None
