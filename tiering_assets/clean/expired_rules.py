"""May a published copy go after its ledger? design section 6.4, for ledgers that retention took.
Pure.

Owns: a published copy goes only by a plan that a person approved, after the trim or the deletion of
its topic was observed twice: when the plan was made and, at least KEPT later, when it is carried
out. When a ledger is gone is decided by gone_rules.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from tiering_assets.clean.gone_rules import Fate, GoneEvidence, fate_of, why_not_taken
from tiering_assets.ground.reasons import NotNow, not_now


@dataclass(frozen=True, slots=True)
class Expired:
    """The copy may go, or may be planned to."""

    ledger_id: int
    uid: UUID
    fate: Fate


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredEvidence:
    """`published_czxid` is of the node that its publication was confirmed in, None without a
    record.
    """

    gone: GoneEvidence
    uid: UUID
    outcome: str | None
    published_czxid: int | None
    attempt_stored_at: datetime


def decide_expired(evidence: ExpiredEvidence, *, guard_age: timedelta) -> Expired | NotNow[str]:
    """Return Expired only when all conditions hold; ages are by the store's clock alone."""
    reason = _reason_to_keep(evidence, guard_age)
    if reason is not None:
        return not_now(reason)
    fate = fate_of(evidence.gone.node_czxid, evidence.published_czxid)
    return Expired(evidence.gone.ledger_id, evidence.uid, fate)


def _reason_to_keep(evidence: ExpiredEvidence, guard_age: timedelta) -> str | None:
    if evidence.outcome != "publish":
        return "it was never published: `orphan sweep` collects it"
    if evidence.published_czxid is None:
        return "there is no record of its confirmed publication"
    age = evidence.gone.store_now - evidence.attempt_stored_at
    young = f"younger than the guard age ({age} of {guard_age})"
    return why_not_taken(
        evidence.gone,
        young=young if age <= guard_age else None,
        until="brokers may still read it for",
    )
