"""Runs that failed at a ledger and left no attempt that says why: one small record, while it lasts.

Owns: a failure that would leave nothing in the bucket is told by `failures/<ledger id>.json` until
the ledger moves on. It is for people and decides nothing. Writing it is best effort: who loses a race
to another run leaves that run's, and a store that fails meanwhile never hides the ledger's own error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from resources.errors import ObjectConflictError, ObjectExistsError, TierkeeperError
from tiering_assets.ground.record_book import Stored
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.failure_model import LedgerFailure

ERROR_CHARS_MAX = 2000


@dataclass(frozen=True, slots=True)
class Failed:
    """What a run came to that left no attempt; `ml_name` where it is known."""

    error: TierkeeperError
    ml_name: str | None


def settle_failures(stack: Stack, failed: Mapping[int, Failed], further: Collection[int]) -> None:
    """Record what failed, and remove the records of ledgers that got further. Raises nothing of ours.

    Costs one listing, and two or three requests for each ledger that failed.
    """
    for ledger_id, what in sorted(failed.items()):
        try:
            _record(stack, ledger_id, what)
        except (ObjectExistsError, ObjectConflictError):
            continue  # another run failed at it, too, and has said so
        except TierkeeperError as error:
            stack.narrate(f"ledger {ledger_id}: its failure could not be recorded: {error}")
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
    """Ledgers that have such a record, and when the store got it. One listing, whatever they are."""
    return {
        int(key.removeprefix(keys.FAILURES).removesuffix(".json")): stored_at
        for key, stored_at in stack.book.stored_at(keys.FAILURES).items()
    }
