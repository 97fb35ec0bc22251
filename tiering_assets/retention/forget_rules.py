"""May the records of a ledger that is gone go, too? design section 6.4, second half. Pure.

Owns: records go last. Nothing of the ledger may be left that they speak of: no list names it, no
BookKeeper has it, no object and no unfinished upload of any of its attempts is in the bucket, no
lock keeps a version. Then they stay for as long as people want to look at them, and go by a plan
that is at least KEPT old, decided again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from tiering_assets.clean.expired_rules import KEPT, why_not_gone


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsEvidence:
    """All records of one ledger, and what is left of it.

    `objects` and `uploads` of all its attempts are in the bucket; `bytes_locked` are in versions
    that a lock kept. `newest_record_at` and `store_now` are by the store's clock; `planned_at` is
    when the store took the plan, None while one is made. The rest as in ExpiredEvidence.
    """

    ledger_id: int
    has_node: bool
    listed: Collection[int]
    elsewhere: str | None
    in_bookkeeper: bool
    objects: int
    uploads: int
    bytes_locked: int
    newest_record_at: datetime
    store_now: datetime
    claimed_live: bool
    held: str | None
    planned_at: datetime | None


def why_records_stay(evidence: RecordsEvidence, *, kept: timedelta) -> str | None:
    """Return the first reason to keep them, None when they may go, or may be planned to."""
    here = why_not_gone(
        evidence.ledger_id,
        has_node=evidence.has_node,
        listed=evidence.listed,
        elsewhere=evidence.elsewhere,
        in_bookkeeper=evidence.in_bookkeeper,
    )
    if here is not None:
        return here
    if evidence.objects or evidence.uploads:
        return (
            f"{evidence.objects} objects and {evidence.uploads} uploads of it are in the bucket: "
            f"`orphan expired` and `orphan sweep` take them first"
        )
    if evidence.bytes_locked:
        return f"a lock of the store keeps {evidence.bytes_locked} bytes of it"
    if evidence.held is not None:
        return f"held: {evidence.held}"
    if evidence.claimed_live:
        return "a run holds a live claim on the ledger"
    age = evidence.store_now - evidence.newest_record_at
    if age <= kept:
        return f"its newest record is {age} old, kept for {kept} (release.records_kept_s)"
    if evidence.planned_at is not None:
        since = evidence.store_now - evidence.planned_at
        if since <= KEPT:
            return f"planned {since} ago; a plan is carried out after {KEPT}"
    return None
