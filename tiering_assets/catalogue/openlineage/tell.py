"""Sends the events of posted pages to the operator's address, for a few seconds at most.

Contract: the lease and the batch are written before the first event, and how far it came behind the
last one. So a poster that is killed anywhere sends the same events again, and none is left out. No
run waits for this or fails by it; only what is posted is told, and posting goes first.

Grows with what is told: a request for each page, publication, certificate and release, and one for
each event. An idle posting asks one request. In memory lie sixteen pages, and the records of one
event. Its time is looked at between requests: those to the bucket take as long as they take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final

from tiering_assets.catalogue.facts.read_pages import FoundRecord, ReadPage
from tiering_assets.catalogue.openlineage.datasets import (
    EventPlace,
    SaidEvent,
    posting_events,
    said_event,
)
from tiering_assets.catalogue.openlineage.event_json import run_event
from tiering_assets.catalogue.openlineage.mark_object import FoundMark, read_mark, write_mark
from tiering_assets.catalogue.openlineage.page_events import (
    EventType,
    PageEvent,
    events_of,
    publications_on,
)
from tiering_assets.catalogue.openlineage.runs_told import RunsTold
from tiering_assets.catalogue.openlineage.telling_mark import (
    TellingMark,
    begun,
    taken_by,
    why_not_now,
)
from tiering_assets.catalogue.pages import read_page
from tiering_assets.catalogue.post import read_records
from tiering_assets.catalogue.view import Catalogue, least
from tiering_assets.ground.stack import Stack
from tiering_assets.records.bucket_models import DayBookPage
from tiering_assets.resources.openlineage import OpenLineageEndpoint, Reception, require_package
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_lineage import TICK_S

_AHEAD: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """What one call did. `why` says why there is more to tell, or that there is not."""

    sent: int = 0
    dropped: int = 0
    page: int = 0
    why: str = ""

    def __str__(self) -> str:
        more = f", {self.dropped} were too old" if self.dropped else ""
        return f"{self.sent} OpenLineage events sent{more}: {self.why}"


def is_on(settings: Settings) -> bool:
    """Whether somebody wants events."""
    return bool(settings.openlineage.url)


def tell(stack: Stack, catalogue: Catalogue, *, posted: int, seconds: float = TICK_S) -> Deliveries:
    """Send what is due of the pages up to `posted`, for so long at most; an answer is not waited
    for beyond that.

    PrerequisiteError without the client, CatalogueError where the mark cannot be read.
    """
    require_package()
    until = stack.monotonic() + seconds
    found = read_mark(stack)
    if found is None:
        return _begin(stack, catalogue)
    mark, now = found.mark, stack.now()
    why = why_not_now(mark, posted=posted, now=now, leased_for=_leased_for(stack, found))
    if why is not None:
        return Deliveries(page=mark.page, why=why)
    teller = _Teller(stack, catalogue, mark, until, etag=found.etag)
    why = teller.tell(posted)
    return Deliveries(
        sent=teller.mark.sent - mark.sent,
        dropped=teller.mark.dropped - mark.dropped,
        page=teller.mark.page,
        why=why,
    )


def _begin(stack: Stack, catalogue: Catalogue) -> Deliveries:
    as_of = least(catalogue, catalogue.opened())
    runs = RunsTold.of_work(
        (name, run.since, run.ledgers) for name, run in as_of.in_work.runs.items()
    )
    write_mark(stack, begun(as_of.page, runs, at=stack.now()), before=None)
    return Deliveries(page=as_of.page, why=f"they begin behind page {as_of.page}")


def _leased_for(stack: Stack, found: FoundMark) -> timedelta | None:
    """How long another has had the lease. Nobody's time is asked where there is none."""
    if found.mark.sender is None:
        return None
    return stack.objects.server_time() - found.written_at


def place_of(stack: Stack, catalogue: Catalogue) -> EventPlace:
    """How datasets are named here."""
    settings = stack.settings
    return EventPlace(
        instance=stack.instance,
        bucket=stack.objects.bucket,
        topics=settings.openlineage.topics or f"pulsar://{settings.dagster.cluster}",
        root=catalogue.place.root,
        records=stack.book.prefix,
    )


