"""Delete what abandoned attempts left. design section 6.4.

The order is the contract: list the bucket's attempts first, read metadata after, decide (and read
the bookies through where an object may be all that is left), win the outcome `abandon`, decide
again from scratch right before the delete, abort unfinished uploads, delete data and index objects,
write `swept`. Records stay: they are how people see what happened. Dry run is a mode of the same
code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tiering_assets.clean.deleting import Going, delete_leavings, record_swept
from tiering_assets.clean.leavings_evidence import decide_after_reading, decide_leavings
from tiering_assets.clean.locked_leavings import retry_locked_leavings
from tiering_assets.clean.orphans import Sweep
from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Dated, Effect, Kind
from tiering_assets.ground.reasons import NotNow, not_now
from tiering_assets.ground.stack import Stack, asking
from tiering_assets.look.brakes.holds import require_nothing_held
from tiering_assets.look.ledger.quarantine import win_outcome
from tiering_assets.look.topic.bucket_listing import BucketListing, Pair, list_bucket
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate, Outcome, Publication
from tiering_assets.records.stored import Stored
from tiering_assets.records.sweep_models import Swept
from tiering_assets.resources.errors import (
    FormatError,
    ObjectStoreError,
    RefusedError,
    StaleEvidenceError,
)

SMALL_RUN = 100  # below this many deletes the share of the fleet is not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What one attempt left: its objects that exist, its unfinished uploads, and the decision.

    `done` is what deleting it freed; `error` why some of it is still there.
    """

    attempt: Stored[Attempt]
    objects: tuple[str, ...]
    uploads: tuple[str, ...]
    decision: Sweep | NotNow[str]
    bytes: int
    done: Swept | None = None
    error: str = ""

    @property
    def pair(self) -> Pair:
        return self.attempt.record.ledger.ledger_id, self.attempt.record.uid


def find_leavings(stack: Stack, listing: BucketListing | None = None) -> list[Leaving]:
    """Every attempt that still has objects or uploads, with the decision about it."""
    listing = listing or list_bucket(stack)
    attempts = list(readable_attempts(stack))
    # Metadata is read after the listings: what was published in between is seen, never deleted.
    found: list[Leaving] = []
    for attempt in attempts:
        record = attempt.record
        pair = record.ledger.ledger_id, record.uid
        objects, uploads = listing.keys_of(pair), listing.uploads_of(pair)
        if not objects and not uploads:
            continue
        decision, _dated = decide_leavings(stack, attempt)
        found.append(
            Leaving(
                attempt=attempt,
                objects=objects,
                uploads=uploads,
                decision=decision,
                bytes=listing.bytes_of(pair),
            )
        )
    return found


def sweep(
    stack: Stack,
    *,
    execute: bool,
    listing: BucketListing | None = None,
    only: Collection[Pair] | None = None,
) -> list[Leaving]:
    """Delete the leavings that may go, no more than `only`; without `execute` only say which.

    Where the store would not delete something, the others go all the same.

    Raises:
        RefusedError: metadata went backwards, or the run would delete too much of the fleet.
    """
    listing = listing or list_bucket(stack)
    leavings = find_leavings(stack, listing)
    doubtful = refuse_old_metadata(stack)
    leavings = [_kept_if(leaving, doubtful) for leaving in leavings]
    going = [leaving for leaving in leavings if isinstance(leaving.decision, Sweep)]
    refuse_mass_delete(stack, len(going), fleet=len(leavings))
    if not execute:
        return leavings
    require_nothing_held(stack, "sweep")
    stack.book.take_up(leaving.pair[0] for leaving in going)
    _finish(stack, listing)
    acted = [
        _act(stack, leaving) if only is None or leaving.pair in only else leaving
        for leaving in leavings
    ]
    retry_locked_leavings(stack)
    return acted


def _act(stack: Stack, leaving: Leaving) -> Leaving:
    try:
        if isinstance(leaving.decision, Sweep):
            return _sweep_one(stack, leaving)
        if leaving.uploads:
            _abort_if_certified(stack, leaving)
    except (ObjectStoreError, RefusedError, StaleEvidenceError, FormatError) as error:
        stack.narrate(str(error))
        return replace(leaving, error=str(error))
    return leaving


def _finish(stack: Stack, listing: BucketListing) -> None:
    """Write what runs that died had no time to write."""
    book = stack.book
    decided = book.pairs("attempts/") & book.pairs("outcomes/")
    for pair in sorted(decided - book.pairs("sweeps/") - listing.pairs()):
        try:
            outcome = book.read(Outcome, keys.outcome(*pair))
            if outcome is None or outcome.record.outcome != "abandon":
                continue
            attempt = book.require(Attempt, keys.attempt(*pair))
        except FormatError as error:
            stack.tell(f"ledger {pair[0]}: {error}", pair[0])
        else:
            nothing = _going(attempt, (), (), outcome.sha256, Dated())
            record_swept(stack, nothing, bytes_freed=None, bytes_stay=None)


