"""What earlier runs left of a ledger: an attempt to publish, to verify, or nothing but why it
failed.

Owns: work that is proven is never done again, and nothing unproven is trusted. An attempt with a
certificate goes on to publication; one with both objects is verified against the bookies anew; one
whose run died in mid-copy goes on with the parts that are there; any other is left for clean-up and
the ledger gets a new attempt with keys of its own.

A failure that would leave nothing in the bucket is told by `failures/<ledger id>.json` until the
ledger moves on. It is for people and decides nothing. Writing it is best effort: who loses a race
to another run leaves that run's, and a store that fails meanwhile never hides the ledger's own
error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.quarantine import is_quarantined
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate, LedgerFacts, LedgerFailure, Outcome
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import (
    FormatError,
    ObjectConflictError,
    ObjectExistsError,
    TierkeeperError,
)
from tiering_assets.resources.object_store.store import Part


@dataclass(frozen=True, slots=True)
class Certified:
    """A proven copy. Publication is what is left."""

    attempt: Stored[Attempt]
    certificate: Stored[Certificate]


@dataclass(frozen=True, slots=True)
class Complete:
    """Both objects are there; whether they are right is not known."""

    attempt: Stored[Attempt]


@dataclass(frozen=True, slots=True)
class Work:
    """What makes two attempts the same work: their objects' bytes are equal."""

    ledger: LedgerFacts
    block_bytes: int
    object_bytes: int


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An attempt whose run died while copying, for the same work.

    Without an upload its data object is complete and only the index object is missing.
    """

    attempt: Stored[Attempt]
    upload_id: str | None
    parts: tuple[Part, ...] = ()


def attempts_of(stack: Stack, ledger_id: int) -> list[Stored[Attempt]]:
    """Every attempt on a ledger, oldest first by the store's clock."""
    listed = stack.book.iter_records(Attempt, keys.attempts_of(ledger_id))
    return sorted(listed, key=lambda stored: stored.stored_at)


def find_resumable(stack: Stack, ledger_id: int) -> Certified | Complete | None:
    """The attempt to go on with: certified before complete, newer before older."""
    complete: Complete | None = None
    for attempt in reversed(attempts_of(stack, ledger_id)):
        uid = attempt.record.uid
        outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
        if outcome is not None and outcome.record.outcome == "abandon":
            continue
        if is_quarantined(stack, ledger_id, uid):
            continue
        certificate = _certificate(stack, ledger_id, attempt)
        if certificate is not None:
            return Certified(attempt, certificate)
        if complete is None and _objects_there(stack, attempt.record):
            complete = Complete(attempt)
    return complete


def is_proven(stack: Stack, attempt: Stored[Attempt]) -> bool:
    """Whether an attempt has its proof and no doubt, given up or not.

    FormatError where its certificate cannot be read: that proves nothing, and disproves nothing.
    """
    ledger_id, uid = attempt.record.ledger.ledger_id, attempt.record.uid
    if is_quarantined(stack, ledger_id, uid):
        return False
    found = stack.book.read(Certificate, keys.certificate(ledger_id, uid))
    return found is not None and found.record.previous == attempt.sha256


def newest_certified(stack: Stack, ledger_id: int) -> Stored[Attempt] | None:
    """The attempt whose publication is the next: proven, not given up and not doubted."""
    for attempt in reversed(attempts_of(stack, ledger_id)):
        if find_certified(stack, ledger_id, attempt.record.uid) is not None:
            return attempt
    return None


def find_unfinished(stack: Stack, wanted: Work) -> Unfinished | None:
    """The newest attempt at exactly this work that nobody gave up and that left something to go on
    with.
    """
    for attempt in reversed(attempts_of(stack, wanted.ledger.ledger_id)):
        record = attempt.record
        ledger_id, uid = record.ledger.ledger_id, record.uid
        if (record.ledger, record.block_bytes, record.object_bytes) != (
            wanted.ledger,
            wanted.block_bytes,
            wanted.object_bytes,
        ):
            continue
        if stack.book.read(Outcome, keys.outcome(ledger_id, uid)) is not None:
            continue
        if is_quarantined(stack, ledger_id, uid):
            continue
        data = stack.objects.head(record.data_key)
        if data is not None:
            if data.size == record.object_bytes and stack.objects.head(record.index_key) is None:
                return Unfinished(attempt, None)
            continue
        upload = _fullest_upload(stack, record)
        if upload is not None:
            return Unfinished(attempt, *upload)
    return None


