"""Is a copy what the bookies served, and what its certificate says? Invariant I3, decided in one
place.

Owns: every block is compared on count, payload bytes and the digest of its entries, and
the whole on entries = last entry id + 1 and on the payload bytes of the plan, which are those that
the last entry's own header counts; a certified object on its identity (size, ETag, version), the
index's digest and each block's; and a certificate on holding together by itself: its objects are of
its own ledger and attempt, its blocks follow each other from entry 0 and byte 0, its sums are
theirs. Differences are listed, not raised, so that a quarantine record can name them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import UUID

from tiering_assets.ground.moments import moment
from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES
from tiering_assets.offload_format.digests import is_sha256, object_digest
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records.models import BlockFacts, Certificate, ObjectFacts
from tiering_assets.resources.errors import IntegrityError, SettingsError
from tiering_assets.resources.object_store.multipart import ExpectedPart
from tiering_assets.resources.object_store.store import ObjectHead, StoredObject, kept_version
from tiering_assets.tasks.descriptors import Block, BlockRow

SAMPLED_EVERY: Final = 10  # of a ledger's blocks, with verify.second_replica = sample


def rows_by_part(rows: Iterable[BlockRow]) -> dict[int, BlockRow]:
    """Good rows by part number. A task that ran twice gives equal rows; the first one is kept.

    Raises:
        IntegrityError: two rows of one part differ: somebody answered differently twice.
    """
    kept: dict[int, BlockRow] = {}
    for row in rows:
        if row.error:
            continue
        first = kept.setdefault(row.part_number, row)
        if _facts(first) != _facts(row):
            raise IntegrityError(
                f"ledger {row.ledger_id} block {row.part_number}: read twice with different "
                f"results: {_facts(first)} and {_facts(row)}"
            )
    return kept


def expected_parts(rows: Mapping[int, BlockRow]) -> dict[int, ExpectedPart]:
    """What an upload must hold by the rows of its copy, by part; several blocks may share one."""
    return {
        row.part: ExpectedPart(
            part_number=row.part,
            size=row.part_bytes,
            sha256=bytes.fromhex(row.part_sha256),
            etag=row.etag,
        )
        for row in rows.values()
    }


def _facts(row: BlockRow) -> tuple[int, int, str, str]:
    return row.entries, row.payload_bytes, row.sha256, row.entries_sha256


def block_facts(plan: Iterable[Block], rows: Mapping[int, BlockRow]) -> tuple[BlockFacts, ...]:
    """What a record says of each block of the plan, all of which were read back."""
    read = [(block, rows[block.part_number]) for block in plan]
    return tuple(
        BlockFacts(
            part_number=block.part_number,
            first_entry_id=block.first_entry_id,
            last_entry_id=block.last_entry_id,
            offset=block.offset,
            block_length=block.block_length,
            payload_bytes=row.payload_bytes,
            sha256=row.sha256,
            entries_sha256=row.entries_sha256,
            messages=row.messages,
            publish_min_ms=row.publish_min_ms,
            publish_max_ms=row.publish_max_ms,
        )
        for block, row in read
    )


def find_differences(
    *,
    plan: Sequence[Block],
    source: dict[int, BlockRow],
    stored: dict[int, BlockRow],
    last_entry_id: int,
) -> list[str]:
    """Every difference in words; an empty list is the proof."""
    found: list[str] = []
    for block in plan:
        part = block.part_number
        ours, theirs = stored.get(part), source.get(part)
        if ours is None or theirs is None:
            found.append(f"block {part}: {'object' if ours is None else 'bookies'} not read")
            continue
        expected = block.last_entry_id - block.first_entry_id + 1
        for name, want, have in (
            ("entries", expected, ours.entries),
            ("entries served by bookies", expected, theirs.entries),
            ("payload bytes", theirs.payload_bytes, ours.payload_bytes),
            ("entries digest", theirs.entries_sha256, ours.entries_sha256),
        ):
            if want != have:
                found.append(f"block {part}: {name}: expected {want}, found {have}")
        if theirs.sha256 and theirs.sha256 != ours.sha256:
            found.append(f"block {part}: bytes sent {theirs.sha256}, bytes stored {ours.sha256}")
    entries = sum(row.entries for row in stored.values())
    planned = sum(block.payload_bytes for block in plan)
    payload_bytes = sum(row.payload_bytes for row in stored.values())
    if entries != last_entry_id + 1:
        found.append(f"entries: expected {last_entry_id + 1}, found {entries}")
    if payload_bytes != planned:
        found.append(f"payload bytes: expected {planned}, found {payload_bytes}")
    return found


def second_read_parts(blocks: Sequence[Block], how_many: str) -> frozenset[int]:
    """Part numbers to read from another replica, too: none, every tenth and the last, or all.

    Raises:
        SettingsError: verify.second_replica is none of off, sample and all.
    """
    if how_many not in ("off", "sample", "all"):
        raise SettingsError(f"verify.second_replica is {how_many!r}, expected off, sample or all")
    last = blocks[-1].part_number
    return frozenset(
        b.part_number
        for b in blocks
        if how_many == "all"
        or (how_many == "sample" and (b.part_number % SAMPLED_EVERY == 1 or b.part_number == last))
    )


def second_read_differences(
    copied: Mapping[int, BlockRow], again: Mapping[int, BlockRow]
) -> list[str]:
    """Blocks whose entries another replica serves otherwise than the copy's did."""
    found = []
    for part, row in sorted(again.items()):
        first = copied.get(part)
        facts = None if first is None else (first.entries, first.payload_bytes)
        if (
            first is None
            or facts != (row.entries, row.payload_bytes)
            or (first.entries_sha256 != row.entries_sha256)
        ):
            digest = None if first is None else first.entries_sha256
            found.append(
                f"block {part}: replicas differ: copied {facts} {digest}, another replica serves "
                f"{(row.entries, row.payload_bytes)} {row.entries_sha256}"
            )
    return found


