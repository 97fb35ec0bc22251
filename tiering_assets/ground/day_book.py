"""The day book as a run writes it: an open page before its first record of a ledger, a close page
behind its last one.

Owns: pages have no gap, and each names the digest of the one before it, whatever lies there. An
open page that cannot be written is an error before any effect. A close page that cannot be is told,
and hurts nobody who reads the records themselves.

One request finds the newest page, however many there are, as keys count down. Pages of other runs
in between cost four requests more, however many they are. What a killed run wrote, and what a
request wrote whose answer was lost, is on no close page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Literal

from tiering_assets.ground.effects import reach
from tiering_assets.ground.named_records import is_named
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage, NamedRecord
from tiering_assets.records.codec import encode_record
from tiering_assets.records.key_kinds import is_record_key
from tiering_assets.records.signature import with_digest
from tiering_assets.records.writer import Writer
from tiering_assets.resources.errors import (
    FormatError,
    ObjectExistsError,
    ObjectStoreError,
    TierkeeperError,
)
from tiering_assets.resources.lots import lots_of
from tiering_assets.resources.object_store.records import RECORD_BYTES_MAX
from tiering_assets.resources.object_store.records import encode_record as encode_bytes
from tiering_assets.resources.object_store.store import ObjectStore

LEDGERS_MAX = 1_000  # of a page
RECORDS_MAX = 2_000
TRIES_MAX = 200  # each behind a page of another run
_APART_S = 0.02
_STEPS = 3  # from page to page, before the newest one is looked for
_Phase = Literal["open", "close", "gone", "proof"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scribe:
    """Who writes pages, and how it waits: `turn` is had by one thread of the run at a time."""

    writer: Writer
    command: str
    now: Callable[[], datetime]
    tell: Callable[[str], None]
    sleep: Callable[[float], None]
    turn: Callable[[], AbstractContextManager[None]]


class DayBook:
    """The pages of one run. `prefix` is that of the instance's records."""

    def __init__(self, objects: ObjectStore, prefix: str, scribe: Scribe) -> None:
        self._objects, self._prefix, self._scribe = objects, prefix, scribe
        self._open: set[int] = set()
        self._written: list[NamedRecord] = []
        self._failed = self._failure_told = False
        self._newest: tuple[int, str] | None = None

    def take_up(self, ledger_ids: Iterable[int]) -> None:
        """Name ledgers that records will be written of, if no open page of this run does.

        ObjectStoreError where that cannot be written: nothing may be done then.
        """
        wanted = {*ledger_ids}
        if wanted <= self._open:
            return
        with self._scribe.turn():
            for some in lots_of(sorted(wanted - self._open), LEDGERS_MAX):
                self._append("open", ledgers=some)
                self._open.update(some)
                reach("day_book.opened", *some)

    def wrote(self, key: str, digest: str) -> None:
        """Have the next close page name a record."""
        if is_named(key):
            self._written.append(NamedRecord(key=key, sha256=digest))

    def take_away(self, record_keys: Iterable[str]) -> None:
        """Name records that are about to go. ObjectStoreError where that cannot be written."""
        named = [NamedRecord(key=key) for key in record_keys if is_named(key)]
        if not named:
            return
        with self._scribe.turn():
            for some in lots_of(named, RECORDS_MAX):
                self._append("gone", records=some)
            reach("day_book.gone_noted")

    def found(self, records: Sequence[NamedRecord]) -> None:
        """Name records that no page named; with none of them: that a full listing agreed."""
        with self._scribe.turn():
            for some in lots_of(records, RECORDS_MAX) or [()]:
                self._append("proof", records=some)

    def close_for(self, run_id: str, ledger_ids: Iterable[int]) -> None:
        """Say of a run that died that nobody works on these ledgers for it any more."""
        with self._scribe.turn():
            for some in lots_of(sorted(ledger_ids), LEDGERS_MAX):
                self._append("close", ledgers=some, for_run=run_id)

    def failed(self) -> None:
        """Have the next close page say that the run failed, if none of this run did."""
        self._failed = True

    def close(self) -> None:
        """Say what was written, and that the run is done with what it took up. Never raises.

        May be repeated. What is taken up later needs an open page again.
        """
        if not self._open and not self._written:
            return
        with self._scribe.turn():
            ledgers, written = sorted(self._open), [*self._written]
            try:
                self._write_close(ledgers, [*{one.key: one for one in written}.values()])
            except TierkeeperError as error:
                self._scribe.tell(
                    f"the day book does not name what this run wrote of {len(ledgers)} ledgers: "
                    f"{error}"
                )
                return
            self._open.difference_update(ledgers)
            del self._written[: len(written)]
            reach("day_book.closed", *ledgers)

    def _write_close(self, ledgers: list[int], written: list[NamedRecord]) -> None:
        """Records first: once a page says that the run is done with a ledger, all of it is
        named.
        """
        before = len(written) - len(written) % RECORDS_MAX
        for records in lots_of(written[:before], RECORDS_MAX):
            self._append("close", records=records)
        failed = self._failed and not self._failure_told
        last = written[before:]
        self._append("close", ledgers=ledgers[:LEDGERS_MAX], records=last, failed=failed)
        self._failure_told |= failed
        for rest in lots_of(ledgers[LEDGERS_MAX:], LEDGERS_MAX):
            self._append("close", ledgers=rest)

    def _append(
        self,
        phase: _Phase,
        *,
        ledgers: Sequence[int] = (),
        records: Sequence[NamedRecord] = (),
        for_run: str | None = None,
        failed: bool = False,
    ) -> None:
        scribe = self._scribe
        number, before = self._newest or self._look()
        steps = 1 if self._newest else _STEPS  # many may have come behind our own last page
        looks = 0
        for _ in range(TRIES_MAX):
            page = DayBookPage(
                number=number + 1,
                previous=before,
                phase=phase,
                command=scribe.command,
                written_at=scribe.now(),
                writer=scribe.writer,
                ledgers=tuple(ledgers),
                records=tuple(records),
                for_run=for_run,
                failed=failed,
            )
            body = encode_bytes(with_digest(encode_record(page)))
            ours = sha256(body)
            there = body if self._put(page, body) else self._bytes_of(page.number)
            number, before = page.number, sha256(there).hexdigest()
            if there == body:  # also by our own first try, whose answer was lost
                self._newest = number, before
                return
            steps -= 1
            if not steps:  # others go on meanwhile: step by step nobody catches up
                if looks:
                    scribe.sleep(_APART_S * ours.digest()[0] / 255)  # as long as no other run waits
                number, before = self._look()
                steps, looks = _STEPS, looks + 1
        raise ObjectStoreError(
            f"the day book's page {number + 1} could not be written: others were faster "
            f"{TRIES_MAX} times; run again"
        )

    def _put(self, page: DayBookPage, body: bytes) -> bool:
        """False where another page is there."""
        key = self._prefix + keys.page(page.number)
        try:
            self._objects.put(key, body, if_absent=True, content_type="application/json")
        except ObjectExistsError:
            return False
        return True

    def _look(self) -> tuple[int, str]:
        """Number and digest of the newest page; 0 and empty where there is none."""
        for one in self._objects.list_objects(self._prefix + keys.DAY_BOOK, at_once=1):
            key = one.key.removeprefix(self._prefix)
            if is_record_key(key):
                number = keys.page_number(key)
                if number >= keys.PAGES_MAX:
                    raise FormatError(
                        f"page {number} of the day book ({one.key}) leaves no number for another; "
                        f"nobody wrote so many: delete it"
                    )
                return number, sha256(self._bytes_of(number)).hexdigest()
        return 0, ""

    def _bytes_of(self, number: int) -> bytes:
        """The page as it lies there: one that is damaged is followed all the same."""
        key = self._prefix + keys.page(number)
        found = self._objects.get(key, bytes_max=RECORD_BYTES_MAX)
        if found is None:
            raise ObjectStoreError(f"page {number} of the day book ({key}) was there and is gone")
        return found.body
