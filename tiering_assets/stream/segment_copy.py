"""Copy an assigned segment into a data and an index object.

The order is the contract: attempt record, multipart upload, parts, ListParts checked against the
accepted rows, complete (only if absent), index object (only if absent). A crash between any two
leaves an attempt that its record finds; its objects are of a fresh uuid, and nobody reads them
before they are certified.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.ground.task_progress import in_phase, telling
from tiering_assets.look.ledger.verification import expected_parts, rows_by_part
from tiering_assets.offload_format.keys import user_metadata
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.offload_format.segments.block import SegmentBlock
from tiering_assets.records import keys
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import SegmentAssigned, SegmentAttempt
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.object_store.finish import complete, put_once, settle_parts
from tiering_assets.resources.object_store.multipart import ExpectedPart
from tiering_assets.resources.settings_kinds import MIB
from tiering_assets.stream.segment_plan import SegmentPlan, name_of
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, TaskKind, TaskPart, revive

PART_BYTES_MIN = 5 * MIB  # of S3, for each part but the last
Rows = Mapping[int, BlockRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedSegment:
    """Both objects of an attempt are in the bucket. `rows` are what its copy tasks reported."""

    plan: SegmentPlan
    attempt: Stored[SegmentAttempt]
    rows: Rows


def parts_of(blocks: Sequence[SegmentBlock], *, least: int) -> list[list[SegmentBlock]]:
    """Consecutive blocks in parts of so many bytes at least; the last one may be smaller."""
    parts: list[list[SegmentBlock]] = []
    size = least
    for block in blocks:
        if size >= least:
            parts.append([])
            size = 0
        parts[-1].append(block)
        size += block.block_length
    return parts


def begin_attempt(
    stack: Stack, plan: SegmentPlan, assigned: Stored[SegmentAssigned]
) -> Stored[SegmentAttempt]:
    """Record an attempt at a segment, before anything of it is sent."""
    record, uid = assigned.record, stack.new_uid()
    return stack.book.create(
        keys.segment_attempt(record.ml_name, record.stream, record.number, uid),
        SegmentAttempt(
            ml_name=record.ml_name,
            stream=record.stream,
            number=record.number,
            ledger_ids=plan.ledger_ids,
            uid=uid,
            bucket=stack.objects.bucket,
            data_key=segment_key(uid),
            index_key=f"{segment_key(uid)}-index",
            block_bytes=plan.block_bytes,
            blocks=len(plan.blocks),
            object_bytes=plan.object_bytes,
            started_at=stack.now(),
            writer=stack.writer,
            previous=assigned.sha256,
        ),
    )


def segment_key(uid: UUID) -> str:
    """Of the data object, as PIP-76 has it."""
    return str(uid)


@in_phase("copy")
def copy_segment(stack: Stack, plan: SegmentPlan, attempt: Stored[SegmentAttempt]) -> CopiedSegment:
    """Send a segment's blocks, and complete both objects.

    Raises:
        TierkeeperError: whatever stopped a task, or what the store has is not what was sent.
    """
    record, what = attempt.record, name_of(plan.assigned)
    stack.runner.start()
    parts = parts_of(plan.blocks, least=min(PART_BYTES_MIN, plan.block_bytes))
    upload_id = None
    if len(parts) > 1:
        metadata = _metadata(stack, plan, role="data")
        upload_id = stack.objects.create_upload(record.data_key, metadata=metadata)
    rows = _sent(stack, plan, record, parts, upload_id, [*range(len(parts))])
    if upload_id is not None:

        def send_again(wanted: Collection[int]) -> dict[int, ExpectedPart]:
            stack.tell(f"{what}: sending {len(wanted)} parts again", topic=record.ml_name)
            again = _sent(stack, plan, record, parts, upload_id, [n - 1 for n in sorted(wanted)])
            return expected_parts(again)

        settled = settle_parts(
            stack.objects, record.data_key, upload_id, expected_parts(rows), send_again, what=what
        )
        complete(stack.objects, record.data_key, upload_id, settled, size=plan.object_bytes)
    put_once(
        stack.objects,
        record.index_key,
        plan.index(),
        metadata=_metadata(stack, plan, role="index"),
        bytes_max=INDEX_BYTES_MAX,
        what=what,
    )
    return CopiedSegment(plan=plan, attempt=attempt, rows=rows)


def _metadata(stack: Stack, plan: SegmentPlan, *, role: Literal["data", "index"]) -> dict[str, str]:
    return user_metadata(
        role=role,
        ml_name=plan.assigned.ml_name,
        software_version=stack.writer.tool_version,
        instance=stack.instance,
    )


def _sent(
    stack: Stack,
    plan: SegmentPlan,
    record: SegmentAttempt,
    parts: Sequence[Sequence[SegmentBlock]],
    upload_id: str | None,
    which: Sequence[int],
) -> dict[int, BlockRow]:
    """Rows of all blocks of these parts, by block."""
    tasks = [
        _task(stack, plan, record, parts, upload_id, some)
        for some in lots_of_parts(parts, which, bytes_max=stack.settings.offload.task_bytes)
    ]
    with telling(stack, "copying", tasks) as count:
        rows = stack.runner.run(tasks, progress=count)
    good = rows_by_part(rows)
    missing = [b.part_number for n in which for b in parts[n] if b.part_number not in good]
    if not missing:
        return good
    failed = next((row for row in rows if row.error), None)
    if failed is None:
        raise IntegrityError(
            f"{name_of(plan.assigned)}: tasks ended without a row for blocks {missing[:10]}"
        )
    raise revive(failed, f"{name_of(plan.assigned)}, ledger {failed.ledger_id}: {failed.error}")


def lots_of_parts(
    parts: Sequence[Sequence[SegmentBlock]], which: Sequence[int], *, bytes_max: int
) -> list[list[int]]:
    """The numbers of parts, those of one task after the other: neighbours, of so many bytes."""
    lots: list[list[int]] = []
    size = bytes_max
    for number in which:
        own = sum(block.block_length for block in parts[number])
        if not lots or size + own > bytes_max or lots[-1][-1] + 1 != number:
            lots.append([])
            size = 0
        lots[-1].append(number)
        size += own
    return lots


def _task(
    stack: Stack,
    plan: SegmentPlan,
    record: SegmentAttempt,
    parts: Sequence[Sequence[SegmentBlock]],
    upload_id: str | None,
    which: Sequence[int],
) -> BlockTask:
    blocks = tuple(block for number in which for block in parts[number])
    first, *others = dict.fromkeys(block.ledger_id for block in blocks)
    return BlockTask(
        kind=TaskKind.COPY,
        attempt=str(record.uid),
        source=plan.sources[first],
        others=tuple(plan.sources[ledger_id] for ledger_id in others),
        data_key=record.data_key,
        blocks=blocks,
        parts=tuple(TaskPart(number + 1, len(parts[number])) for number in which),
        upload_id=upload_id,
        user_metadata=_metadata(stack, plan, role="data"),
        topic=record.ml_name,
        budget_key=stack.budget_key,
    )
