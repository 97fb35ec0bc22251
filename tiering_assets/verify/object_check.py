"""Look into one attempt's two objects with the independent decoder, whoever wrote them. Reads only.

Owns: nothing is believed that is not in the objects themselves; a certificate, where there is one,
is compared at the end. The truncation signature of a broker's offloader (an entry larger than its
block: the index describes fewer bytes than the data object has) is a finding with both numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.eligibility import owner_of
from tiering_assets.look.ledger.object_class import read_unless_archived
from tiering_assets.look.ledger.verification import certificate_differences, rows_by_part
from tiering_assets.offload_format.decoder import BlockRange, Index, block_lengths, decode_index
from tiering_assets.offload_format.digests import DigestKind
from tiering_assets.offload_format.keys import (
    check_format_version,
    data_key,
    index_key,
    parse_key,
)
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX, BlockPlan
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.resources.bookkeeper.ledger import LedgerMetadata
from tiering_assets.resources.bookkeeper.ledger_metadata import decode_index_ledger_metadata
from tiering_assets.resources.errors import FormatError, ObjectNotFoundError, RefusedError
from tiering_assets.resources.object_store.store import ObjectHead, StoredObject
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.verify.reverify import block_findings, read_back, without_bookies


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSight:
    """Both objects of one attempt as they lie there; `problems` say what does not decode."""

    ledger_id: int
    uid: UUID
    data_key: str
    index_key: str
    data: ObjectHead | None
    index: StoredObject | None
    decoded: Index | None
    metadata: LedgerMetadata | None
    certificate: Stored[Certificate] | None
    problems: tuple[str, ...]

    @property
    def blocks(self) -> list[BlockRange]:
        return [] if self.decoded is None else block_lengths(self.decoded)

    @property
    def block_digest(self) -> DigestKind:
        """How the certificate digests entries; without one there is nothing to meet."""
        return "frames" if self.certificate is None else self.certificate.record.block_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCheck:
    """The walk through every block. No findings: the objects are whole and agree."""

    sight: ObjectSight
    entries: int
    payload_bytes: int
    findings: tuple[str, ...]
    seconds: float


def look_at_object(stack: Stack, key: str) -> ObjectSight:
    """HEAD both objects and decode the index. `key` is that of either.

    Raises:
        RefusedError: the key is not one that a V1 offloader writes.
        ObjectNotFoundError: neither object is there.
    """
    parsed = parse_key(key)
    if parsed is None:
        raise RefusedError(
            f"{key!r} is not the key of a data or index object: expected <uuid>-ledger-<id> or "
            f"<uuid>-ledger-<id>-index; `tierkeeper ledger show ID` prints the keys of a ledger"
        )
    uid, ledger_id = parsed.uid, parsed.ledger_id
    data = stack.objects.head(data_key(uid, ledger_id))
    index_head, index = read_unless_archived(stack, index_key(uid, ledger_id))
    if data is None and index_head is None:
        raise ObjectNotFoundError(
            f"bucket {stack.objects.bucket!r} has neither {data_key(uid, ledger_id)} nor its index"
        )
    problems: list[str] = []
    for name, head in (("data", data), ("index", index_head)):
        if head is not None and name == "index" and index is None:
            problems.append(_without_body(head))
        elif head is None:
            problems.append(f"the {name} object is not there")
        else:
            try:
                check_format_version(head.metadata)
            except FormatError as error:
                problems.append(f"{name} object: {error}")
    decoded, metadata = _decode(index, problems)
    if decoded is not None and data is not None and decoded.data_object_length != data.size:
        problems.append(
            f"the index describes a data object of {decoded.data_object_length} bytes, it has "
            f"{data.size}: its writer stopped early or another object lies there"
        )
    return ObjectSight(
        ledger_id=ledger_id,
        uid=uid,
        data_key=data_key(uid, ledger_id),
        index_key=index_key(uid, ledger_id),
        data=data,
        index=index,
        decoded=decoded,
        metadata=metadata,
        certificate=stack.book.read(Certificate, keys.certificate(ledger_id, uid)),
        problems=tuple(problems),
    )


def _without_body(head: ObjectHead) -> str:
    """Why an index object that is there has no body that was read."""
    if head.size > INDEX_BYTES_MAX:
        return (
            f"the index object has {head.size} bytes, more than {INDEX_BYTES_MAX}: it is no index"
        )
    return f"the index object is archived ({head.storage_class}): no broker reads it"


def topic_spending(sight: ObjectSight) -> str:
    """Managed ledger whose budgets reading the object is taken from; empty where none is known."""
    owner = None if sight.metadata is None else owner_of(sight.metadata)
    if owner is None and sight.certificate is not None:
        owner = sight.certificate.record.ml_name
    return owner or ""


def check_object(stack: Stack, key: str) -> ObjectCheck:
    """Read every block back and decode it; compare with index, ledger metadata and certificate."""
    started = stack.monotonic()
    sight = look_at_object(stack, key)
    findings = list(sight.problems)
    plans = _inside(sight, plans_of_index(sight, findings), findings)
    rows = {}
    if sight.data is not None and plans:
        stack.narrate(f"{sight.data_key}: reading {len(plans)} blocks, {sight.data.size} bytes")
        found = read_back(
            stack,
            attempt=str(sight.uid),
            topic=topic_spending(sight),
            source=without_bookies(
                sight.ledger_id,
                last_entry_id=plans[-1].last_entry_id,
                length=0 if sight.metadata is None else sight.metadata.length,
            ),
            data_key=sight.data_key,
            version_id=sight.data.version_id,
            blocks=plans,
            digest=sight.block_digest,
        )[TaskKind.READ_BACK]
        findings += block_findings(found)
        rows = rows_by_part(found)
    entries = sum(row.entries for row in rows.values())
    payload_bytes = sum(row.payload_bytes for row in rows.values())
    if sight.metadata is not None and rows:
        findings += total_findings(sight.metadata, entries, payload_bytes)
    if sight.certificate is not None:
        findings += certificate_differences(
            sight.certificate.record, data=sight.data, index=sight.index, rows=rows
        )
    return ObjectCheck(
        sight=sight,
        entries=entries,
        payload_bytes=payload_bytes,
        findings=tuple(findings),
        seconds=round(stack.monotonic() - started, 3),
    )


def total_findings(metadata: LedgerMetadata, entries: int, payload_bytes: int) -> list[str]:
    """What the index's ledger metadata says otherwise; its length may count more, never less."""
    found = []
    if entries != metadata.entries:
        found.append(
            f"entries: the index's ledger metadata says {metadata.entries}, found {entries}"
        )
    if payload_bytes > metadata.length:
        found.append(
            f"payload bytes: the index's ledger metadata says {metadata.length}, found "
            f"{payload_bytes}"
        )
    return found


