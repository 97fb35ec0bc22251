"""Reads the truth again for rows that are shown: records and objects, one of each an attempt.

Two requests for each attempt, however many of its blocks are shown. Payloads are not read:
`tierkeeper object verify` reads every byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.proof_rules import TruthCompared, object_compared, record_compared
from tiering_assets.records import keys
from tiering_assets.records.models import BrokerCopy, Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.store import ObjectHead

Attempt = tuple[int, str]


def prove_blocks(stack: Stack, blocks: Sequence[PlacedBlock]) -> list[TruthCompared]:
    """Each block with the record that says it and with its object, in their order."""
    firsts = {(one.ledger_id, one.uid): one for one in reversed(blocks)}
    read = stack.in_parallel(lambda one: _truth(stack, one), [*firsts.values()])
    truth = dict(zip(firsts, read, strict=True))
    found: list[TruthCompared] = []
    for block in blocks:
        stored, why, head = truth[block.ledger_id, block.uid]
        found.append(record_compared(block, stored, why))
        if block.bucket != stack.objects.bucket:
            what = (
                f"ledger {block.ledger_id}, part {block.part}: object is in bucket {block.bucket}"
            )
            found.append(TruthCompared(agrees=False, what=f"{what}, store.bucket is another"))
            continue
        record = None if stored is None else stored.record
        found.append(object_compared(block, head, record))
    return found


def _truth(
    stack: Stack, block: PlacedBlock
) -> tuple[Stored[Certificate] | Stored[BrokerCopy] | None, str | None, ObjectHead | None]:
    stored, why = None, None
    try:
        stored = _record(stack, block)
    except FormatError as error:
        why = str(error)
    head = None
    if block.bucket == stack.objects.bucket:
        head = stack.objects.head(block.data_key)  # what brokers read
    return stored, why, head


def _record(stack: Stack, block: PlacedBlock) -> Stored[Certificate] | Stored[BrokerCopy] | None:
    uid = UUID(block.uid)
    if block.by_broker:
        return stack.book.read(BrokerCopy, keys.broker_copy(block.ledger_id, uid))
    return stack.book.read(Certificate, keys.certificate(block.ledger_id, uid))
