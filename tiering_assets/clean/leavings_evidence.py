"""Everything that decides whether one attempt's leavings may go, asked now. Reads only.

Owns: it is asked right before each delete, a retried one too, whatever an earlier look found.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from tiering_assets.change.copies_now import copy_differences
from tiering_assets.clean.orphans import LeavingsEvidence, Sweep, decide_sweep
from tiering_assets.ground.evidence import Dated, Kind
from tiering_assets.ground.reasons import NotNow, not_now
from tiering_assets.ground.stack import Stack, asking
from tiering_assets.look.ledger.bookie_copy import why_only_copy
from tiering_assets.look.ledger.claims import read_claim
from tiering_assets.look.ledger.copies_compared import why_not_equal
from tiering_assets.look.ledger.quarantine import why_quarantined
from tiering_assets.look.ledger.resume import is_proven, newest_certified
from tiering_assets.look.topic.publications import recorded_publications
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate, Outcome, Quarantine, ReleaseIntent
from tiering_assets.records.stored import Stored
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.offload_context import OffloadContext


def decide_leavings(stack: Stack, attempt: Stored[Attempt]) -> tuple[Sweep | NotNow[str], Dated]:
    """The decision about an attempt, and how old what it stands on is. Ages are by the store's
    clock.
    """
    dated = asking(stack, Kind.NODE, Kind.LEDGER, Kind.RECORDS)
    try:
        evidence = _gather(stack, attempt, stack.objects.server_time())
    except FormatError as error:  # a record or a node of this one, which forbids nothing to others
        return not_now(f"cannot be judged: {error}"), dated
    guard_age = timedelta(seconds=stack.settings.release.guard_age_s)
    return decide_sweep(evidence, guard_age=guard_age), dated


def decide_after_reading(
    stack: Stack, attempt: Stored[Attempt]
) -> tuple[Sweep | NotNow[str], Dated]:
    """The same for an attempt whose data object is there: what stays is read whole first.

    Where its topic lists the ledger and reads no sound copy from the store, the bookies give it:
    metadata that names it may be a backup's. Where they do not have it, what the topic reads is
    found equal: it may have rotted since anybody looked. Reads the ledger once, or both copies,
    then decides again.
    """
    decision, dated = decide_leavings(stack, attempt)
    if isinstance(decision, NotNow):
        return decision, dated
    ledger_id, ml_name, uid = decision.ledger_id, attempt.record.ml_name, decision.uid
    if decision.unserved:
        why = why_only_copy(stack, ledger_id, ml_name=ml_name, uid=uid)
    elif decision.read_alone is not None:
        why = why_not_equal(stack, ledger_id, ml_name=ml_name, uid=uid, read=decision.read_alone)
    else:
        return decision, dated
    if why is not None:
        return not_now(why), dated
    return decide_leavings(stack, attempt)


def _gather(stack: Stack, attempt: Stored[Attempt], store_now: datetime) -> LeavingsEvidence:
    record = attempt.record
    ledger_id, uid = record.ledger.ledger_id, record.uid
    topic = stack.topics.read(record.ml_name)
    infos = () if topic is None else topic[0].ledgers
    contexts = frozenset(i.offload.uid for i in infos if i.offload is not None)
    listed = None if topic is None else topic[0].ledger(ledger_id)
    same_topic = topic is not None and topic[1].stat.czxid == record.ml_czxid
    node = stack.ledgers.read(ledger_id)
    outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
    claim = read_claim(stack, ledger_id)
    context = None if listed is None else listed.offload
    served = is_served(stack, ledger_id, context)
    proven = is_proven(stack, attempt)
    doubt = stack.book.read(Quarantine, keys.quarantine(ledger_id, uid))
    replaced_at, never_stood_since = _ended(stack, record, contexts, doubt)
    return LeavingsEvidence(
        ledger_id=ledger_id,
        uid=uid,
        attempt_stored_at=attempt.stored_at,
        store_now=store_now,
        contexts=contexts,
        outcome=None if outcome is None else outcome.record.outcome,
        release_intended=stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, uid))
        is not None,
        claimed_live=claim is not None and claim.record.expires_at > store_now,
        listed=listed is not None,
        in_bookkeeper=node is not None and node.metadata.state is BookKeeperState.CLOSED,
        proven=proven,
        waits=same_topic and proven and not served and _is_newest(stack, attempt),
        served=served,
        context=None if context is None else context.uid,
        doubted=doubt is not None,
        replaced_at=replaced_at,
        never_stood_since=never_stood_since,
    )


def _is_newest(stack: Stack, attempt: Stored[Attempt]) -> bool:
    """No attempt that was begun later waits in its place; a listing may come short."""
    newest = newest_certified(stack, attempt.record.ledger.ledger_id)
    if newest is None or newest.record.uid == attempt.record.uid:
        return True
    return newest.stored_at < attempt.stored_at


def is_served(stack: Stack, ledger_id: int, context: OffloadContext | None) -> bool:
    """Whether the topic reads the ledger from an attempt that nobody doubts, and is all there."""
    if context is None or not context.complete:
        return False
    other = context.uid
    if why_quarantined(stack, ledger_id, other) is not None:
        return False
    data = stack.objects.head(data_key(other, ledger_id))
    index = stack.objects.head(index_key(other, ledger_id))
    certificate = stack.book.read(Certificate, keys.certificate(ledger_id, other))
    if certificate is None:  # its broker wrote it
        return data is not None and index is not None
    return not copy_differences(stack, certificate.record, data=data, index=index)


def _ended(
    stack: Stack,
    record: Attempt,
    contexts: frozenset[UUID],
    doubt: Stored[Quarantine] | None,
) -> tuple[datetime | None, datetime | None]:
    """`replaced_at` and `never_stood_since` of an attempt: only a quarantined one has either."""
    ledger_id, uid = record.ledger.ledger_id, record.uid
    if doubt is None or uid in contexts:
        return None, None
    publications = recorded_publications(stack, record.ml_name)
    never_stood = None if publications.of(ledger_id, uid) else doubt.stored_at
    return publications.replaced_at(ledger_id, uid, contexts), never_stood
