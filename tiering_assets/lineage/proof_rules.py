"""Does the truth still say what a row of the catalogue says? Facts in, sentences out.

Owns: the certificate by the digest that the row names (of a broker's copy its record, which no row
names), the block's facts in it, and the object by version and size. Each is one sentence with both
values, said whether it agrees or not.
"""

from __future__ import annotations

from dataclasses import dataclass

from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.records.models import BlockFacts, BrokerCopy, Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.resources.object_store.store import ObjectHead, kept_version


@dataclass(frozen=True, slots=True)
class TruthCompared:
    """One comparison with the truth."""

    agrees: bool
    what: str


def record_compared(
    block: PlacedBlock,
    stored: Stored[Certificate] | Stored[BrokerCopy] | None,
    why: str | None = None,
) -> TruthCompared:
    """`why` says why there is no record to read."""
    name = f"ledger {block.ledger_id}, part {block.part}: {_record_of(block)}"
    if stored is None:
        return TruthCompared(agrees=False, what=f"{name}: {why or 'it is not there'}")
    if not block.by_broker and stored.sha256 != block.certificate_sha256:
        return TruthCompared(
            agrees=False,
            what=f"{name}: has digest {stored.sha256}, the row names {block.certificate_sha256}",
        )
    facts = next((one for one in stored.record.blocks if one.part_number == block.part), None)
    said = _facts_of(stored.record, facts)
    row = _facts_of_row(block)
    if facts is None or said != row:
        return TruthCompared(agrees=False, what=f"{name}: says {said}, the row {row}")
    return TruthCompared(agrees=True, what=f"{name}: agrees, digest {stored.sha256}")


def object_compared(
    block: PlacedBlock, head: ObjectHead | None, record: Certificate | BrokerCopy | None
) -> TruthCompared:
    """Without a record the object can still be too short for the block."""
    name = f"ledger {block.ledger_id}, part {block.part}: object"
    if head is None:
        return TruthCompared(agrees=False, what=f"{name}: {block.data_key} is not there")
    if kept_version(head.version_id) != kept_version(block.version_id):
        return TruthCompared(
            agrees=False,
            what=f"{name}: is version {head.version_id}, the row names {block.version_id}",
        )
    if record is not None and (head.size, head.etag) != (record.data.size, record.data.etag):
        return TruthCompared(
            agrees=False,
            what=f"{name}: has {head.size} bytes and ETag {head.etag}, its {_record_of(block)} "
            f"says {record.data.size} and {record.data.etag}",
        )
    if head.size < block.end:
        return TruthCompared(
            agrees=False, what=f"{name}: has {head.size} bytes, the block ends at {block.end}"
        )
    return TruthCompared(agrees=True, what=f"{name}: agrees, {head.size} bytes, ETag {head.etag}")


def _record_of(block: PlacedBlock) -> str:
    return "record" if block.by_broker else "certificate"


def _facts_of(record: Certificate | BrokerCopy, facts: BlockFacts | None) -> tuple[object, ...]:
    if facts is None:
        return ("no such part",)
    return (
        record.bucket,
        record.data.key,
        record.data.version_id,
        facts.first_entry_id,
        facts.last_entry_id,
        facts.offset,
        facts.block_length,
        facts.sha256,
    )


def _facts_of_row(block: PlacedBlock) -> tuple[object, ...]:
    return (
        block.bucket,
        block.data_key,
        block.version_id,
        block.first_entry_id,
        block.last_entry_id,
        block.offset,
        block.length,
        block.sha256,
    )
