"""A certified copy that was about to be published and does not stand: is it the copy that is
broken?

Owns: such a copy is read again, against its certificate and the bookies, before it goes out once
more, by whatever run. As its topic's first ledger a broken one would keep all others from being
published, and what no broker can read would take its readers offline twice a run, run after run.
"""

from __future__ import annotations

from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.quarantine import is_quarantined
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, Outcome
from tiering_assets.records.stored import Stored
from tiering_assets.release.reread import reread_copies
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.metastore.ledgers import LedgerNode


def read_withdrawn(stack: Stack, certificate: Stored[Certificate], node: LedgerNode) -> Wait | None:
    """None when the copy may go out; why not when it differs, and is quarantined now.

    Reads the whole ledger twice, and nothing of one that no run ever tried to publish.

    Raises:
        ObjectStoreError: it could not be read, which says nothing about the copy.
    """
    ledger_id, uid = node.metadata.ledger_id, certificate.record.uid
    if stack.book.read(Outcome, keys.outcome(ledger_id, uid)) is None:
        return None
    waiting = reread_copies(stack, {ledger_id: (certificate, node)}, before="publication").waiting
    if ledger_id not in waiting:
        return None
    if not is_quarantined(stack, ledger_id, uid):
        raise ObjectStoreError(f"ledger {ledger_id}: {waiting[ledger_id]}")
    return Wait(Reason.QUARANTINED, str(waiting[ledger_id]))
