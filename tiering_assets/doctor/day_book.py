"""Doctor's look at the day book: does somebody write records here who writes no pages?

An older tierkeeper does. Nothing is wrong with its records, but an audit cannot miss them. Reads
the newest pages, PAGES_MAX at most, and LOOKED_MAX records of reloads that came after the oldest of
them, whatever the size of the fleet.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

from tiering_assets.ground.finding import Finding, ok, warn
from tiering_assets.ground.moments import moment
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage
from tiering_assets.records.models import Disturbance
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.settings import Settings

_CHECK = "day book"
PAGES_MAX = 200
LOOKED_MAX = 20
_DAY = timedelta(days=1)


def check(settings: Settings) -> Iterator[Finding]:
    with open_stack(settings) as stack:
        yield from check_day_book(stack)


def check_day_book(stack: Stack) -> Iterator[Finding]:
    """Whether each run of the last day that reloaded a topic has a page."""
    pages = [*_newest_pages(stack)]
    if not pages:
        yield ok(_CHECK, "no page yet: the next run that works on a ledger writes the first one")
        return
    since = max(pages[-1].stored_at, stack.objects.server_time() - _DAY)
    known = {page.record.writer.run_id for page in pages}
    looked = [*_reloads(stack, since)]
    strange = {one.record.writer for one in looked if one.record.writer.run_id not in known}
    for writer in sorted(strange, key=lambda one: one.run_id):
        yield warn(
            _CHECK,
            f"run {writer.run_id} on {writer.host} (version {writer.tool_version}) wrote records and "
            f"no page, after page {pages[-1].record.number} was there",
            "an older tierkeeper works in this bucket: upgrade it, so that an audit misses what is gone",
        )
    if not strange:
        newest = pages[0].record
        yield ok(
            _CHECK,
            f"newest page {newest.number}, by {newest.command}; {len(looked)} reloads since "
            f"{moment(since)}, each of a run with a page",
        )


def _newest_pages(stack: Stack) -> Iterator[Stored[DayBookPage]]:
    """The newest first; what cannot be read is for an audit to tell."""
    for key, _listed in islice(stack.book.listed(keys.DAY_BOOK), PAGES_MAX):
        try:
            page = stack.book.read(DayBookPage, key)
        except FormatError:
            continue
        if page is not None:
            yield page


def _reloads(stack: Stack, since: datetime) -> Iterator[Stored[Disturbance]]:
    found = stack.book.filed_since(keys.DISTURBANCES, since)
    for key in found[-LOOKED_MAX:]:
        try:
            stored = stack.book.read(Disturbance, key)
        except FormatError:
            continue
        if stored is not None:
            yield stored
