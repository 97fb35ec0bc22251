"""The releases of last, from their records: what keeps a ledger findable when pages forget it.

Owns: one listing and a bounded number of reads, however many ledgers were ever released, and a
record that cannot be read is listed as such. A topic that has trimmed a ledger since, and a Dagster
partition that was retired, take nothing out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.models import Release
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.store import ObjectSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedLedger:
    """One release. `topic` and `bytes` are None when the record cannot be read; `key` is full."""

    ledger_id: int
    topic: str | None
    bytes: int | None
    released_at: datetime
    key: str


def newest_releases(stack: Stack, count: int) -> list[ReleasedLedger]:
    """The newest releases by the store's clock, newest first; at most `count` of them."""
    prefix = stack.book.prefix
    written = (summary for key, summary in stack.book.listed(keys.RELEASES) if keys.is_release(key))
    newest: Sequence[ObjectSummary] = nlargest(
        count, written, key=lambda summary: (summary.last_modified, keys.pair_of(summary.key)[0])
    )
    return [_read(stack, summary, prefix) for summary in newest]


def _read(stack: Stack, summary: ObjectSummary, prefix: str) -> ReleasedLedger:
    topic: str | None = None
    size: int | None = None
    released_at = summary.last_modified
    try:
        stored = stack.book.read(Release, summary.key.removeprefix(prefix))
    except FormatError:  # an audit names it; here it only must not hide the others
        stored = None
    if stored is not None:
        record = stored.record
        topic, size = topic_of(record.ml_name), record.bytes_released
        released_at = record.released_at
    return ReleasedLedger(
        ledger_id=keys.pair_of(summary.key)[0],
        topic=topic,
        bytes=size,
        released_at=released_at,
        key=summary.key,
    )
