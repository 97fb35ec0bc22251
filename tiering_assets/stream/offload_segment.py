"""One segment of a topic from assignment to certificate; the newest that is left comes first.

Owns: whatever stops an attempt is recorded beside it before the error goes on, and its upload is
aborted. The segment stays assigned: the next run tries the same entries with another attempt. Who
calls has asked for the bucket's proof (copy/ask_first.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import (
    SegmentAssigned,
    SegmentAttempt,
    SegmentFailed,
    SegmentOffloaded,
    Stage,
)
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.stream.assign import Assigned, TakenByAnother, assign_next
from tiering_assets.stream.assign_rules import NothingDue, Resume, WhenToCut
from tiering_assets.stream.chain import Chain
from tiering_assets.stream.open_range import TopicGone
from tiering_assets.stream.segment_copy import begin_attempt, copy_segment
from tiering_assets.stream.segment_plan import SegmentPlan, name_of, plan_copy
from tiering_assets.stream.segment_verify import verify_segment


@dataclass(frozen=True, slots=True)
class Offloaded:
    """A segment is in the bucket, proven. `is_last` where this run assigned all that was proven."""

    segment: Stored[SegmentOffloaded]
    is_last: bool


def offload_next(
    stack: Stack, chain: Chain, due: WhenToCut
) -> Offloaded | NothingDue | TopicGone | TakenByAnother:
    """Bring the newest segment to its end, or the next one; else say why there is none.

    Raises:
        TierkeeperError: whatever stopped it; the segment stays assigned.
    """
    found = assign_next(stack, chain, due)
    if isinstance(found, Assigned):
        is_last = found.segment.record.trigger != "size"
        return Offloaded(offload_assigned(stack, found.segment), is_last)
    if isinstance(found, Resume):
        return Offloaded(offload_assigned(stack, found.segment.assigned), is_last=False)
    return found


def offload_assigned(stack: Stack, assigned: Stored[SegmentAssigned]) -> Stored[SegmentOffloaded]:
    """Copy and prove an assigned segment by a new attempt."""
    record = assigned.record
    stack.book.take_up(one.ledger_id for one in record.ranges)
    plan = plan_copy(stack, record)
    stack.runner.begin()
    with stack.spending_for(record.ml_name):
        attempt = begin_attempt(stack, plan, assigned)
        stage: Stage = "copy"
        try:
            copied = copy_segment(stack, plan, attempt)
            stage = "verify"
            found = verify_segment(stack, copied)
        except TierkeeperError as error:
            _record_failure(stack, plan, attempt, stage, error)
            raise
    last = record.ranges[-1]
    stack.tell(
        f"{name_of(record)}: {found.record.entries} entries up to {last.ledger_id}:"
        f"{last.last_entry_id}, {found.record.data.size} bytes, are in the bucket, proven",
        *plan.ledger_ids,
        topic=record.ml_name,
    )
    return found


def _record_failure(
    stack: Stack,
    plan: SegmentPlan,
    attempt: Stored[SegmentAttempt],
    stage: Stage,
    error: TierkeeperError,
) -> None:
    """Best effort: what cannot be recorded or aborted now is found by the attempt's record."""
    record = attempt.record
    try:
        stack.book.create(
            keys.segment_failed(record.ml_name, record.stream, record.number, record.uid),
            SegmentFailed(
                ml_name=record.ml_name,
                stream=record.stream,
                number=record.number,
                ledger_ids=record.ledger_ids,
                uid=record.uid,
                stage=stage,
                error=str(error)[:500],
                error_class=type(error).__name__,
                failed_at=stack.now(),
                writer=stack.writer,
                previous=attempt.sha256,
            ),
        )
        for upload in stack.objects.list_uploads(record.data_key):
            if upload.key == record.data_key:
                stack.objects.abort_upload(record.data_key, upload.upload_id)
    except TierkeeperError as later:
        stack.tell(
            f"{name_of(plan.assigned)}: attempt {record.uid} stays to be collected: {later}",
            topic=record.ml_name,
        )
