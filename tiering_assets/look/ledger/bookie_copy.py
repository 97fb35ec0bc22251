"""Do the bookies give a whole ledger now? Its metadata alone proves nothing: a backup may name it.

Reads every entry, digests verified, from other replicas first than a copy is read from.
"""

from __future__ import annotations

from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import source_of
from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES
from tiering_assets.offload_format.keys import data_key
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.tasks.descriptors import BlockTask, TaskKind


def why_only_copy(stack: Stack, ledger_id: int, *, ml_name: str, uid: UUID) -> str | None:
    """Why an attempt's object may be all that is left of its ledger; None when the bookies give
    it.
    """
    node = stack.ledgers.read(ledger_id)
    why = (
        f"ledger {ledger_id}: no BookKeeper metadata"
        if node is None
        else _why_not_given(stack, node, ml_name=ml_name, uid=uid)
    )
    return why and f"the bookies do not give the ledger: {why}; it may be the only copy"


def _why_not_given(stack: Stack, node: LedgerNode, *, ml_name: str, uid: UUID) -> str | None:
    """Why the bookies do not give the ledger's every entry; None when they do.

    Reads as many bytes as the ledger has, within the topic's budgets. `uid` names the attempt that
    the reading is for.
    """
    ledger = node.metadata
    entries = ledger.last_entry_id + 1
    if entries <= 0:
        return None
    everything = BlockPlan(
        part_number=1,
        offset=0,
        block_length=HEADER_BYTES + FRAME_BYTES * entries + ledger.length,
        first_entry_id=0,
        last_entry_id=ledger.last_entry_id,
        payload_bytes=ledger.length,
    )
    try:
        task = BlockTask(
            kind=TaskKind.READ_SOURCE,
            attempt=str(uid),
            source=source_of(stack, node),
            data_key=data_key(uid, ledger.ledger_id),
            blocks=(everything,),
            topic=ml_name,
            budget_key=stack.budget_key,
        )
        rows = list(stack.runner.run([task]))
    except TierkeeperError as error:
        return str(error)
    failed = next((row.error for row in rows if row.error), None)
    if failed is not None:
        return failed
    found = sum(row.entries for row in rows), sum(row.payload_bytes for row in rows)
    if found != (entries, ledger.length):
        return (
            f"expected {entries} entries of {ledger.length} bytes, found {found[0]} of {found[1]}"
        )
    return None
