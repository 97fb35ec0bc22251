"""Which events a page of the day book makes: START, RUNNING, and COMPLETE or FAIL of its run.

Owns: a run has one START before all others, and one end. A command that we know is told when it
takes up ledgers; of any other run the records tell what it is, and START comes with them, as of its
time. An event names LEDGERS_MAX ledgers at most, the last one of a run its end.

A run ends with FAIL if it died, left a ledger that it began, or put a copy in quarantine. What only
a proof named is of no run's page, and is not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, cast
from uuid import UUID

from tiering_assets.catalogue.facts.read_pages import FoundRecord, written_on
from tiering_assets.catalogue.facts.record_facts import folder_of, ledger_and_attempt
from tiering_assets.catalogue.openlineage.runs_told import RunsTold, RunTold, ToldJob
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage, NamedRecord
from tiering_assets.records.models import Publication
from tiering_assets.resources.lots import lots_of

LEDGERS_MAX: Final = 200  # of an event
JOB_OF: Final[Mapping[str, ToldJob]] = {
    "offload": ToldJob.OFFLOAD,
    "tierkeeper ledger offload": ToldJob.OFFLOAD,
    "tierkeeper topic offload": ToldJob.OFFLOAD,
    "release": ToldJob.RELEASE,
    "tierkeeper ledger release": ToldJob.RELEASE,
}
"""By what the day book says that was run: Dagster's jobs and commands."""
_SHOWN: Final = 20  # ledgers that a failure names
_OF_RUNS: Final = (ToldJob.OFFLOAD, ToldJob.RELEASE)


class EventType(StrEnum):
    """The words of OpenLineage."""

    START = "START"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """A ledger that a page brought further: the records that say so, by their names."""

    ledger_id: int
    uid: UUID
    certificate: NamedRecord | None = None
    publication: NamedRecord | None = None
    release: NamedRecord | None = None

    @property
    def own(self) -> list[NamedRecord]:
        """What is read for it, but for its publication, which many have in common."""
        return [one for one in (self.certificate, self.release) if one is not None]

    @property
    def named(self) -> list[NamedRecord]:
        """All of them."""
        return [*self.own, *filter(None, [self.publication])]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEvent:
    """An event before its records are read. `why` is what a run failed by.

    `in_work` counts the ledgers of its run, behind an open page and before a close page.
    """

    job: ToldJob
    type: EventType
    run: str
    since: datetime
    command: str
    at: datetime
    page: int
    in_work: int
    lines: Sequence[LedgerLine] = ()
    why: str | None = None


def publications_on(page: DayBookPage) -> list[NamedRecord]:
    """They name ledgers, and so are read before events are made."""
    return [one for one in _written(page) if folder_of(one.key) == "publications"]


def events_of(
    page: DayBookPage, runs: RunsTold, published: Mapping[str, FoundRecord]
) -> tuple[list[PageEvent], RunsTold]:
    """In their order, and the runs in work behind this page. `published` are by key."""
    if page.phase == "open":
        return _opened(page, runs)
    if page.phase == "close":
        return _closed(page, runs, published)
    return [], runs


def _opened(page: DayBookPage, runs: RunsTold) -> tuple[list[PageEvent], RunsTold]:
    name = page.writer.run_id
    known = runs.get(name)
    run = _new(page) if known is None else known
    run = replace(run, ledgers=run.ledgers | {*page.ledgers})
    job = JOB_OF.get(page.command)
    events = []
    if job is not None and job not in run.told:
        events.append(_event(page, name, run, job, EventType.START))
        run = replace(run, told=run.told | {job})
    return events, runs.with_run(name, run)


def _closed(
    page: DayBookPage, runs: RunsTold, published: Mapping[str, FoundRecord]
) -> tuple[list[PageEvent], RunsTold]:
    name = page.writer.run_id if page.for_run is None else page.for_run
    known = runs.get(name)
    before = _new(page) if known is None else known
    run = _further(before, page)
    is_over = not run.ledgers
    in_work = len(before.ledgers)
    events: list[PageEvent] = []
    for job in _OF_RUNS:
        lots: list[Sequence[LedgerLine]] = lots_of([*_lines(page, published, job)], LEDGERS_MAX)
        if job not in before.told:
            if not lots:
                continue
            events.append(_event(page, name, before, job, EventType.START))
            run = replace(run, told=run.told | {job})
        last: Sequence[LedgerLine] = ()
        if is_over and lots:
            last = lots.pop()
        events += [
            replace(_event(page, name, before, job, EventType.RUNNING), lines=lot) for lot in lots
        ]
        if is_over:
            why = _why_failed(page, name, run, job, in_work)
            ended = EventType.COMPLETE if why is None else EventType.FAIL
            end = _event(page, name, before, job, ended)
            events.append(replace(end, lines=last, why=why))
    return events, runs.with_run(name, None if is_over else run)


