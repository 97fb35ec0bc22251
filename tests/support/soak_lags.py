"""How far behind automation was: pages that wait to be posted, and ledgers that are due.

Faults are part of it: while the daemon is down, everything waits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from tiering_assets.catalogue.facts.read_pages import ReadPage
from tiering_assets.catalogue.pages import read_pages
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.user_topics import readable_topics, user_topic_names
from tiering_assets.records.models import Attempt
from tiering_assets.resources.tables import Table


def lags(stack: Stack, threshold: timedelta) -> dict[str, float | int]:
    """Seconds, and of how many. `threshold` is how old a closed ledger is when it is due."""
    posted, begun = sorted(_posted(stack)), sorted(_begun(stack, threshold))
    return {
        "pages_posted": len(posted),
        "posting_lag_p50_s": _share_of(posted, 0.5),
        "posting_lag_p95_s": _share_of(posted, 0.95),
        "due_to_begun_p50_s": _share_of(begun, 0.5),
        "due_to_begun_p95_s": _share_of(begun, 0.95),
    }


def _share_of(sorted_lags: list[float], share: float) -> float:
    if not sorted_lags:
        raise RuntimeError("nothing was posted, or no copy was begun")
    return round(sorted_lags[min(len(sorted_lags) - 1, int(share * len(sorted_lags)))], 1)


def _posted(stack: Stack) -> Iterator[float]:
    """From the writing of a page to the first commit that has it, by two clocks of one machine."""
    table = Catalogue.of(stack).opened()["events"]
    commits = sorted(_commits(table))
    for page in _pages(stack):
        nth = bisect_left(commits, (page.number, 0))
        if page.stored is not None and nth < len(commits):
            yield commits[nth][1] / 1000 - page.stored.record.written_at.timestamp()


def _commits(table: Table) -> Iterator[tuple[int, int]]:
    """The page and the time, in milliseconds, of each commit."""
    newest = 0
    every: list[dict[str, Any]] = table.delta.history()
    for one in reversed(every):
        if "page" in one and int(one["page"]) > newest:
            newest = int(one["page"])
            yield newest, int(one["timestamp"])


def _pages(stack: Stack) -> Iterator[ReadPage]:
    after = 0
    while found := read_pages(stack, after):
        yield from found
        after = found[-1].number


def _begun(stack: Stack, threshold: timedelta) -> Iterator[float]:
    """From when a ledger is due to its first attempt, which is later than that a run was asked."""
    first: dict[int, datetime] = {}
    for stored in stack.book.iter_records(Attempt, "attempts/"):
        one = stored.record
        ledger_id = one.ledger.ledger_id
        first[ledger_id] = min(one.started_at, first.get(ledger_id, one.started_at))
    for topic in readable_topics(stack, user_topic_names(stack)):
        for listed in topic.info.ledgers:
            if listed.closed_at is not None and listed.ledger_id in first:
                due = listed.closed_at + threshold
                yield (first[listed.ledger_id] - due).total_seconds()
