"""Does a certificate hold together by itself? Judged from its record alone, without the objects.

Owns: what any certificate that this project writes satisfies: it names the objects of its own ledger
and attempt, its blocks follow each other from entry 0 and byte 0 to the last, and its sums and its
data digest are those of its blocks. The release gate and the audit ask the same question here.
"""

from __future__ import annotations

import string
from datetime import datetime, timedelta
from uuid import UUID

from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES
from tiering_assets.offload_format.digests import object_digest
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records.models import BlockFacts, Certificate

_HEX = frozenset(string.hexdigits.lower())
_SHA256_DIGITS = 64


def inconsistencies(certificate: Certificate) -> list[str]:
    """Every contradiction in words; empty for a certificate that holds together."""
    facts, blocks = certificate.ledger, certificate.blocks
    wanted: list[tuple[str, object, object]] = [
        ("entries", facts.last_entry_id + 1, certificate.entries),
        ("payload bytes", sum(b.payload_bytes for b in blocks), certificate.payload_bytes),
        ("data object size", sum(b.block_length for b in blocks), certificate.data.size),
    ]
    try:
        wanted += [
            ("data key", data_key(certificate.uid, facts.ledger_id), certificate.data.key),
            ("index key", index_key(certificate.uid, facts.ledger_id), certificate.index.key),
        ]
    except ValueError:  # no ledger has such an id
        wanted.append(("ledger id", "that of a ledger", facts.ledger_id))
    found = [
        f"{what}: expected {want}, found {have}" for what, want, have in wanted if want != have
    ]
    if certificate.payload_bytes > facts.length:
        found.append(
            f"payload bytes: at most {facts.length} by BookKeeper, found {certificate.payload_bytes}"
        )
    found += _blocks(blocks, facts.last_entry_id)
    found += [f"suite {s.name} did not pass" for s in certificate.suites if not s.success]
    digests = [b.sha256 for b in blocks]
    named = [*digests, *(b.entries_sha256 for b in blocks), certificate.index.sha256]
    if not all(_is_digest(one) for one in named):
        found.append("a field that should hold a SHA-256 does not")
    elif (digest := object_digest(digests)) != certificate.data.sha256:
        found.append(
            f"data digest: expected {digest} by its blocks, found {certificate.data.sha256}"
        )
    return found


def _blocks(blocks: tuple[BlockFacts, ...], last_entry_id: int) -> list[str]:
    found, offset, first = [], 0, 0
    for number, block in enumerate(blocks, start=1):
        entries = block.last_entry_id - block.first_entry_id + 1
        least = HEADER_BYTES + FRAME_BYTES * entries + block.payload_bytes
        found += [
            f"block {number}: {what}: expected {want}, found {have}"
            for what, want, have in (
                ("part number", number, block.part_number),
                ("offset", offset, block.offset),
                ("first entry", first, block.first_entry_id),
            )
            if want != have
        ]
        if entries < 1 or block.payload_bytes < 0 or block.block_length < least:
            found.append(
                f"block {number}: {block.block_length} bytes cannot hold {entries} entries of "
                f"{block.payload_bytes} payload bytes"
            )
        offset, first = block.offset + block.block_length, block.last_entry_id + 1
    if first != last_entry_id + 1:
        found.append(f"last entry of its blocks: expected {last_entry_id}, found {first - 1}")
    return found


def gate_faults(
    certificate: Certificate, *, ledger_id: int, uid: UUID, now: datetime, skew: timedelta
) -> list[str]:
    """Why a certificate that was read at its ledger's and attempt's key must not be believed.

    `now` is the store's clock; a certificate from beyond it is forged, or its writer's clock was.
    """
    found = []
    if certificate.ledger.ledger_id != ledger_id:
        found.append(
            f"the certificate is of ledger {certificate.ledger.ledger_id}, not of {ledger_id}"
        )
    if certificate.uid != uid:
        found.append(f"the certificate is of attempt {certificate.uid}, not of {uid}")
    if certificate.verified_at > now + skew:
        found.append(
            f"the certificate is dated in the future: {certificate.verified_at:%Y-%m-%d %H:%M:%S} "
            f"UTC, the store's clock says {now:%Y-%m-%d %H:%M:%S}"
        )
    contradictions = inconsistencies(certificate)
    if contradictions:
        found.append(f"the certificate contradicts itself: {'; '.join(contradictions[:3])}")
    return found


def _is_digest(text: str) -> bool:
    return len(text) == _SHA256_DIGITS and _HEX.issuperset(text)
