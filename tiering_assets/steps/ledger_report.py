"""Everything known of one ledger, and why it is where it is: the page for three in the morning.

Reads only, and loads no topic. Owns: what could not be asked is said, not guessed; a broker that is
away leaves the rest of the page standing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from resources.errors import (
    BrokerError,
    FormatError,
    LedgerNotFoundError,
    MetadataError,
    TierkeeperError,
)
from resources.metastore.ledger_info import decode_managed_ledger
from resources.object_store.store import ObjectHead
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
from tiering_assets.steps.claims import read_claim
from tiering_assets.steps.holds import read_holds
from tiering_assets.steps.plan import LedgerSight, decide_sight, look_at
from tiering_assets.steps.publications import Publications, recorded_publications
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.release_preview import plan_release
from tiering_assets.steps.resume import attempts_of
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.survey import LedgerView, survey_ledger
from tiering_assets.steps.topic_evidence import publish_evidence
from tiering_assets.tiering.publish_gate import Refuse, decide_publish
from tiering_assets.tiering.reasons import Wait
from tiering_assets.tiering.release_gate import NotYet
from tiering_assets.tiering.states import LedgerState


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


def report_ledger(stack: Stack, ledger_id: int) -> LedgerReport:
    """Read both trees, the records and the objects of one ledger.

    Raises:
        LedgerNotFoundError: neither tree nor any record knows it.
    """
    attempts = attempts_of(stack, ledger_id)
    sight = look_at(stack, ledger_id, ml_name=attempts[-1].record.ml_name if attempts else None)
    if sight.ml_name is None:  # neither BookKeeper nor a record knows whose it is
        sight = look_at(stack, ledger_id, ml_name=_lister(stack, ledger_id))
    ml_name = sight.ml_name
    publications = Publications(()) if ml_name is None else recorded_publications(stack, ml_name)
    holds = read_holds(stack)
    claim = read_claim(stack, ledger_id)
    surveyed = survey_ledger(stack, sight, attempts, publications, holds, claim)
    view = None if surveyed is None else surveyed.view
    if sight.node is None and view is None and not attempts:
        raise LedgerNotFoundError(
            f"ledger {ledger_id}: not in BookKeeper, in no topic's list and without records; "
            f"`tierkeeper ledger list` prints those that exist"
        )
    reasons, next_step = _explain(stack, sight, view)
    live = claim is not None and claim.record.expires_at > stack.objects.server_time()
    return LedgerReport(
        ledger_id=ledger_id,
        ml_name=ml_name,
        state=None if view is None else view.state,
        sight=sight,
        view=view,
        attempts=tuple(_attempt(stack, a, publications) for a in attempts),
        claim=claim.record if claim is not None and live else None,
        hold=None if ml_name is None else holds.why(ledger_id, ml_name),
        under_replicated=_under_replicated(stack, ledger_id),
        reasons=reasons,
        next_step=next_step,
    )


def _lister(stack: Stack, ledger_id: int) -> str | None:
    """The topic that lists a ledger: looks through all of them."""
    for ml_name, node in stack.topics.read_all():
        if node is not None and decode_managed_ledger(node.data).ledger(ledger_id) is not None:
            return ml_name
    return None


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
        index=stack.objects.head(record.index_key),
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


def _explain(
    stack: Stack, sight: LedgerSight, view: LedgerView | None
) -> tuple[tuple[str, ...], str]:
    """(reasons, next step). A question that could not be asked becomes a reason."""
    if view is None:
        decision = decide_sight(sight)
        return (str(decision),) if isinstance(decision, Wait) else (), "nothing to do"
    explain = _EXPLAIN.get(view.state, _explain_copy)
    try:
        return explain(stack, sight, view)
    except (BrokerError, MetadataError, FormatError) as error:
        return (f"could not be judged: {error}",), "make that answer, then look again"


def _explain_copy(
    _stack: Stack, sight: LedgerSight, view: LedgerView
) -> tuple[tuple[str, ...], str]:
    decision = decide_sight(sight)
    if isinstance(decision, Wait):
        return (str(decision),), "wait"
    return decision.notes, f"tierkeeper ledger offload {view.ledger_id}"


def _explain_publish(
    stack: Stack, sight: LedgerSight, view: LedgerView
) -> tuple[tuple[str, ...], str]:
    decision = decide_sight(sight)
    if isinstance(decision, Wait) or sight.topic is None:
        return (str(decision),), "wait"
    refused = decide_publish(publish_evidence(stack, view.ml_name, sight.topic))
    if isinstance(refused, Refuse):
        return tuple(refusal.text for refusal in refused.refusals), refused.refusals[0].lift
    return ("certified, and nothing forbids to publish it",), (
        f"tierkeeper ledger offload {view.ledger_id}"
    )


def _explain_release(
    stack: Stack, _sight: LedgerSight, view: LedgerView
) -> tuple[tuple[str, ...], str]:
    item = plan_release(stack, view.ml_name, [view.ledger_id])[0]
    if isinstance(item.decision, NotYet):
        return item.decision.reasons, "wait, or lift the reasons"
    return ("every condition of the release gate is met",), (
        f"tierkeeper ledger release {view.ledger_id} --execute"
    )


def _explain_released(
    _stack: Stack, _sight: LedgerSight, view: LedgerView
) -> tuple[tuple[str, ...], str]:
    return ("its bookie copy is gone; readers use the object",), (
        f"nothing to do; tierkeeper ledger verify {view.ledger_id} reads the object again"
    )


def _explain_unsafe(
    _stack: Stack, _sight: LedgerSight, view: LedgerView
) -> tuple[tuple[str, ...], str]:
    return (
        f"{view.topic} lists it without a complete offload context and BookKeeper has no such "
        f"ledger: its messages cannot be read from anywhere",
    ), "restore the ledger's metadata node, or its bookies, from a backup; do not touch the topic"


_Explain = Callable[[Stack, LedgerSight, LedgerView], tuple[tuple[str, ...], str]]
_EXPLAIN: dict[LedgerState, _Explain] = {
    LedgerState.VERIFIED: _explain_publish,
    LedgerState.PUBLISHED: _explain_release,
    LedgerState.RELEASE_DUE: _explain_release,
    LedgerState.RELEASING: _explain_release,
    LedgerState.HELD: _explain_release,
    LedgerState.RELEASED: _explain_released,
    LedgerState.UNSAFE: _explain_unsafe,
}


def _under_replicated(stack: Stack, ledger_id: int) -> bool | None:
    try:
        return stack.ledgers.under_replicated(ledger_id)
    except TierkeeperError:
        return None
