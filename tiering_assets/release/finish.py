"""Delete what the broker has just read from its objects, group by group. design section 6.3.

Owns: each group is proven again from scratch right before its delete, and is as large as can be
looked at in time. What may not go any more, or cannot be proven in time, gets its mark taken back.
"""

from __future__ import annotations

from collections.abc import Mapping

from resources.errors import StaleEvidenceError, TierkeeperError
from tiering_assets.change.topic_change import undo
from tiering_assets.change.topic_edit import TopicChange
from tiering_assets.ground.crash_points import reach
from tiering_assets.ground.evidence import all_of
from tiering_assets.ground.record_book import Stored
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.models import Release as ReleaseRecord
from tiering_assets.records.models import ReleaseIntent
from tiering_assets.release.evidence import Evidence
from tiering_assets.release.gate import NotYet
from tiering_assets.release.guarded_delete import delete_ledgers
from tiering_assets.release.work import (
    AT_ONCE,
    Released,
    ReleaseResult,
    ReleaseWork,
    copies_of,
    gate_group,
    stopped_since,
)


def finish_release(stack: Stack, work: ReleaseWork) -> dict[int, ReleaseResult]:
    """Delete marked ledgers that the broker has just read from their objects, and record it.

    They go in groups that can be looked at within half of the evidence's age; each is proven again
    from scratch right before. Where that took too long it is tried once more with fewer at once,
    and then the marks are taken back.
    """
    results: dict[int, ReleaseResult] = {}
    left, at_once = sorted(work.due), AT_ONCE
    while left:
        _about, group = gate_group(stack, work, left, at_once)
        results.update(_take_back(stack, work, stopped_since(stack, work.due, group)))
        going = [i for i in group if i not in results]
        try:
            if going:
                results.update(_delete(stack, work, {i: group[i] for i in going}))
        except StaleEvidenceError as error:
            if at_once > 1:
                at_once = 1
                left = [i for i in left if i not in results]
                continue
            late = NotYet((f"the marks were taken back: {error}",))
            results.update(_take_back(stack, work, {i: late for i in left if i not in results}))
            return results
        except TierkeeperError as error:
            if not any(isinstance(one, Released) for one in results.values()):
                raise
            return {**dict.fromkeys(left, error), **results}  # an earlier group is gone already
        left = [i for i in left if i not in results]
    return results


def _delete(
    stack: Stack, work: ReleaseWork, group: Mapping[int, Evidence]
) -> dict[int, ReleaseResult]:
    items = {i: work.due[i] for i in group}
    delete_ledgers(
        stack,
        work.ml_name,
        {i: (item.uid, item.intent.record.ledger) for i, item in items.items()},
        czxid=work.czxid,
        evidence=all_of(items[i].dated(one) for i, one in group.items()),
    )
    reach("release.deleted")
    results: dict[int, ReleaseResult] = {}
    for ledger_id, item in items.items():
        record_release(stack, work.ml_name, item.intent)
        results[ledger_id] = Released(bytes_released=item.ledger.metadata.length)
    stack.narrate(f"{topic_of(work.ml_name)}: {len(items)} ledgers released")
    return results


def _take_back(
    stack: Stack, work: ReleaseWork, stopped: Mapping[int, NotYet]
) -> Mapping[int, NotYet]:
    """Take the marks of these ledgers back; their bookie copies stay."""
    if stopped:
        marks = copies_of({i: work.due[i] for i in stopped})
        why = "; ".join(f"ledger {i}: {reason}" for i, reason in sorted(stopped.items()))
        undo(stack, work.ml_name, TopicChange(marks=marks), czxid=work.czxid, why=why)
    return stopped


def record_release(
    stack: Stack,
    ml_name: str,
    intent: Stored[ReleaseIntent],
    *,
    notes: tuple[str, ...] = (),
) -> None:
    record = intent.record
    stack.book.create_or_read(
        keys.release(record.ledger.ledger_id, record.uid),
        ReleaseRecord(
            ledger_id=record.ledger.ledger_id,
            uid=record.uid,
            ml_name=ml_name,
            ml_version=record.ml_version,
            bytes_released=record.ledger.length,
            released_at=stack.now(),
            writer=stack.writer,
            previous=intent.sha256,
            notes=notes,
        ),
    )
    reach("release.recorded")
