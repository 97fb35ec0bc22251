"""Write down which copies an audit found broken, so that release, backlog and scrub know of it.

Owns: what is recorded is about objects that are there, and two audits in a row found it: records
that contradict each other stop a release by themselves, and of an object that is gone the bucket
alone cannot tell whether a trim took it with its ledger. An auditor who may only read is told that
nothing was recorded.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID, uuid4

from tiering_assets.audit.audit_findings import AuditReport, FindingKind
from tiering_assets.ground.day_book import Scribe
from tiering_assets.ground.effects import about
from tiering_assets.ground.record_book import RecordBook, utc_now, writer_of
from tiering_assets.records.writer import Writer
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.verify.damage import Broken, record_damage

OF_OBJECTS: Final = frozenset(
    {
        FindingKind.OBJECT_DIFFERS,
        FindingKind.INDEX_DIFFERS,
        FindingKind.BLOCK_DIFFERS,
    }
)
Damaged = dict[tuple[int, UUID], list[str]]


@dataclass(frozen=True, slots=True)
class _Desk:
    book: RecordBook
    writer: Writer
    now: Callable[[], datetime] = utc_now


def damaged_copies(report: AuditReport) -> Damaged:
    """What is wrong with the objects of each ledger and attempt."""
    found: Damaged = defaultdict(list)
    for one in report.findings:
        if one.kind in OF_OBJECTS and one.ledger_id is not None and one.uid is not None:
            found[one.ledger_id, one.uid].append(str(one))
    return dict(found)


def record_audited(
    objects: ObjectStore,
    report: AuditReport,
    look_again: Callable[[list[int]], AuditReport],
    *,
    narrate: Callable[[str], None],
) -> int:
    """Record what a second audit of the same ledgers finds, too; how many copies that are."""
    doubtful = damaged_copies(report)
    if not doubtful:
        return 0
    again = damaged_copies(look_again(sorted({ledger_id for ledger_id, _uid in doubtful})))
    writer = writer_of(str(uuid4()))
    scribe = Scribe(
        writer=writer,
        command="audit verify",
        now=utc_now,
        tell=narrate,
        sleep=time.sleep,
        turn=nullcontext,
    )
    desk = _Desk(RecordBook(objects, report.instance, scribe), writer)
    recorded = 0
    for (ledger_id, uid), findings in again.items():
        if (ledger_id, uid) not in doubtful:
            continue
        try:
            record_damage(
                desk,
                Broken(
                    ledger_id=ledger_id,
                    uid=uid,
                    ml_name=None,
                    findings=findings,
                    found_by="audit verify",
                ),
            )
        except TierkeeperError as error:
            narrate(
                about(f"ledger {ledger_id}: its damage could not be recorded: {error}", ledger_id)
            )
        else:
            recorded += 1
    desk.book.close_page()
    return recorded