def _sweep_one(stack: Stack, leaving: Leaving) -> Leaving:
    record = leaving.attempt.record
    ledger_id, uid = record.ledger.ledger_id, record.uid
    # Those before it may have taken an hour, and what is given up cannot be taken up again.
    has_data = record.data_key in leaving.objects
    decide = decide_after_reading if has_data else decide_leavings
    decision, _dated = decide(stack, leaving.attempt)
    if isinstance(decision, NotNow):
        return replace(leaving, decision=decision)
    before = decision
    if decision.replaced:
        won: Stored[Outcome] | None = stack.book.require(Outcome, keys.outcome(ledger_id, uid))
    else:
        won = win_outcome(stack, leaving.attempt, "abandon", reason="swept: nothing refers to it")
    if won is None:
        return leaving  # somebody publishes it after all
    reach("sweep.abandoned", ledger_id, topic=record.ml_name, attempt=uid)
    held = asking(stack, Kind.HOLDS)
    require_nothing_held(stack, "sweep")
    decision, dated = decide_leavings(stack, leaving.attempt)
    if isinstance(decision, Sweep) and has_data and decision.stands_on_more_than(before):
        decision = not_now("the next sweep reads what stays: its topic or BookKeeper has changed")
    if isinstance(decision, NotNow):
        return replace(leaving, decision=decision)
    going = _going(leaving.attempt, leaving.objects, leaving.uploads, won.sha256, dated.and_(held))
    done = delete_leavings(stack, going)
    stack.tell(f"ledger {ledger_id}: swept attempt {uid}", ledger_id, attempt=uid)
    return replace(leaving, done=done)


def _going(
    attempt: Stored[Attempt],
    objects: Sequence[str],
    uploads: Sequence[str],
    intent: str,
    evidence: Dated,
) -> Going:
    record = attempt.record
    return Going(
        ledger_id=record.ledger.ledger_id,
        uid=record.uid,
        ml_name=record.ml_name,
        objects=objects,
        uploads=uploads,
        intent=intent,
        effect=Effect.SWEEP,
        evidence=evidence,
    )


def _abort_if_certified(stack: Stack, leaving: Leaving) -> None:
    """A certified attempt is kept, but its object is complete: no upload on its key serves it."""
    record = leaving.attempt.record
    if stack.book.read(Certificate, keys.certificate(record.ledger.ledger_id, record.uid)) is None:
        return
    for upload_id in leaving.uploads:
        stack.objects.abort_upload(record.data_key, upload_id)
        reach(
            "sweep.stray_aborted", record.ledger.ledger_id, topic=record.ml_name, attempt=record.uid
        )


def refuse_mass_delete(stack: Stack, going: int, *, fleet: int) -> None:
    """Raise RefusedError where one run would delete too large a share of all attempts."""
    share = stack.settings.release.fleet_share_max
    if going > SMALL_RUN and going > share * fleet:
        raise RefusedError(
            f"sweep: {going} of {fleet} attempts would be deleted, more than the "
            f"{share:.0%} of release.fleet_share_max: is the metadata complete?"
        )


def readable_attempts(stack: Stack) -> Iterator[Stored[Attempt]]:
    """Every attempt; one whose record cannot be read is told, and nothing of it goes."""

    def tell(key: str, error: FormatError) -> None:
        stack.narrate(f"{key}: nothing of this attempt is deleted: {error}")

    return stack.book.iter_readable(Attempt, "attempts/", tell)


def _kept_if(leaving: Leaving, doubtful: frozenset[str]) -> Leaving:
    record = leaving.attempt.record
    if not isinstance(leaving.decision, Sweep) or keys.topic_hash(record.ml_name) not in doubtful:
        return leaving
    why = "its topic's node or a publication record of it cannot be read"
    return replace(leaving, decision=not_now(why))


def refuse_old_metadata(stack: Stack) -> frozenset[str]:
    """A metadata store restored from an old snapshot must not make us delete the only copies.

    Returns the hashes of topics of which a publication, or the node, cannot be read: nothing of
    those may go.
    """
    doubtful: set[str] = set()

    def tell(key: str, error: FormatError) -> None:
        stack.narrate(f"nothing of its topic is deleted: {error}")
        doubtful.add(keys.topic_hash_of(key))

    for stored in stack.book.iter_readable(Publication, "publications/", tell):
        record = stored.record
        try:
            found = stack.topics.read(record.ml_name)
        except FormatError as error:
            tell(stored.key, error)
            continue
        if found is None or found[1].stat.czxid != record.node_czxid:
            continue  # deleted, or deleted and made again: a new history
        version = found[1].stat.version
        if version < record.node_version:
            raise RefusedError(
                f"{record.ml_name}: node version {version} is below the recorded "
                f"{record.node_version}: the metadata store went back in time; nothing is deleted"
            )
    return frozenset(doubtful)
