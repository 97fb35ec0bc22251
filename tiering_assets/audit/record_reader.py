"""Read the pages of the day book, then records as they are listed, and miss what pages name.

Owns: one that cannot be read is a finding, never an error; only a listing that fails stops an
audit. A record is written before the close page that names it, so pages are listed before records.
What goes meanwhile is on a gone page that came meanwhile, and those are read at the end.

Of records that are read, the digest is compared with the named one, and none is read twice for
that. Of the other folders (plans, leftovers, undos and so on) a listing tells that a record is
there, and no digest is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from itertools import chain
from typing import Final
from uuid import UUID

from tiering_assets.audit.audit_findings import About, AuditFinding, AuditReport, FindingKind
from tiering_assets.audit.day_book_audit import NamedRecords, PageChain, attempt_of
from tiering_assets.audit.record_audit import FOLDERS, ReadRecord, judge_record, parse_place
from tiering_assets.records import keys
from tiering_assets.records.key_kinds import is_record_key
from tiering_assets.records.models import LedgerFailure
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.object_store.records import RECORD_BYTES_MAX
from tiering_assets.resources.object_store.store import ObjectStore, ObjectSummary

_READ: Final = (  # all of them
    *(f"{folder}/" for folder in FOLDERS),
    keys.FORGET_PLANS,
    keys.STREAMS,
)


class RecordReader:
    """Of one instance: `prefix` is what all its keys begin with. What is wrong, and how much was
    read, is put into `report` at once.
    """

    def __init__(
        self,
        objects: ObjectStore,
        prefix: str,
        report: AuditReport,
        *,
        skew: timedelta,
        narrate: Callable[[str], None],
    ) -> None:
        self._objects, self._prefix = objects, prefix
        self._report, self._skew, self._narrate = report, skew, narrate
        self._named = NamedRecords()
        self._newest_page = 0

    def listed(self, prefix: str) -> Iterator[ObjectSummary]:
        """ObjectStoreError where the store does not list."""
        return self._objects.list_objects(self._prefix + prefix)

    def key_of(self, summary: ObjectSummary) -> str:
        """Relative to the instance's prefix."""
        return summary.key.removeprefix(self._prefix)

    def judge_pages(self) -> None:
        """Each page by itself and by the one behind it; what they name is looked for later."""
        pages = PageChain()
        for number, read in self._pages():
            self._report.findings += pages.follow(number, read)
        self._report.findings += pages.end()

    def read_pages_for(self, ledger_ids: Iterable[int]) -> None:
        """What pages name of these ledgers is looked for later, and the pages are not judged.

        Where the store does not answer, that is told: nobody knows what else the page names.
        """
        wanted = {*ledger_ids}
        self._named = NamedRecords(lambda key: attempt_of(key).ledger_id in wanted)
        found, before = self._report.findings, len(self._report.findings)
        for _page in self._pages():
            pass
        found[before:] = [one for one in found[before:] if one.kind is FindingKind.UNREADABLE]

    def is_there(self, key: str) -> bool:
        """Whether a record that was not listed came meanwhile. False where the store is silent."""
        try:
            return self._objects.head(self._prefix + key) is not None
        except ObjectStoreError:
            return False

    def read(self, summary: ObjectSummary) -> ReadRecord | None:
        read = self._read(summary)
        self._named.saw(self.key_of(summary), None if read is None else read.sha256)
        return read

    def missed(self, forgotten: Collection[tuple[int, UUID]]) -> list[AuditFinding]:
        """What pages name and is not there, after all records were read."""
        elsewhere = [key for key in self._named.missing() if not key.startswith(_READ)]
        folders = sorted({key.rpartition("/")[0] + "/" for key in elsewhere})
        for summary in chain.from_iterable(map(self.listed, folders)):
            self._named.saw(self.key_of(summary))
        if self._named.missing():
            self._read_newer_pages()
        return [*self._named.findings(forgotten)]

    def _pages(self) -> Iterator[tuple[int, ReadRecord | None]]:
        """Number and record of each page, the newest first, as they are listed."""
        for summary in self.listed(keys.DAY_BOOK):
            key, read = self.key_of(summary), self._read(summary)
            if is_record_key(key):
                number = keys.page_number(key)
                self._newest_page = max(self._newest_page, number)
                if read is not None:
                    self._named.take(read.record)
                yield number, read
                self._narrate(f"page {number} of the day book")

    def _read_newer_pages(self) -> None:
        """What a run took away since. What it wrote since, nobody has looked for."""
        for summary in self.listed(keys.DAY_BOOK):
            key = self.key_of(summary)
            if not is_record_key(key):
                continue
            if keys.page_number(key) <= self._newest_page:
                return
            read = self._read(summary)
            if read is not None:
                self._named.take_gone(read.record)

    def _read(self, summary: ObjectSummary) -> ReadRecord | None:
        key = self.key_of(summary)
        place = parse_place(key)
        about = About(None, None) if place is None else place.about
        self._report.records += 1
        if summary.size > RECORD_BYTES_MAX:
            self._say(about, FindingKind.RECORD_DAMAGED, key, RECORD_BYTES_MAX, summary.size)
            return None
        try:
            stored = self._objects.get(summary.key)
        except ObjectStoreError as error:
            self._say(about, FindingKind.UNREADABLE, key, "bytes", error)
            return None
        if stored is None:
            if place is None or place.record_type is not LedgerFailure:  # its ledger moved on
                self._say(about, FindingKind.UNREADABLE, key, "a record, as listed", "nothing")
            return None
        read, findings = judge_record(
            key, stored.body, stored_at=stored.head.last_modified, skew=self._skew
        )
        self._report.findings += findings
        return read

    def _say(
        self, about: About, kind: FindingKind, key: str, expected: object, found: object
    ) -> None:
        self._report.findings.append(about.finding(kind, key, "reading it", expected, found))
