"""Delete what abandoned attempts left. design section 6.4.

The order is the contract: list the bucket's attempts first, read metadata after, decide, win the
outcome `abandon`, abort unfinished uploads, delete data and index objects. Records stay: they are
how people see what happened. Dry run is a mode of the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from resources.errors import RefusedError
from tiering_assets.offload_format.keys import parse_key
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate, Outcome, Publication, ReleaseIntent
from tiering_assets.steps.claims import read_claim
from tiering_assets.steps.crash_points import reach
from tiering_assets.steps.holds import read_holds
from tiering_assets.steps.outcome import win_outcome
from tiering_assets.steps.publications import replaced_at
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack
from tiering_assets.tiering.orphans import Keep, LeavingsEvidence, Sweep, decide_sweep

SMALL_RUN = 100  # below this many deletes the share of the fleet is not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What one attempt left: its objects that exist, its unfinished uploads, and the decision."""

    attempt: Stored[Attempt]
    objects: tuple[str, ...]
    uploads: tuple[str, ...]
    decision: Sweep | Keep
    bytes: int


def find_leavings(stack: Stack) -> list[Leaving]:
    """Every attempt that still has objects or uploads, with the decision about it."""
    present: dict[tuple[int, UUID], list[tuple[str, int]]] = {}
    for summary in stack.objects.list_objects():
        parsed = parse_key(summary.key)
        if parsed is not None:
            present.setdefault((parsed.ledger_id, parsed.uid), []).append(
                (summary.key, summary.size)
            )
    uploads: dict[str, list[str]] = {}
    for upload in stack.objects.list_uploads():
        uploads.setdefault(upload.key, []).append(upload.upload_id)
    attempts = list(stack.book.iter_records(Attempt, "attempts/"))
    # Metadata is read after the listings: what was published in between is seen, never deleted.
    store_now = stack.objects.server_time()
    contexts: dict[str, frozenset[UUID]] = {}
    found: list[Leaving] = []
    for attempt in attempts:
        record = attempt.record
        objects = present.get((record.ledger.ledger_id, record.uid), [])
        unfinished = uploads.get(record.data_key, [])
        if not objects and not unfinished:
            continue
        if record.ml_name not in contexts:
            contexts[record.ml_name] = _contexts(stack, record.ml_name)
        found.append(
            Leaving(
                attempt=attempt,
                objects=tuple(key for key, _size in objects),
                uploads=tuple(unfinished),
                decision=_decide(stack, attempt, contexts[record.ml_name], store_now),
                bytes=sum(size for _key, size in objects),
            )
        )
    return found


def _contexts(stack: Stack, ml_name: str) -> frozenset[UUID]:
    """Every attempt that the topic's node names now, complete or not."""
    topic = stack.topics.read(ml_name)
    if topic is None:
        return frozenset()
    return frozenset(i.offload.uid for i in topic[0].ledgers if i.offload is not None)


def sweep(stack: Stack, *, execute: bool) -> list[Leaving]:
    """Delete the leavings that may go; without `execute` only say which.

    Raises:
        RefusedError: metadata went backwards, or the run would delete too much of the fleet.
    """
    leavings = find_leavings(stack)
    going = [leaving for leaving in leavings if isinstance(leaving.decision, Sweep)]
    _refuse_mass_delete(stack, going, leavings)
    _refuse_old_metadata(stack)
    if execute:
        held = read_holds(stack).all_held
        if held is not None:
            raise RefusedError(f"sweep: everything is held, nothing is deleted: {held}")
        for leaving in leavings:
            if isinstance(leaving.decision, Sweep):
                _sweep_one(stack, leaving)
            elif leaving.uploads:
                _abort_if_certified(stack, leaving)
    return leavings


def _decide(
    stack: Stack, attempt: Stored[Attempt], contexts: frozenset[UUID], store_now: datetime
) -> Sweep | Keep:
    record = attempt.record
    ledger_id, uid = record.ledger.ledger_id, record.uid
    outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
    intent = stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, uid))
    claim = read_claim(stack, ledger_id)
    return decide_sweep(
        LeavingsEvidence(
            ledger_id=ledger_id,
            uid=uid,
            attempt_stored_at=attempt.stored_at,
            store_now=store_now,
            contexts=contexts,
            outcome=None if outcome is None else outcome.record.outcome,
            release_intended=intent is not None,
            claimed_live=claim is not None and claim.record.expires_at > store_now,
            replaced_at=replaced_at(stack, record, contexts),
        ),
        guard_age=timedelta(seconds=stack.settings.release.guard_age_s),
    )


def _sweep_one(stack: Stack, leaving: Leaving) -> None:
    record = leaving.attempt.record
    if not (isinstance(leaving.decision, Sweep) and leaving.decision.replaced):
        won = win_outcome(stack, leaving.attempt, "abandon", reason="swept: nothing refers to it")
        if won is None:
            return  # somebody publishes it after all
    reach("sweep.abandoned")
    for upload_id in leaving.uploads:
        stack.objects.abort_upload(record.data_key, upload_id)
        reach("sweep.aborted")
    for key in leaving.objects:
        stack.objects.delete(key)
        reach("sweep.deleted")
    stack.narrate(f"ledger {record.ledger.ledger_id}: swept attempt {record.uid}")


def _abort_if_certified(stack: Stack, leaving: Leaving) -> None:
    """A certified attempt is kept, but its object is complete: no upload on its key serves it."""
    record = leaving.attempt.record
    if stack.book.read(Certificate, keys.certificate(record.ledger.ledger_id, record.uid)) is None:
        return
    for upload_id in leaving.uploads:
        stack.objects.abort_upload(record.data_key, upload_id)
        reach("sweep.stray_aborted")


def _refuse_mass_delete(stack: Stack, going: list[Leaving], fleet: list[Leaving]) -> None:
    share = stack.settings.release.fleet_share_max
    if len(going) > SMALL_RUN and len(going) > share * len(fleet):
        raise RefusedError(
            f"sweep: {len(going)} of {len(fleet)} attempts would be deleted, more than the "
            f"{share:.0%} of release.fleet_share_max: is the metadata complete?"
        )


def _refuse_old_metadata(stack: Stack) -> None:
    """A metadata store restored from an old snapshot must not make us delete the only copies."""
    for stored in stack.book.iter_records(Publication, "publications/"):
        record = stored.record
        found = stack.topics.read(record.ml_name)
        if found is None or found[1].stat.czxid != record.node_czxid:
            continue  # deleted, or deleted and made again: a new history
        version = found[1].stat.version
        if version < record.node_version:
            raise RefusedError(
                f"{record.ml_name}: node version {version} is below the recorded "
                f"{record.node_version}: the metadata store went back in time; nothing is deleted"
            )