@dataclass(slots=True)
class _Teller:
    """As many batches as there are, as far as the time allows. `mark` is where it is."""

    stack: Stack
    catalogue: Catalogue
    mark: TellingMark
    until: float
    etag: str  # of the mark as it lies there
    place: EventPlace = field(init=False)
    endpoint: OpenLineageEndpoint = field(init=False)
    slowest: float = 0.0  # seconds of an event so far, from its records to its answer
    stopped: str = ""

    def __post_init__(self) -> None:
        self.place = place_of(self.stack, self.catalogue)
        self.endpoint = OpenLineageEndpoint(self.stack.settings.openlineage)

    def tell(self, posted: int) -> str:
        """Why it stopped. The batch that broke off comes first, then what was posted since."""
        sender = f"run {self.stack.run_id} ({self.stack.new_uid()})"
        whole = True
        while whole and self.mark.waits(posted):
            now = self.stack.now()
            if not self._write(taken_by(self.mark, sender, posted=posted, now=now)):
                self.endpoint.close()
                return "another poster was faster"
            try:
                whole = self._tell_batch()
            except BaseException:
                self._give_back()
                raise
        self._give_back()
        return f"told up to page {self.mark.page}" if whole else self.stopped

    def _give_back(self) -> None:
        """Write down how far it came. Where another took over meanwhile, that one counts."""
        self.endpoint.close()
        self._write(self.mark.released())

    def _write(self, mark: TellingMark) -> bool:
        """False where another was faster."""
        etag = write_mark(self.stack, mark, before=self.etag)
        if etag is None:
            return False
        self.mark, self.etag = mark, etag
        return True

    def _tell_batch(self) -> bool:
        """Whether all of it is sent."""
        for page in self._pages():
            if not self._tell_page(page):
                return False
        mark = self.mark
        said = posting_events(mark.after, mark.upto, mark.at, self.place)
        return all(self._send(partial(replace, one)) for one in said[mark.part :])

    def _pages(self) -> Iterator[ReadPage]:
        """Those of the batch that are not told, some read ahead."""
        for first in range(self.mark.page + 1, self.mark.upto + 1, _AHEAD):
            numbers = range(first, min(first + _AHEAD, self.mark.upto + 1))
            found = self.stack.in_parallel(lambda n: read_page(self.stack, n), numbers)
            for number, page in zip(numbers, found, strict=True):
                yield page or ReadPage(number=number, stored=None, why="it is gone")

    def _tell_page(self, page: ReadPage) -> bool:
        """False where it stopped."""
        if page.stored is None:
            self.mark = self.mark.behind_page(self.mark.runs, unread=True)
            return True
        record = page.stored.record
        if self._time_left(0.0) is None:
            return False
        is_old = self._is_old(record)
        named = [] if is_old else publications_on(record)
        published = read_records(self.stack, named)
        events, runs = events_of(record, self.mark.runs, published)
        if is_old:
            runs = self._drop(events, runs)
        else:
            for event in events[self.mark.part :]:
                if not self._send(partial(self._said, event, published)):
                    return False
        self.mark = self.mark.behind_page(runs)
        return True

    def _is_old(self, page: DayBookPage) -> bool:
        keep = timedelta(seconds=self.stack.settings.openlineage.keep_s)
        return self.stack.now() - page.written_at > keep

    def _drop(self, events: Sequence[PageEvent], runs: RunsTold) -> RunsTold:
        """The START of a run that goes on is not lost: it comes with the run's next event."""
        late = events[self.mark.part :]
        kept = [
            one for one in late if one.type is EventType.START and runs.get(one.run) is not None
        ]
        self.mark = self.mark.was_dropped(len(late) - len(kept))
        for event in kept:
            runs = runs.untold(event.run, event.job)
        return runs

    def _said(self, event: PageEvent, published: Mapping[str, FoundRecord]) -> SaidEvent:
        named = [one for line in event.lines for one in line.own]
        return said_event(event, {**published, **read_records(self.stack, named)}, self.place)

    def _time_left(self, needed: float) -> float | None:
        """Seconds, if there are more than are needed."""
        left = self.until - self.stack.monotonic()
        if left > needed:
            return left
        self.stopped = f"no time is left; goes on behind page {self.mark.page}"
        return None

    def _send(self, make: Callable[[], SaidEvent]) -> bool:
        """False where it was not taken, or there is less time than the slowest one so far took."""
        began = self._time_left(self.slowest)
        if began is None:
            return False
        settings = self.stack.settings
        event = run_event(
            make(), namespace=settings.openlineage.namespace, cluster=settings.dagster.cluster
        )
        left = self._time_left(0.0)
        if left is None:
            return False
        timeout = settings.openlineage.timeout_s
        answer = self.endpoint.send(event, seconds=min(left, timeout))
        self.slowest = max(self.slowest, began - (self.until - self.stack.monotonic()))
        if answer.taken is Reception.TAKEN:
            self.mark = self.mark.was_sent(self.stack.now())
            return True
        if left < timeout and answer.is_silence:  # it had less time than it may take
            self.stopped = f"no time is left; goes on behind page {self.mark.page}"
            return False
        passed = self.mark.refused
        self.mark = self.mark.was_untaken(
            answer.why, now=self.stack.now(), refused=answer.taken is Reception.REFUSED
        )
        self.stopped = answer.why
        return self.mark.refused > passed
