"""Claims: a run says that it works on a ledger, so that another does not do the same work.

Never relied on for safety: attempts have keys of their own, and outcomes decide. A claim lives
until it expires by the store's clock; it is renewed and taken over with If-Match. Who takes a claim
over interrupts the tasks that its dead run may have left behind at a Spark server.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from tiering_assets.ground.effects import reach
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.records import keys
from tiering_assets.records.models import Claim
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError, ObjectConflictError, ObjectExistsError

# How a claim is dropped, so that it is never taken for a dead one; far more than a claim lives.
_DATED_BACK = timedelta(days=1)
# A run with another offload.claim_ttl_s than ours is given an hour more.
_LIVES_S_MIN = 3600.0


def read_claim(stack: Stack, ledger_id: int) -> Stored[Claim] | None:
    """The claim on a ledger. One that cannot be read lives as long as any may, from its writing
    on.
    """
    key = keys.claim(ledger_id)
    try:
        return stack.book.read(Claim, key)
    except FormatError as error:
        head = stack.objects.head(stack.book.prefix + key)
        if head is None:
            return None
        stack.tell(f"ledger {ledger_id}: its claim cannot be read: {error}", ledger_id)
        unknown = Claim(
            ledger_id=ledger_id,
            run_id="unknown",
            attempt=None,
            expires_at=head.last_modified + longest_claim(stack),
        )
        return Stored(
            key=key, record=unknown, sha256="", stored_at=head.last_modified, etag=head.etag
        )


def longest_claim(stack: Stack) -> timedelta:
    """How long after its writing a claim may live."""
    return timedelta(seconds=_LIVES_S_MIN + 2 * stack.settings.offload.claim_ttl_s)


def live_claims(stack: Stack, store_now: datetime) -> set[int]:
    """Ledgers that runs work on now. A claim written longer ago than one may live is not read."""
    recent = stack.book.keys_since("claims/", store_now - longest_claim(stack))
    found = stack.in_parallel(lambda key: read_claim(stack, keys.claimed_by(key)), recent)
    return {
        stored.record.ledger_id
        for stored in found
        if stored is not None and stored.record.expires_at > store_now
    }


def claim_ledger(stack: Stack, ledger_id: int) -> Claim | None:
    """Claim a ledger for this run. Returns the other run's live claim when there is one."""
    store_now = stack.objects.server_time()
    ours = Claim(
        ledger_id=ledger_id,
        run_id=stack.run_id,
        attempt=None,
        expires_at=store_now + timedelta(seconds=stack.settings.offload.claim_ttl_s),
    )
    key = keys.claim(ledger_id)
    found = read_claim(stack, ledger_id)
    try:
        if found is None:
            stack.book.create(key, ours)
        elif found.record.run_id != stack.run_id and found.record.expires_at > store_now:
            return found.record
        else:
            stack.book.replace(found, ours)
    except (ObjectExistsError, ObjectConflictError):
        other = read_claim(stack, ledger_id)
        return other.record if other is not None else ours
    reach("offload.claimed", ledger_id)
    if found is not None and _died(found.record, stack.run_id, store_now):
        stack.tell(
            f"ledger {ledger_id}: run {found.record.run_id} let its claim run out", ledger_id
        )
        attempts = [str(one.record.uid) for one in attempts_of(stack, ledger_id)]
        stack.runner.interrupt(found.record.run_id, attempts)
    return None


def _died(claim: Claim, our_run_id: str, store_now: datetime) -> bool:
    """Another run neither renewed this claim nor dropped it. One long past has no tasks any
    more.
    """
    return claim.run_id != our_run_id and store_now - claim.expires_at < _DATED_BACK / 2


def drop_claim(stack: Stack, ledger_id: int) -> None:
    """End our claim by letting it expire now; somebody else's is left alone."""
    found = read_claim(stack, ledger_id)
    if found is None or found.record.run_id != stack.run_id:
        return
    ended = Claim(
        ledger_id=ledger_id,
        run_id=stack.run_id,
        attempt=None,
        expires_at=found.record.expires_at - _DATED_BACK,
    )
    try:
        stack.book.replace(found, ended)
    except ObjectConflictError:
        return
    reach("offload.claim_dropped", ledger_id)
