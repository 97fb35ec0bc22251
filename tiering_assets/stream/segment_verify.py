"""Read every byte of a segment back, compare it with what the bookies served, certify.

The order is the contract: HEAD and index, every block by ranges with the independent decoder, some
of them from other bookies again, the comparison, the index by its own decoder, the suite, HEAD
again, the certificate, signed where a key is configured, if there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from tiering_assets.ground.signing import load_signer
from tiering_assets.ground.stack import Stack
from tiering_assets.ground.task_progress import in_phase, telling
from tiering_assets.look.ledger.verification import (
    block_facts,
    find_differences,
    rows_by_part,
    second_read_differences,
    second_read_parts,
)
from tiering_assets.offload_format.block import HEADER_BYTES
from tiering_assets.offload_format.digests import object_digest
from tiering_assets.offload_format.keys import check_format_version
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.offload_format.segments.decoder import decode_segment_index
from tiering_assets.quality.segment_frame import AssignedLedger, SegmentFacts
from tiering_assets.records import keys
from tiering_assets.records.codec import encode_record
from tiering_assets.records.models import ObjectFacts, Signature, SuiteResult
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import CertifiedLedger, SegmentOffloaded
from tiering_assets.resources.errors import (
    ExpectationError,
    IntegrityError,
    ObjectNotFoundError,
)
from tiering_assets.resources.object_store.store import ObjectHead, StoredObject
from tiering_assets.stream.segment_copy import CopiedSegment
from tiering_assets.stream.segment_plan import SegmentPlan, name_of
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, TaskKind, revive
from tiering_assets.tasks.runner import split_task

Rows = dict[int, BlockRow]


@dataclass(frozen=True, slots=True)
class _Read:
    """What tasks say of a segment: its object's blocks, and blocks that bookies served again."""

    stored: Rows
    again: Rows


@in_phase("verify")
def verify_segment(stack: Stack, copied: CopiedSegment) -> Stored[SegmentOffloaded]:
    """Prove a segment, and record the proof; that of another attempt if it was faster.

    Raises:
        IntegrityError: anything differs.
        ExpectationError: the suite failed.
        TierkeeperError: whatever stopped a task.
    """
    record, plan = copied.attempt.record, copied.plan
    data = stack.objects.head(record.data_key)
    index = stack.objects.get(record.index_key, bytes_max=INDEX_BYTES_MAX)
    if data is None or index is None:
        key = record.data_key if data is None else record.index_key
        raise ObjectNotFoundError(f"{name_of(plan.assigned)}: object {key} is not there")
    check_format_version(data.metadata)
    check_format_version(index.head.metadata)
    read = _read_segment(stack, copied, data)
    _require_same(copied, read)
    _require_index(plan, index.body, data)
    suite = stack.judge_segment(_segment_facts(plan, index, data, read.stored))
    if not suite.success:
        raise ExpectationError(
            f"{name_of(plan.assigned)}: expectation suite {suite.name} failed: "
            f"{', '.join(suite.failed)}"
        )
    now = stack.objects.head(record.data_key)
    if now is None or now.etag != data.etag:
        raise IntegrityError(
            f"{name_of(plan.assigned)}: {record.data_key} changed while it was read back"
        )
    return _certify_segment(stack, copied, data, index, read.stored, suite)


def _read_segment(stack: Stack, copied: CopiedSegment, data: ObjectHead) -> _Read:
    plan, record = copied.plan, copied.attempt.record
    second = second_read_parts(plan.blocks, stack.settings.verify.second_replica)
    tasks: list[BlockTask] = []
    for ledger_id, of_ledger in plan.by_ledger().items():
        whole = BlockTask(
            kind=TaskKind.READ_BACK,
            attempt=str(record.uid),
            source=plan.sources[ledger_id],
            data_key=record.data_key,
            blocks=of_ledger,
            version_id=data.version_id,
            topic=record.ml_name,
            budget_key=stack.budget_key,
        )
        for piece in split_task(whole, bytes_max=stack.settings.offload.task_bytes):
            tasks.append(piece)
            blocks = tuple(block for block in piece.blocks if block.part_number in second)
            if blocks:
                again = replace(piece, kind=TaskKind.READ_SOURCE, blocks=blocks, version_id=None)
                tasks.append(again)
    with telling(stack, "reading back", tasks) as count:
        rows = stack.runner.run(tasks, progress=count)
    failed = next((row for row in rows if row.error), None)
    if failed is not None:
        what = f"{name_of(plan.assigned)}, ledger {failed.ledger_id} block {failed.part_number}"
        raise revive(failed, f"{what}: {failed.error}")
    return _Read(
        stored=rows_by_part(row for row in rows if row.kind is TaskKind.READ_BACK),
        again=rows_by_part(row for row in rows if row.kind is TaskKind.READ_SOURCE),
    )


