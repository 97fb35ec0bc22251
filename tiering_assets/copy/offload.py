"""Copy closed ledgers into data and index objects. design section 6.1, steps 2 to 4.

The order is the contract: claim, attempt record, multipart upload, parts, ListParts checked against
the accepted rows, complete (only if absent), index object (only if absent). A crash between any two
leaves an attempt that can be found by its record and collected; it leaves nothing a broker reads.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tiering_assets.ground.effects import reach
from tiering_assets.ground.stack import Stack
from tiering_assets.ground.task_progress import in_phase, telling
from tiering_assets.look.ledger.plan import LedgerPlan
from tiering_assets.look.ledger.quarantine import win_outcome
from tiering_assets.look.ledger.resume import Work, find_unfinished
from tiering_assets.look.ledger.verification import expected_parts, rows_by_part
from tiering_assets.offload_format.encoder import encode_index
from tiering_assets.offload_format.keys import data_key, index_key, user_metadata
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import IntegrityError, ObjectStoreError, TierkeeperError
from tiering_assets.resources.object_store.finish import complete, put_once, settle_parts
from tiering_assets.resources.object_store.multipart import ExpectedPart
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, ListedPart, TaskKind, revive
from tiering_assets.tasks.runner import split_task

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedAttempt:
    """Both objects of an attempt are in the bucket. `rows` are what its copy tasks reported.

    None where an earlier run had completed the data object: verification asks the bookies again.
    `parts_sent` counts what they sent, parts that were sent again included; a task that Spark ran
    twice says so once.
    """

    plan: LedgerPlan
    attempt: Stored[Attempt]
    rows: Mapping[int, BlockRow] | None
    parts_sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCopied:
    """`attempted` is True where an attempt was begun; its records tell what came of it."""

    error: TierkeeperError
    attempted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reserved:
    plan: LedgerPlan
    attempt: Stored[Attempt]
    task: BlockTask | None

    @property
    def upload_id(self) -> str | None:
        return None if self.task is None else self.task.upload_id


@in_phase("copy")
def copy_ledgers(stack: Stack, plans: Sequence[LedgerPlan]) -> dict[int, CopiedAttempt | NotCopied]:
    """Copy a batch; one ledger's failure never hides another's success.

    Raises what the runner raises if it cannot start: nothing is written then.
    """
    results: dict[int, CopiedAttempt | NotCopied] = {}
    stack.runner.start()  # a run without workers leaves no attempts behind
    reserved: list[_Reserved] = []
    for plan in plans:
        try:
            with stack.spending_for(plan.ml_name):
                reserved.append(_reserve(stack, plan))
        except TierkeeperError as error:
            results[plan.ledger_id] = NotCopied(error=error, attempted=False)
    rows = _run(stack, [r.task for r in reserved if r.task is not None])
    for item in reserved:
        uid = str(item.attempt.record.uid)
        try:
            with stack.spending_for(item.plan.ml_name):
                results[item.plan.ledger_id] = _finish(stack, item, rows.get(uid, []))
        except TierkeeperError as error:
            give_up(stack, item.attempt, reason=str(error), upload_id=item.upload_id)
            results[item.plan.ledger_id] = NotCopied(error=error, attempted=True)
    return results


def _reserve(stack: Stack, plan: LedgerPlan) -> _Reserved:
    """Go on with an attempt whose run died, or make a new one."""
    left = find_unfinished(stack, Work(plan.facts, plan.block_bytes, plan.object_bytes))
    if left is None:
        return _new_attempt(stack, plan)
    attempt = left.attempt
    stack.tell(
        f"ledger {plan.ledger_id}: going on with attempt {attempt.record.uid}: "
        + (
            "its data object is complete"
            if left.upload_id is None
            else f"{len(left.parts)} of {len(plan.blocks)} parts are there"
        ),
        plan.ledger_id,
        attempt=attempt.record.uid,
    )
    if left.upload_id is None:
        return _Reserved(plan=plan, attempt=attempt, task=None)
    listed = tuple(
        ListedPart(
            part_number=part.part_number,
            size=part.size,
            etag=part.etag,
            sha256="" if part.sha256 is None else part.sha256.hex(),
        )
        for part in left.parts
    )
    task = _copy_task(stack, plan, attempt.record, left.upload_id)
    return _Reserved(plan=plan, attempt=attempt, task=replace(task, listed=listed))


def _new_attempt(stack: Stack, plan: LedgerPlan) -> _Reserved:
    uid = stack.new_uid()
    key = data_key(uid, plan.ledger_id)
    attempt = stack.book.create(
        keys.attempt(plan.ledger_id, uid),
        Attempt(
            ledger=plan.facts,
            uid=uid,
            ml_name=plan.ml_name,
            ml_czxid=plan.ml_czxid,
            bucket=stack.objects.bucket,
            data_key=key,
            index_key=index_key(uid, plan.ledger_id),
            block_bytes=plan.block_bytes,
            blocks=len(plan.blocks),
            object_bytes=plan.object_bytes,
            started_at=stack.now(),
            writer=stack.writer,
        ),
    )
    reach("offload.attempt_recorded", plan.ledger_id, topic=plan.ml_name, attempt=uid)
    upload_id = None
    if len(plan.blocks) > 1:
        metadata = object_metadata(stack, plan, role="data")
        upload_id = stack.objects.create_upload(key, metadata=metadata)
    reach("offload.upload_created", plan.ledger_id, topic=plan.ml_name, attempt=uid)
    task = _copy_task(stack, plan, attempt.record, upload_id)
    return _Reserved(plan=plan, attempt=attempt, task=task)


def _copy_task(stack: Stack, plan: LedgerPlan, record: Attempt, upload_id: str | None) -> BlockTask:
    return BlockTask(
        kind=TaskKind.COPY,
        attempt=str(record.uid),
        source=plan.source,
        data_key=record.data_key,
        blocks=plan.blocks,
        upload_id=upload_id,
        user_metadata=object_metadata(stack, plan, role="data"),
        topic=plan.ml_name,
        budget_key=stack.budget_key,
    )


def object_metadata(stack: Stack, plan: LedgerPlan, *, role: str) -> dict[str, str]:
    """User metadata as Pulsar's own offloader writes it, and the instance the ledger id belongs
    to.
    """
    return user_metadata(
        role="index" if role == "index" else "data",
        ml_name=plan.ml_name,
        software_version=stack.writer.tool_version,
        instance=stack.instance,
    )


def _run(stack: Stack, tasks: Sequence[BlockTask]) -> dict[str, list[BlockRow]]:
    pieces = [
        piece
        for task in tasks
        for piece in split_task(task, bytes_max=stack.settings.offload.task_bytes)
    ]
    by_attempt: dict[str, list[BlockRow]] = {}
    if pieces:
        with telling(stack, "copying", pieces) as count:

            def told(row: BlockRow) -> None:
                _tell_block(stack, row)
                if (done := count(row)) is not None:
                    stack.tell(f"ledger {row.ledger_id}: {done.copied_text}", row.ledger_id)

            rows = stack.runner.run(pieces, progress=told)
        for row in rows:
            by_attempt.setdefault(row.attempt, []).append(row)
    return by_attempt


def _tell_block(stack: Stack, row: BlockRow) -> None:
    """A ledger is one line for people; its blocks are for who asks for everything, but one that
    failed.
    """
    block = f"ledger {row.ledger_id} block {row.part_number}"
    if row.error:
        stack.tell(f"{block}: {row.error}", row.ledger_id)
    elif row.sent:
        _LOG.debug("%s: %.1f MB in %.2f s", block, row.block_length / 1e6, row.seconds)
    else:
        _LOG.debug("%s: was sent before", block)


def _finish(stack: Stack, item: _Reserved, rows: Sequence[BlockRow]) -> CopiedAttempt:
    plan, record = item.plan, item.attempt.record
    good = None
    sent = sum(row.sent and not row.error for row in rows)
    if item.task is not None:
        good = _all_blocks(plan, rows)
        reach("offload.parts_sent", plan.ledger_id, topic=plan.ml_name, attempt=record.uid)
        if item.task.upload_id is not None:
            sent += _complete(stack, item, item.task, good)
    index = encode_index(plan.blocks, plan.index_metadata, plan.object_bytes)
    put_once(
        stack.objects,
        record.index_key,
        index,
        metadata=object_metadata(stack, plan, role="index"),
        bytes_max=INDEX_BYTES_MAX,
        what=f"ledger {plan.ledger_id}",
    )
    reach("offload.index_put", plan.ledger_id, topic=plan.ml_name, attempt=record.uid)
    return CopiedAttempt(plan=plan, attempt=item.attempt, rows=good, parts_sent=sent)


def _all_blocks(plan: LedgerPlan, rows: Sequence[BlockRow]) -> dict[int, BlockRow]:
    good = rows_by_part(rows)
    missing = [b.part_number for b in plan.blocks if b.part_number not in good]
    if not missing:
        return good
    failed = next((row for row in rows if row.error and row.part_number in missing), None)
    if failed is None:
        raise IntegrityError(
            f"ledger {plan.ledger_id}: tasks ended without a row for blocks {missing[:10]}"
        )
    raise revive(failed, f"ledger {plan.ledger_id} block {failed.part_number}: {failed.error}")


def _complete(stack: Stack, item: _Reserved, task: BlockTask, rows: Mapping[int, BlockRow]) -> int:
    """Complete with ListParts' own ETags after its sizes and checksums equal the accepted rows.

    Returns how many parts had to be sent again for that.
    """
    record, upload_id = item.attempt.record, task.upload_id or ""
    what, sent_again = f"ledger {record.ledger.ledger_id}", 0

    def send_again(wanted: Collection[int]) -> dict[int, ExpectedPart]:
        nonlocal sent_again
        sent_again += len(wanted)
        stack.tell(f"{what}: sending {len(wanted)} parts again", record.ledger.ledger_id)
        again = tuple(b for b in item.plan.blocks if b.part_number in wanted)
        return expected_parts(_send_again(stack, item.plan, replace(task, blocks=again, listed=())))

    key = record.data_key
    parts = settle_parts(stack.objects, key, upload_id, expected_parts(rows), send_again, what=what)
    complete(stack.objects, key, upload_id, parts, size=record.object_bytes)
    reach("offload.completed", record.ledger.ledger_id, topic=record.ml_name, attempt=record.uid)
    _abort_strays(stack, record)
    return sent_again


def _abort_strays(stack: Stack, record: Attempt) -> None:
    """A create whose answer was lost was sent again and left an upload that nobody knows.

    Best effort: clean-up finds those of certified attempts, too.
    """
    ledger_id = record.ledger.ledger_id
    try:
        for upload_id in uploads_of(stack, record.uid, ledger_id):
            stack.objects.abort_upload(record.data_key, upload_id)
            reach("offload.strays_aborted", ledger_id, topic=record.ml_name, attempt=record.uid)
    except ObjectStoreError as error:
        stack.tell(
            f"ledger {ledger_id}: uploads of {record.data_key} stay for now: {error}", ledger_id
        )


def _send_again(stack: Stack, plan: LedgerPlan, task: BlockTask) -> dict[int, BlockRow]:
    rows = _run(stack, [task]).get(task.attempt, [])
    failed = next((row for row in rows if row.error), None)
    if failed is not None:
        raise revive(failed, f"ledger {plan.ledger_id} block {failed.part_number}: {failed.error}")
    return rows_by_part(rows)


def give_up(stack: Stack, attempt: Stored[Attempt], *, reason: str, upload_id: str | None) -> None:
    """Abandon an attempt that failed before verification, and abort its upload. Best effort.

    What cannot be reached now stays a collectable attempt: its record names both keys.
    """
    record = attempt.record
    try:
        proof = keys.certificate(record.ledger.ledger_id, record.uid)
        if stack.book.read(Certificate, proof) is not None:
            return  # another run went on with it, and proved it
        won = win_outcome(stack, attempt, "abandon", reason=reason[:500])
        reach(
            "offload.abandoned", record.ledger.ledger_id, topic=record.ml_name, attempt=record.uid
        )
        if won is not None and upload_id is not None:
            stack.objects.abort_upload(record.data_key, upload_id)
            reach(
                "offload.upload_aborted",
                record.ledger.ledger_id,
                topic=record.ml_name,
                attempt=record.uid,
            )
    except TierkeeperError as error:
        stack.tell(
            f"ledger {record.ledger.ledger_id}: attempt {record.uid} stays to be collected: {error}",
            record.ledger.ledger_id,
            attempt=record.uid,
        )


def uploads_of(stack: Stack, uid: UUID, ledger_id: int) -> list[str]:
    """Ids of the unfinished uploads on an attempt's data key."""
    key = data_key(uid, ledger_id)
    return [u.upload_id for u in stack.objects.list_uploads(key) if u.key == key]