def certificate_differences(
    certificate: Certificate,
    *,
    data: ObjectHead | None,
    index: StoredObject | None,
    rows: Mapping[int, BlockRow],
) -> list[str]:
    """Every difference in words. `rows` are the blocks read back, by part number."""
    found = object_differences(certificate, data=data, index=index)
    found += block_differences(certificate.blocks, rows)
    if all(block.part_number in rows for block in certificate.blocks):
        digest = object_digest(rows[block.part_number].sha256 for block in certificate.blocks)
        if digest != certificate.data.sha256:
            found.append(f"data object: digest: expected {certificate.data.sha256}, found {digest}")
    return found


def object_differences(
    certificate: Certificate, *, data: ObjectHead | None, index: StoredObject | None
) -> list[str]:
    """Differences that show without reading the data object: identity of both, bytes of the
    index.
    """
    found = head_differences("data", certificate.data, data)
    found += head_differences("index", certificate.index, None if index is None else index.head)
    if index is not None and (have := sha256(index.body).hexdigest()) != certificate.index.sha256:
        found.append(f"index object: SHA-256: expected {certificate.index.sha256}, found {have}")
    return found


def block_differences(blocks: Iterable[BlockFacts], rows: Mapping[int, BlockRow]) -> list[str]:
    """Differences of certified blocks from what was read back, by part number."""
    found: list[str] = []
    for block in blocks:
        row = rows.get(block.part_number)
        found += [f"block {block.part_number}: not read"] if row is None else _block(block, row)
    return found


def head_differences(name: str, certified: ObjectFacts, head: ObjectHead | None) -> list[str]:
    """How an object differs from the certified version, by HEAD."""
    if head is None:
        return [
            f"{name} object {certified.key}: expected {certified.size} bytes, it is gone or archived"
        ]
    return [
        f"{name} object: {what}: expected {want}, found {have}"
        for what, want, have in version_differences(certified, head)
    ]


def version_differences(
    certified: ObjectFacts, head: ObjectHead
) -> list[tuple[str, object, object]]:
    """What of an object's identity differs, the certified value and the one found."""
    wanted: list[tuple[str, object, object]] = [
        ("size", certified.size, head.size),
        ("ETag", certified.etag, head.etag),
        ("version", kept_version(certified.version_id), kept_version(head.version_id)),
    ]
    return [one for one in wanted if one[1] != one[2]]


def _block(block: BlockFacts, row: BlockRow) -> list[str]:
    entries = block.last_entry_id - block.first_entry_id + 1
    return [
        f"block {block.part_number}: {what}: expected {want}, found {have}"
        for what, want, have in (
            ("entries", entries, row.entries),
            ("payload bytes", block.payload_bytes, row.payload_bytes),
            ("SHA-256", block.sha256, row.sha256),
            ("entries digest", block.entries_sha256, row.entries_sha256),
        )
        if want != have
    ]


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
    if not all(is_sha256(one) for one in named):
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
            f"the certificate is dated in the future: {moment(certificate.verified_at)}, "
            f"the store's clock says {moment(now)}"
        )
    contradictions = inconsistencies(certificate)
    if contradictions:
        found.append(f"the certificate contradicts itself: {'; '.join(contradictions[:3])}")
    return found
