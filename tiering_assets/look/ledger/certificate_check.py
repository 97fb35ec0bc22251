"""Is what lies in the store now what its certificate says? Compared in one place, without sockets.

Owns: object identity (size, ETag, version), the index object's digest, and per block the count, the
bytes and both digests. Differences are listed, not raised, so that people see all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from resources.object_store.store import ObjectHead, StoredObject
from tiering_assets.offload_format.digests import object_digest
from tiering_assets.records.models import BlockFacts, Certificate, ObjectFacts
from tiering_assets.tasks.descriptors import BlockRow


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
    """Differences that show without reading the data object: identity of both, bytes of the index."""
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
        for what, want, have in (
            ("size", certified.size, head.size),
            ("ETag", certified.etag, head.etag),
            ("version", _version(certified.version_id), _version(head.version_id)),
        )
        if want != have
    ]


def _version(version_id: str | None) -> str | None:
    """What was written before its bucket kept versions is named "null" afterwards."""
    return None if version_id == "null" else version_id


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
