"""Everything known of one ledger, and why it is where it is: the page for three in the morning.

Reads only. Owns: what could not be asked is said, not guessed; a broker that is
away leaves the rest of the page standing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tiering_assets.explain.asked_once import asking_once
from tiering_assets.explain.ledger_reasons import explain
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.object_class import read_unless_archived
from tiering_assets.look.ledger.one_ledger import look_at_one, may_list, nobody_knows
from tiering_assets.look.ledger.plan import LedgerSight
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import LedgerView
from tiering_assets.look.topic.publications import Publications, recorded_publications
from tiering_assets.records import keys
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    Claim,
    Outcome,
    Publication,
    Quarantine,
    Record,
    Release,
    ReleaseIntent,
)
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.object_store.store import ObjectHead


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """One record of an attempt. `follows` is False where it does not name the one before it."""

    key: str
    stored_at: datetime
    sha256: str
    follows: bool
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """One attempt's records in the order of the chain, and its two objects as HEAD finds them."""

    uid: UUID
    chain: tuple[ChainLink, ...]
    data: ObjectHead | None
    index: ObjectHead | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport:
    """`reasons` say why the ledger is not further; `next_step` what would move it."""

    ledger_id: int
    ml_name: str | None
    state: LedgerState | None
    sight: LedgerSight
    view: LedgerView | None
    attempts: tuple[AttemptReport, ...]
    claim: Claim | None
    hold: str | None
    under_replicated: bool | None
    reasons: tuple[str, ...]
    next_step: str


def report_ledger(stack: Stack, ledger_id: int, *, loads_nothing: bool = False) -> LedgerReport:
    """Read both trees, the records and the objects of one ledger.

    With `loads_nothing` no broker is asked about a topic whose bundle none owns.

    Raises:
        LedgerNotFoundError: neither tree nor any record knows it.
    """
    stack = asking_once(stack)
    one = look_at_one(stack, ledger_id)
    sight, view = one.sight, None if one.surveyed is None else one.surveyed.view
    if sight.node is None and view is None and not one.attempts:
        raise nobody_knows(one)
    reasons, next_step = explain(stack, sight, view, one.publications, loads_nothing=loads_nothing)
    return LedgerReport(
        ledger_id=ledger_id,
        ml_name=sight.ml_name,
        state=None if view is None else view.state,
        sight=sight,
        view=view,
        attempts=tuple(_attempt(stack, a, one.publications) for a in one.attempts),
        claim=one.claim,
        hold=None if sight.ml_name is None else one.holds.why(ledger_id, sight.ml_name),
        under_replicated=_under_replicated(stack, ledger_id),
        reasons=(*reasons, *may_list(one)),
        next_step=next_step,
    )


def _attempt(
    stack: Stack,
    attempt: Stored[Attempt],
    publications: Publications,
) -> AttemptReport:
    record = attempt.record
    ledger_id, uid = record.ledger.ledger_id, record.uid
    chain = [_link(attempt, previous=None)]
    before: str | None = attempt.sha256
    certificate = stack.book.read(Certificate, keys.certificate(ledger_id, uid))
    if certificate is not None:
        chain.append(_link(certificate, previous=before))
        before = certificate.sha256
    quarantine = stack.book.read(Quarantine, keys.quarantine(ledger_id, uid))
    if quarantine is not None:
        chain.append(_link(quarantine, previous=attempt.sha256))
    outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
    if outcome is not None:
        abandoned = outcome.record.outcome == "abandon"  # may come at any time after the attempt
        after = outcome.record.previous if abandoned and len(chain) > 1 else before
        known = {link.sha256 for link in chain}
        chain.append(_link(outcome, previous=after if after in known else before))
        before = outcome.sha256
    if (
        outcome is not None
        and outcome.record.outcome == "publish"
        and not publications.of(ledger_id, uid)
    ):
        publications = recorded_publications(stack, record.ml_name)
    publication = publications.newest(ledger_id, uid)
    if publication is not None:
        entry = next(p for p in publication.record.ledgers if p.uid == uid)
        chain.append(_link(publication, previous=before, names=entry.previous))
    intent = stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, uid))
    if intent is not None:
        chain.append(_link(intent, previous=before))
        release = stack.book.read(Release, keys.release(ledger_id, uid))
        if release is not None:
            chain.append(_link(release, previous=intent.sha256))
    return AttemptReport(
        uid=uid,
        chain=tuple(chain),
        data=stack.objects.head(record.data_key),
        index=read_unless_archived(stack, record.index_key)[0],
    )


def _link(
    stored: Stored[Attempt]
    | Stored[Certificate]
    | Stored[Quarantine]
    | Stored[Outcome]
    | Stored[Publication]
    | Stored[ReleaseIntent]
    | Stored[Release],
    *,
    previous: str | None,
    names: str | None = None,
) -> ChainLink:
    record = stored.record
    named = record.previous if not isinstance(record, Publication) else names
    return ChainLink(
        key=stored.key,
        stored_at=stored.stored_at,
        sha256=stored.sha256,
        follows=named == previous,
        record=record,
    )


def _under_replicated(stack: Stack, ledger_id: int) -> bool | None:
    try:
        return stack.ledgers.under_replicated(ledger_id)
    except TierkeeperError:
        return None