def _require_same(copied: CopiedSegment, read: _Read) -> None:
    plan, source = copied.plan, dict(copied.rows)
    by_ledger = plan.by_ledger()
    differences = second_read_differences(copied.rows, read.again)
    for one in plan.assigned.ranges:
        blocks = by_ledger[one.ledger_id]
        parts = (block.part_number for block in blocks)
        differences += [
            f"ledger {one.ledger_id}: {difference}"
            for difference in find_differences(
                plan=blocks,
                source=source,
                stored={n: read.stored[n] for n in parts if n in read.stored},
                last_entry_id=one.last_entry_id - one.first_entry_id,
            )
        ]
    if differences:
        raise IntegrityError(
            f"{name_of(plan.assigned)}: {copied.attempt.record.data_key} differs from what the "
            f"bookies serve: {'; '.join(differences[:5])}"
        )


def _require_index(plan: SegmentPlan, body: bytes, data: ObjectHead) -> None:
    """The index must describe exactly the planned blocks of exactly this data object."""
    index = decode_segment_index(body)
    want = [(b.ledger_id, b.part_number, b.first_entry_id, b.offset) for b in plan.blocks]
    have = [(b.ledger_id, b.part_number, b.first_entry_id, b.offset) for b in index.blocks]
    infos = {one.ledger_id: one.info for one in index.ledgers}
    for name, expected, value in (
        ("blocks of the index", want, have),
        ("LedgerInfo of its ledgers", dict(plan.infos), infos),
        ("data object length in the index", plan.object_bytes, index.data_object_length),
        ("data object size", plan.object_bytes, data.size),
    ):
        if expected != value:
            raise IntegrityError(
                f"{name_of(plan.assigned)}: {name}: expected {expected}, found {value}"
            )


def _segment_facts(
    plan: SegmentPlan, index: StoredObject, data: ObjectHead, stored: Mapping[int, BlockRow]
) -> SegmentFacts:
    return SegmentFacts(
        number=plan.assigned.number,
        index=index.body,
        index_size=index.head.size,
        data_size=data.size,
        headers={part: bytes.fromhex(row.header)[:HEADER_BYTES] for part, row in stored.items()},
        assigned={
            one.ledger_id: AssignedLedger(
                first_entry_id=one.first_entry_id,
                last_entry_id=one.last_entry_id,
                bytes_before=one.bytes_before,
                bytes_upto=one.bytes_upto,
            )
            for one in plan.assigned.ranges
        },
    )


def _certify_segment(
    stack: Stack,
    copied: CopiedSegment,
    data: ObjectHead,
    index: StoredObject,
    stored: Mapping[int, BlockRow],
    suite: SuiteResult,
) -> Stored[SegmentOffloaded]:
    record, plan = copied.attempt.record, copied.plan
    found = SegmentOffloaded(
        ml_name=record.ml_name,
        ml_czxid=plan.assigned.ml_czxid,
        stream=record.stream,
        number=record.number,
        uid=record.uid,
        bucket=record.bucket,
        entries=sum(row.entries for row in stored.values()),
        payload_bytes=sum(row.payload_bytes for row in stored.values()),
        data=ObjectFacts(
            key=record.data_key,
            size=data.size,
            etag=data.etag,
            sha256=object_digest(stored[block.part_number].sha256 for block in plan.blocks),
            version_id=data.version_id,
        ),
        index=ObjectFacts(
            key=record.index_key,
            size=index.head.size,
            etag=index.head.etag,
            sha256=sha256(index.body).hexdigest(),
            version_id=index.head.version_id,
        ),
        ledgers=_ledgers(plan, stored),
        suites=(suite,),
        offloaded_at=stack.now(),
        seconds=_seconds(copied.rows.values()) + _seconds(stored.values()),
        writer=stack.writer,
        assigned_sha256=record.previous,
        previous=copied.attempt.sha256,
        block_digest="frames",
    )
    signer = load_signer(stack.settings)
    if signer is not None:
        found = replace(found, signature=Signature(**signer.sign(encode_record(found))))
    key = keys.segment_offloaded(record.ml_name, record.stream, record.number)
    return stack.book.create_or_read(key, found)[0]


def _ledgers(plan: SegmentPlan, stored: Mapping[int, BlockRow]) -> tuple[CertifiedLedger, ...]:
    by_ledger = plan.by_ledger()
    return tuple(
        CertifiedLedger(
            ledger_id=one.ledger_id,
            first_entry_id=one.first_entry_id,
            last_entry_id=one.last_entry_id,
            bytes_before=one.bytes_before,
            bytes_upto=one.bytes_upto,
            info_hex=plan.infos[one.ledger_id].hex(),
            blocks=block_facts(by_ledger[one.ledger_id], stored),
        )
        for one in plan.assigned.ranges
    )


def _seconds(rows: Iterable[BlockRow]) -> float:
    return round(sum(row.seconds for row in rows), 3)
