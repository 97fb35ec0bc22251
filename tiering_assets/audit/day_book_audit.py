"""Do the pages of the day book follow from each other, and is there what they name? Pure.

Owns: what a close page names and `is_lasting` must be there with the bytes that it had. A chain of
records that is gone as a whole is so missed, though no record is left that would miss it. What a
gone page names, or a forget plan, may be away. What cannot be read is a finding of
record_audit.py, and is judged no second time here.

How it grows: one listing of the pages, and one GET for each. In memory are the names that close
pages give, some 400 bytes each, as much as an audit keeps of each record that it lists. They go as
the records are read. An audit of chosen ledgers keeps the names of theirs alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from typing import Final
from uuid import UUID

from tiering_assets.audit.audit_findings import About, AuditFinding, FindingKind
from tiering_assets.audit.record_audit import ReadRecord
from tiering_assets.ground.named_records import is_lasting
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage

NOTHING: Final = "nothing"
_NO_ATTEMPT: Final = About(None, None)
_OF_ATTEMPT: Final = re.compile(
    r"[\w-]+/(0|[1-9][0-9]{0,18})/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.\w+)?\.json"
)


def attempt_of(key: str) -> About:
    """The ledger and the attempt that a record's key names, if it does."""
    match = _OF_ATTEMPT.fullmatch(key)
    return _NO_ATTEMPT if match is None else About(int(match[1]), UUID(match[2]))


class PageChain:
    """Told of every page from the newest to the first: gaps, and links that do not fit.

    That the newest pages are gone, nobody can see: no page names them.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._previous: str | None = None  # None where that page cannot be read

    def follow(self, number: int, read: ReadRecord | None) -> list[AuditFinding]:
        """The next older page that is listed; `read` is None where it cannot be read."""
        behind, expected = self._number, self._previous
        self._number = number
        self._previous = None if read is None else read.record.previous
        if behind is None:
            return []
        if number != behind - 1:
            return [_gap(number + 1, behind - 1, expected)]
        if expected is None or read is None or expected == read.sha256:
            return []
        return [_broken(behind, f"SHA-256 of page {number}", read.sha256, expected)]

    def end(self) -> list[AuditFinding]:
        """After the last page that is listed, which is the first of all."""
        if self._number is None:
            return []
        if self._number > 1:
            return [_gap(1, self._number - 1, self._previous)]
        if self._number == 1 and self._previous:
            return [_broken(1, "SHA-256 of the page before", NOTHING, self._previous)]
        return []


def _gap(first: int, last: int, sha256: str | None) -> AuditFinding:
    """Pages `first` to `last` are gone; the page behind names the last of them."""
    which = f"page {last}" if first == last else f"pages {first} to {last}"
    return _NO_ATTEMPT.finding(
        FindingKind.PAGE_CHAIN_BROKEN,
        keys.page(last),
        f"{which} of the day book",
        sha256 or "a page",
        NOTHING,
    )


def _broken(number: int, what: str, expected: str, found: str) -> AuditFinding:
    kind = FindingKind.PAGE_CHAIN_BROKEN
    return _NO_ATTEMPT.finding(kind, keys.page(number), f"previous, {what}", expected, found)


class NamedRecords:
    """What close and proof pages name: told of every page first, then of every record there is.

    Only those count that `wanted` takes, by key.
    """

    def __init__(self, wanted: Callable[[str], bool] = lambda _key: True) -> None:
        self._wanted = wanted
        self._named: dict[str, tuple[int, str | None]] = {}  # the page's number, the digest
        self._gone: set[str] = set()
        self._other: dict[str, tuple[int, str | None, str]] = {}

    def take(self, page: DayBookPage) -> None:
        """Pages come from the newest to the first, so the oldest digest of a record counts.

        A proof page may name a record without one.
        """
        if page.phase in ("close", "proof"):
            for one in page.records:
                if is_lasting(one.key) and self._wanted(one.key):
                    _page, known = self._named.get(one.key, (0, None))
                    self._named[one.key] = page.number, one.sha256 or known
        self.take_gone(page)

    def take_gone(self, page: DayBookPage) -> None:
        """What may be away, however it was named before or behind that."""
        if page.phase == "gone":
            self._gone.update(one.key for one in page.records if self._wanted(one.key))

    def saw(self, key: str, sha256: str | None = None) -> None:
        """A record lies there. Without a digest only that is known, or it is a finding already."""
        number, expected = self._named.pop(key, (0, None))
        if expected is not None and sha256 is not None and sha256 != expected:
            self._other[key] = number, expected, sha256

    def missing(self) -> list[str]:
        """Keys of the records that nobody saw by now, in order."""
        return sorted(self._named.keys() - self._gone)

    def findings(self, forgotten: Container[tuple[int, UUID]]) -> Iterator[AuditFinding]:
        """By key. `forgotten` are attempts whose records may be away, by a plan."""
        nothing = {key: (*self._named[key], NOTHING) for key in self.missing()}
        for key, (number, expected, found) in sorted((nothing | self._other).items()):
            about = attempt_of(key)
            if key in self._gone or (about.ledger_id, about.uid) in forgotten:
                continue
            what = f"record that page {number} of the day book names ({keys.page(number)})"
            yield about.finding(FindingKind.CHAIN_MISSING, key, what, expected or "a record", found)
