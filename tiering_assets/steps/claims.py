"""Claims: a run says that it works on a ledger, so that another does not do the same work.

Never relied on for safety: attempts have keys of their own, and outcomes decide. A claim lives until
it expires by the store's clock; it is renewed and taken over with If-Match.
"""

from __future__ import annotations

from datetime import timedelta

from resources.errors import ObjectConflictError, ObjectExistsError
from tiering_assets.records import keys
from tiering_assets.records.models import Claim
from tiering_assets.steps.crash_points import reach
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack


def read_claim(stack: Stack, ledger_id: int) -> Stored[Claim] | None:
    return stack.book.read(Claim, keys.claim(ledger_id))


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
    reach("offload.claimed")
    return None


def drop_claim(stack: Stack, ledger_id: int) -> None:
    """End our claim by letting it expire now; somebody else's is left alone."""
    found = read_claim(stack, ledger_id)
    if found is None or found.record.run_id != stack.run_id:
        return
    ended = Claim(
        ledger_id=ledger_id,
        run_id=stack.run_id,
        attempt=None,
        expires_at=found.record.expires_at - timedelta(days=1),
    )
    try:
        stack.book.replace(found, ended)
    except ObjectConflictError:
        return
    reach("offload.claim_dropped")
