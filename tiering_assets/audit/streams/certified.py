"""Does the certificate of a segment hold together, and repeat what was assigned? Pure.

Owns: entries and payload bytes add up, blocks follow each other in each ledger and tile the data
object, every suite passed, and the objects are named by the attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES
from tiering_assets.offload_format.digests import is_sha256, object_digest
from tiering_assets.records.stream_models import AssignedRange, CertifiedLedger, SegmentOffloaded

_INT64_MAX: Final = 2**63 - 1
Place = tuple[int, int, int, int, int]
"""Ledger, first and last entry, payload bytes before the first and up to the last."""


def places_of(ranges: Iterable[AssignedRange | CertifiedLedger]) -> list[Place]:
    return [
        (
            one.ledger_id,
            one.first_entry_id,
            one.last_entry_id,
            one.bytes_before,
            one.bytes_upto,
        )
        for one in ranges
    ]


def contradictions(proof: SegmentOffloaded) -> list[str]:
    """Every contradiction of a certificate, in words; empty for one that holds together."""
    ledgers = proof.ledgers
    blocks = [block for one in ledgers for block in one.blocks]
    wanted: list[tuple[str, object, object]] = [
        ("data key", str(proof.uid), proof.data.key),
        ("index key", f"{proof.uid}-index", proof.index.key),
        ("entries", sum(_entries(one) for one in ledgers), proof.entries),
        ("payload bytes", sum(one.payload_bytes for one in blocks), proof.payload_bytes),
        ("data object size", sum(one.block_length for one in blocks), proof.data.size),
    ]
    offset = 0
    for number, block in enumerate(blocks, start=1):
        wanted += [
            (f"part number of block {number}", number, block.part_number),
            (f"offset of block {number}", offset, block.offset),
        ]
        offset = block.offset + block.block_length
    for one in ledgers:
        wanted += _of_ledger(one)
    found = [
        f"{what}: expected {want}, found {have}" for what, want, have in wanted if want != have
    ]
    found += [
        f"no ledger has id {one.ledger_id}"
        for one in ledgers
        if not 0 <= one.ledger_id <= _INT64_MAX
    ]
    if not ledgers:
        found.append("ledgers: expected at least one, found none")
    if not proof.suites:
        found.append("suites: expected at least one, found none")
    found += [f"suite {one.name} did not pass" for one in proof.suites if not one.success]
    return [*found, *_rooms(ledgers), *_digests(proof)]


def _entries(one: CertifiedLedger) -> int:
    return one.last_entry_id - one.first_entry_id + 1


def _of_ledger(one: CertifiedLedger) -> Iterator[tuple[str, object, object]]:
    name, first = f"of ledger {one.ledger_id}", one.first_entry_id
    for block in one.blocks:
        yield f"first entry of block {block.part_number} {name}", first, block.first_entry_id
        first = block.last_entry_id + 1
    yield f"last entry {name} in its blocks", one.last_entry_id, first - 1
    held = sum(block.payload_bytes for block in one.blocks)
    yield f"payload bytes {name} in its blocks", one.bytes_upto - one.bytes_before, held


def _rooms(ledgers: Iterable[CertifiedLedger]) -> Iterator[str]:
    for block in (block for one in ledgers for block in one.blocks):
        if not 0 <= block.first_entry_id <= _INT64_MAX:
            yield f"block {block.part_number}: no entry has id {block.first_entry_id}"
        entries = block.last_entry_id - block.first_entry_id + 1
        least = HEADER_BYTES + FRAME_BYTES * entries + block.payload_bytes
        if entries < 1 or block.payload_bytes < 0 or block.block_length < least:
            yield (
                f"block {block.part_number}: {block.block_length} bytes cannot hold {entries} "
                f"entries of {block.payload_bytes} payload bytes"
            )


def _digests(proof: SegmentOffloaded) -> Iterator[str]:
    blocks = [block for one in proof.ledgers for block in one.blocks]
    digests = [block.sha256 for block in blocks]
    named = [*digests, *(block.entries_sha256 for block in blocks), proof.index.sha256]
    if not all(is_sha256(one) for one in named):
        yield "a field that should hold a SHA-256 does not"
    elif (digest := object_digest(digests)) != proof.data.sha256:
        yield f"data digest: expected {digest} by its blocks, found {proof.data.sha256}"
