"""May the records of a ledger that is gone go, too? design section 6.4, second half. Pure.

Owns: records go last. Nothing of the ledger may be left that they speak of: no list names it, no
BookKeeper has it, no object and no unfinished upload of any of its attempts is in the bucket, no
lock keeps a version. Then they stay for as long as people want to look at them, and go by a plan
that is at least KEPT old, decided again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tiering_assets.clean.gone_rules import GoneEvidence, why_not_taken


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsEvidence:
    """All records of one ledger, and what is left of it.

    `objects` and `uploads` of all its attempts are in the bucket; `bytes_locked` are in versions
    that a lock kept. `newest_record_at` is by the store's clock, None where none was listed.
    """

    gone: GoneEvidence
    objects: int
    uploads: int
    bytes_locked: int
    newest_record_at: datetime | None


def why_records_stay(evidence: RecordsEvidence, *, kept: timedelta) -> str | None:
    """Return the first reason to keep them, None when they may go, or may be planned to."""
    return why_not_taken(
        evidence.gone,
        left=_what_is_left(evidence),
        young=_why_too_young(evidence, kept),
        until="a plan is carried out after",
    )


def _why_too_young(evidence: RecordsEvidence, kept: timedelta) -> str | None:
    if evidence.newest_record_at is None:
        return "none of its records was listed, so their age is unknown. Run the command again"
    age = evidence.gone.store_now - evidence.newest_record_at
    if age <= kept:
        return f"its newest record is {age} old, kept for {kept} (release.records_kept_s)"
    return None


def _what_is_left(evidence: RecordsEvidence) -> str | None:
    if evidence.objects or evidence.uploads:
        return (
            f"{evidence.objects} objects and {evidence.uploads} uploads of it are in the bucket: "
            f"`expired-copy delete` and `orphan sweep` take them first"
        )
    if evidence.bytes_locked:
        return f"a lock of the store keeps {evidence.bytes_locked} bytes of it"
    return None
