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
from typing import Final
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
    publication: str | None = None
    release: NamedRecord | None = None

    @property
    def named(self) -> tuple[NamedRecord, ...]:
        """What is read for it, but for its publication, which many have in common."""
        return tuple(one for one in (self.certificate, self.release) if one is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEvent:
    """An event before its records are read. `why` is what a run failed by."""

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
    run = runs.get(name) or RunTold(since=page.written_at, command=page.command)
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
    name = page.for_run or page.writer.run_id
    known = runs.get(name)
    run = known or RunTold(since=page.written_at, command=page.command)
    in_work = len(run.ledgers)
    run = replace(
        _further(run, page), command=run.command or ("" if page.for_run else page.command)
    )
    is_over = known is None or not run.ledgers
    events: list[PageEvent] = []
    for job in _OF_RUNS:
        lines = [*_lines(page, published, job)]
        if not lines and job not in run.told:
            continue
        if job not in run.told:
            events.append(_event(page, name, run, job, EventType.START, in_work=in_work))
        lots: list[Sequence[LedgerLine]] = lots_of(lines, LEDGERS_MAX) or [()]
        for last, lot in [(lot is lots[-1], lot) for lot in lots]:
            why = _why_failed(page, name, run, job, in_work) if is_over and last else None
            type_ = EventType.RUNNING
            if is_over and last:
                type_ = EventType.COMPLETE if why is None else EventType.FAIL
            if lot or type_ is not EventType.RUNNING:
                events.append(
                    _event(page, name, run, job, type_, in_work=in_work, lines=lot, why=why)
                )
        run = replace(run, told=run.told | {job})
    return events, runs.with_run(name, None if is_over else run)


def _event(
    page: DayBookPage,
    name: str,
    run: RunTold,
    job: ToldJob,
    type_: EventType,
    *,
    in_work: int | None = None,
    lines: Sequence[LedgerLine] = (),
    why: str | None = None,
) -> PageEvent:
    return PageEvent(
        job=job,
        type=type_,
        run=name,
        since=run.since,
        command=run.command,
        at=run.since if type_ is EventType.START else page.written_at,
        page=page.number,
        in_work=len(run.ledgers) if in_work is None else in_work,
        lines=lines,
        why=why,
    )


def _further(run: RunTold, page: DayBookPage) -> RunTold:
    """The run behind what a close page says that it wrote and is done with."""
    left = {job: {*run.left(job)} for job in _OF_RUNS}
    quarantined = run.quarantined
    for named in _written(page):
        ledger_id, _uid = ledger_and_attempt(named.key)
        folder = folder_of(named.key)
        if ledger_id is None:
            continue
        if folder == "attempts":
            left[ToldJob.OFFLOAD].add(ledger_id)
        elif folder == "certificates":
            left[ToldJob.OFFLOAD].discard(ledger_id)
        elif folder == "quarantines":
            quarantined += 1
        elif folder == "releases" and keys.is_release(named.key):
            left[ToldJob.RELEASE].discard(ledger_id)
        elif folder == "releases":
            left[ToldJob.RELEASE].add(ledger_id)
    return replace(
        run,
        ledgers=run.ledgers - {*page.ledgers},
        unfinished={job: frozenset(some) for job, some in left.items() if some},
        quarantined=quarantined,
    )


def _why_failed(
    page: DayBookPage, name: str, run: RunTold, job: ToldJob, in_work: int
) -> str | None:
    if page.for_run is not None:
        return f"run {name} died with {in_work} ledgers in work; run {page.writer.run_id} closed it"
    if left := sorted(run.left(job)):
        shown = ", ".join(map(str, left[:_SHOWN])) + (" and others" if left[_SHOWN:] else "")
        end = "certificate" if job is ToldJob.OFFLOAD else "release"
        return f"{len(left)} ledgers were begun and have no {end}: {shown}"
    if job is ToldJob.OFFLOAD and run.quarantined:
        return f"{run.quarantined} copies failed a check and are in quarantine"
    return None


_SHOWN: Final = 20


def _lines(
    page: DayBookPage, published: Mapping[str, FoundRecord], job: ToldJob
) -> Iterator[LedgerLine]:
    """Ledgers that a job of this page's run brought further, in the order of their records."""
    found: dict[tuple[int, UUID], LedgerLine] = {}
    for named in _written(page):
        folder = folder_of(named.key)
        if folder == "publications" and job is ToldJob.OFFLOAD:
            for pair in _pairs(published.get(named.key)):
                found[pair] = replace(_line(found, pair), publication=named.key)
            continue
        pair_of_key = _pair(named.key)
        if pair_of_key is None:
            continue
        if folder == "certificates" and job is ToldJob.OFFLOAD:
            found[pair_of_key] = replace(_line(found, pair_of_key), certificate=named)
        elif folder == "releases" and job is ToldJob.RELEASE and keys.is_release(named.key):
            found[pair_of_key] = replace(_line(found, pair_of_key), release=named)
    yield from found.values()


def _line(found: Mapping[tuple[int, UUID], LedgerLine], pair: tuple[int, UUID]) -> LedgerLine:
    return found.get(pair) or LedgerLine(ledger_id=pair[0], uid=pair[1])


def _pair(key: str) -> tuple[int, UUID] | None:
    ledger_id, uid = ledger_and_attempt(key)
    return None if ledger_id is None or uid is None else (ledger_id, UUID(uid))


def _pairs(found: FoundRecord | None) -> Iterator[tuple[int, UUID]]:
    """None of a publication that is gone or damaged: nobody can tell its ledgers any more."""
    if found is not None and found.stored is not None:
        record: Publication = found.stored.record
        for one in record.ledgers:
            yield one.ledger_id, one.uid


def _written(page: DayBookPage) -> Sequence[NamedRecord]:
    return written_on(page) if page.phase == "close" else ()