def _inside(sight: ObjectSight, plans: list[BlockPlan], findings: list[str]) -> list[BlockPlan]:
    """Blocks that the data object has: a store's refusal of others would look like an outage."""
    if sight.data is None:
        return plans
    there = [plan for plan in plans if plan.offset + plan.block_length <= sight.data.size]
    findings += [
        f"block {plan.part_number}: ends at byte {plan.offset + plan.block_length}, the data object "
        f"at {sight.data.size}; not read"
        for plan in plans
        if plan not in there
    ]
    return there


def _decode(
    index: StoredObject | None, problems: list[str]
) -> tuple[Index | None, LedgerMetadata | None]:
    if index is None:
        return None, None
    try:
        decoded = decode_index(index.body)
    except FormatError as error:
        problems.append(f"index object: {error}")
        return None, None
    try:
        return decoded, decode_index_ledger_metadata(decoded.ledger_metadata)
    except FormatError as error:
        problems.append(f"ledger metadata in the index: {error}")
        return decoded, None


def plans_of_index(sight: ObjectSight, findings: list[str]) -> list[BlockPlan]:
    """Blocks to read. The index alone does not say where the last one's entries end."""
    plans: list[BlockPlan] = []
    for part_number, block in enumerate(sight.blocks, start=1):
        last = block.last_entry_id
        if last is None and sight.metadata is not None:
            last = sight.metadata.last_entry_id
        if last is None:
            findings.append(f"block {part_number}: nothing says where its entries end; not read")
            continue
        try:
            plans.append(
                BlockPlan(
                    part_number=part_number,
                    first_entry_id=block.first_entry_id,
                    last_entry_id=last,
                    offset=block.offset,
                    block_length=block.length,
                    payload_bytes=0,  # not known before it is read
                )
            )
        except ValueError:
            findings.append(
                f"block {part_number}: {block.length} bytes cannot hold entries "
                f"{block.first_entry_id} to {last}"
            )
    return plans
