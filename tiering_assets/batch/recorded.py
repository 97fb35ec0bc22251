"""What the records prove of each ledger: for rebuilding a view of the fleet that was lost.

Reads only. Owns: which ledgers such a view needs (tried by us, and not released long ago), and that
one unreadable record is one ledger's own. Records are read in parallel and without a HEAD each,
because there are three of every ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from tiering_assets.batch.release_batch import ReleaseRecords
from tiering_assets.ground.record_book import R
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import LedgerView, SurveyedLedger, survey_topics
from tiering_assets.records import keys
from tiering_assets.records.models import (
    Certificate,
    Publication,
    Quarantine,
    Release,
    ReleaseIntent,
)
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError

WORKERS = 16  # requests at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A ledger that was tried, by the survey and one listing; `released` is its release's
    attempt.
    """

    view: LedgerView
    certified: bool
    quarantined: bool
    publication: Stored[Publication] | None
    released: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFleet:
    """`untried` ledgers have no attempt record; `retired` ones were released long ago.

    `there` are the keys of certificates, quarantines and release records.
    """

    ledgers: tuple[Recorded, ...]
    untried: int
    retired: int
    there: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """One ledger with its records."""

    ledger: Recorded
    certificate: Stored[Certificate] | None
    quarantine: Stored[Quarantine] | None
    release: ReleaseRecords | None


def find_recorded(stack: Stack, *, retired_after_s: float | None) -> RecordedFleet:
    """Ledgers that topics list and that we tried, in id order, without those released so long
    ago; with all of these for None.
    """
    there: set[str] = set()
    released: dict[int, tuple[datetime, UUID]] = {}
    for folder in ("certificates/", "quarantines/", "releases/"):
        for key, summary in stack.book.listed(folder):
            there.add(key)
            if folder == "releases/" and keys.is_release(key):
                ledger_id, uid = keys.pair_of(key)
                found = (summary.last_modified, uid)
                released[ledger_id] = max(found, released.get(ledger_id, found))
    long_ago = None
    if retired_after_s is not None:
        long_ago = stack.objects.server_time() - timedelta(seconds=retired_after_s)
    ledgers: list[Recorded] = []
    untried = retired = 0
    for topic in survey_topics(stack):
        for ledger in topic.ledgers:
            ledger_id = ledger.view.ledger_id
            if ledger.attempts == 0:
                untried += not ledger.evidence.open
            elif long_ago and ledger_id in released and released[ledger_id][0] <= long_ago:
                retired += 1
            else:
                ledgers.append(_recorded(ledger, released.get(ledger_id)))
    return RecordedFleet(
        ledgers=tuple(sorted(ledgers, key=lambda one: one.view.ledger_id)),
        untried=untried,
        retired=retired,
        there=frozenset(there),
    )


def _recorded(ledger: SurveyedLedger, released: tuple[datetime, UUID] | None) -> Recorded:
    evidence = ledger.evidence
    return Recorded(
        view=ledger.view,
        certified=evidence.certified,
        quarantined=evidence.quarantined,
        publication=ledger.publication,
        released=released[1] if released and ledger.view.state is LedgerState.RELEASED else None,
    )


def read_proofs(
    stack: Stack, fleet: RecordedFleet, ledgers: Sequence[Recorded], *, workers: int = WORKERS
) -> Iterator[tuple[Recorded, Proven | FormatError]]:
    """Each ledger with its records, or with what is wrong with one of them. In the given order."""

    def read(ledger: Recorded) -> Proven | FormatError:
        try:
            return _read(stack, fleet.there, ledger)
        except FormatError as error:
            return error

    if workers == 1:
        yield from zip(ledgers, map(read, ledgers), strict=True)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from zip(ledgers, pool.map(read, ledgers), strict=True)


def _read(stack: Stack, there: frozenset[str], ledger: Recorded) -> Proven:
    def record(kind: type[R], key: str) -> Stored[R] | None:
        # What no listing had was not there when the others were listed.
        return stack.book.read(kind, key) if key in there else None

    def certificate_of(uid: UUID) -> Stored[Certificate] | None:
        return record(Certificate, keys.certificate(ledger_id, uid))

    ledger_id, uid = ledger.view.ledger_id, ledger.view.uid
    certificate = quarantine = release = None
    if uid is not None:
        certificate = certificate_of(uid)
        quarantine = record(Quarantine, keys.quarantine(ledger_id, uid))
    if ledger.released is not None:
        stored = record(Release, keys.release(ledger_id, ledger.released))
        if stored is not None:
            release = ReleaseRecords(
                certificate=(
                    certificate if ledger.released == uid else certificate_of(ledger.released)
                ),
                intent=record(ReleaseIntent, keys.release_intent(ledger_id, ledger.released)),
                release=stored,
            )
    return Proven(
        ledger=ledger,
        certificate=certificate,
        quarantine=quarantine,
        release=release,
    )