def _fullest_upload(stack: Stack, record: Attempt) -> tuple[str, tuple[Part, ...]] | None:
    """The upload with most parts: a create whose answer was lost leaves an empty one beside it."""
    found: list[tuple[str, tuple[Part, ...]]] = []
    for upload in stack.objects.list_uploads(record.data_key):
        if upload.key != record.data_key:
            continue
        parts = stack.objects.list_parts(record.data_key, upload.upload_id)
        if parts is not None:
            found.append((upload.upload_id, tuple(parts)))
    return max(found, key=lambda one: (len(one[1]), one[0]), default=None)


def find_certified(stack: Stack, ledger_id: int, uid: UUID) -> Certified | None:
    """This attempt with its proof; None where it has none, or was abandoned or quarantined."""
    attempt = stack.book.read(Attempt, keys.attempt(ledger_id, uid))
    if attempt is None:
        return None
    outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
    if outcome is not None and outcome.record.outcome == "abandon":
        return None
    if is_quarantined(stack, ledger_id, uid):
        return None
    certificate = _certificate(stack, ledger_id, attempt)
    return None if certificate is None else Certified(attempt, certificate)


def _certificate(
    stack: Stack, ledger_id: int, attempt: Stored[Attempt]
) -> Stored[Certificate] | None:
    try:
        found = stack.book.read(Certificate, keys.certificate(ledger_id, attempt.record.uid))
    except FormatError:
        return None
    return found if found is not None and found.record.previous == attempt.sha256 else None


def _objects_there(stack: Stack, attempt: Attempt) -> bool:
    data = stack.objects.head(attempt.data_key)
    return (
        data is not None
        and data.size == attempt.object_bytes
        and stack.objects.head(attempt.index_key) is not None
    )


ERROR_CHARS_MAX = 2000


@dataclass(frozen=True, slots=True)
class Failed:
    """What a run came to that left no attempt; `ml_name` where it is known."""

    error: TierkeeperError
    ml_name: str | None


def settle_failures(stack: Stack, failed: Mapping[int, Failed], further: Collection[int]) -> None:
    """Record what failed, and remove the records of ledgers that got further. Raises nothing of
    ours.

    Costs one listing, and two or three requests for each ledger that failed.
    """
    for ledger_id, what in sorted(failed.items()):
        try:
            _record(stack, ledger_id, what)
        except (ObjectExistsError, ObjectConflictError):
            continue  # another run failed at it, too, and has said so
        except TierkeeperError as error:
            stack.tell(f"ledger {ledger_id}: its failure could not be recorded: {error}", ledger_id)
    try:
        over = sorted(list_failures(stack).keys() & set(further)) if further else []
        for ledger_id in over:
            stack.book.delete(keys.failure(ledger_id))
    except TierkeeperError as error:
        stack.narrate(f"records of failures that are over stay for now: {error}")


def _record(stack: Stack, ledger_id: int, what: Failed) -> None:
    now = stack.now()
    found = read_failure(stack, ledger_id)
    ours = LedgerFailure(
        ledger_id=ledger_id,
        ml_name=what.ml_name,
        # A message may quote bytes of a name that are no text; a record must be.
        error=str(what.error).encode("utf-8", "replace").decode("utf-8")[:ERROR_CHARS_MAX],
        error_class=type(what.error).__name__,
        tries=1 if found is None else found.record.tries + 1,
        first_at=now if found is None else found.record.first_at,
        last_at=now,
        writer=stack.writer,
    )
    if found is None:
        stack.book.create(keys.failure(ledger_id), ours)
    else:
        stack.book.replace(found, ours)


def read_failure(stack: Stack, ledger_id: int) -> Stored[LedgerFailure] | None:
    """None where nothing failed. FormatError when it cannot be read."""
    return stack.book.read(LedgerFailure, keys.failure(ledger_id))


def list_failures(stack: Stack) -> dict[int, datetime]:
    """Ledgers that have such a record, and when the store got it. One listing, whatever they
    are.
    """
    return {
        int(key.removeprefix(keys.FAILURES).removesuffix(".json")): stored_at
        for key, stored_at in stack.book.stored_at(keys.FAILURES).items()
    }