def _new(page: DayBookPage) -> RunTold:
    """A run that nobody has heard of; who closes for another does not know its command."""
    command = page.command if page.for_run is None else ""
    return RunTold(since=page.written_at, command=command)


def _event(page: DayBookPage, name: str, run: RunTold, job: ToldJob, type_: EventType) -> PageEvent:
    return PageEvent(
        job=job,
        type=type_,
        run=name,
        since=run.since,
        command=run.command,
        at=run.since if type_ is EventType.START else page.written_at,
        page=page.number,
        in_work=len(run.ledgers),
    )


def _further(run: RunTold, page: DayBookPage) -> RunTold:
    """The run behind what a close page says that it wrote and is done with."""
    left = {job: {*run.left(job)} for job in _OF_RUNS}
    quarantined = run.quarantined
    for named in _written(page):
        folder, pair = folder_of(named.key), _pair(named.key)
        if pair is None:
            continue
        if folder == "quarantines":
            quarantined += 1
        elif folder == "attempts":
            left[ToldJob.OFFLOAD].add(pair[0])
        elif folder == "certificates":
            left[ToldJob.OFFLOAD].discard(pair[0])
        elif folder == "releases":
            move = left[ToldJob.RELEASE]
            (move.discard if keys.is_release(named.key) else move.add)(pair[0])
    return replace(
        run,
        ledgers=run.ledgers - {*page.ledgers},
        unfinished={job: frozenset(some) for job, some in left.items()},
        quarantined=quarantined,
    )


def _why_failed(
    page: DayBookPage, name: str, run: RunTold, job: ToldJob, in_work: int
) -> str | None:
    if page.for_run is not None:
        return f"run {name} died with {in_work} ledgers in work; run {page.writer.run_id} closed it"
    if left := sorted(run.left(job)):
        shown = ", ".join(map(str, left[:_SHOWN])) + (", …" if left[_SHOWN:] else "")
        end = "certificate" if job is ToldJob.OFFLOAD else "release"
        return f"{len(left)} ledgers were begun and have no {end}: {shown}"
    if run.quarantined:
        return f"{run.quarantined} copies failed a check and are in quarantine"
    return None


def _lines(
    page: DayBookPage, published: Mapping[str, FoundRecord], job: ToldJob
) -> Iterator[LedgerLine]:
    """Ledgers that a job of this page's run brought further, in the order of their records."""
    found: dict[tuple[int, UUID], LedgerLine] = {}
    for named in _written(page):
        for pair, field in _said_by(named, published, job):
            line = found.get(pair, LedgerLine(ledger_id=pair[0], uid=pair[1]))
            says: dict[str, Any] = {field: named}
            found[pair] = replace(line, **says)
    yield from found.values()


def _said_by(
    named: NamedRecord, published: Mapping[str, FoundRecord], job: ToldJob
) -> Iterator[tuple[tuple[int, UUID], str]]:
    """Each ledger and attempt that a record of this job is about, and what it is for it."""
    folder, pair = folder_of(named.key), _pair(named.key)
    if job is ToldJob.RELEASE:
        if pair is not None and folder == "releases" and keys.is_release(named.key):
            yield pair, "release"
    elif folder == "publications":
        yield from ((one, "publication") for one in _pairs(published.get(named.key)))
    elif pair is not None and folder == "certificates":
        yield pair, "certificate"


def _pair(key: str) -> tuple[int, UUID] | None:
    """None of a key that names no attempt."""
    ledger_id, uid = ledger_and_attempt(key)
    return None if uid is None else (cast("int", ledger_id), UUID(uid))


def _pairs(found: FoundRecord | None) -> Iterator[tuple[int, UUID]]:
    """None of a publication that is gone or damaged: nobody can tell its ledgers any more."""
    if found is not None and found.stored is not None:
        record: Publication = found.stored.record
        for one in record.ledgers:
            yield one.ledger_id, one.uid


def _written(page: DayBookPage) -> Sequence[NamedRecord]:
    return written_on(page) if page.phase == "close" else ()
