"""Typed reading and writing of records, and who signs them; the only place where steps meet JSON.

Owns: every record is written with its own digest, and one whose digest does not fit is unreadable.
A book that has a day book writes no record of a ledger before a page of it names the ledger.
"""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any, Protocol, TypeVar
from uuid import UUID

from tiering_assets.ground.day_book import DayBook, Scribe
from tiering_assets.ground.named_records import ledgers_of
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.records.codec import decode_record, encode_record
from tiering_assets.records.key_kinds import is_record_key
from tiering_assets.records.models import Record
from tiering_assets.records.signature import digest_problem, with_digest
from tiering_assets.records.stored import Stored
from tiering_assets.records.writer import Writer
from tiering_assets.resources.errors import FormatError, ObjectConflictError, ObjectExistsError
from tiering_assets.resources.object_store.records import RecordStore, StoredRecord, record_sha256
from tiering_assets.resources.object_store.store import ObjectStore, ObjectSummary


def writer_of(run_id: str) -> Writer:
    """How this process signs the records of a run."""
    return Writer(
        tool_version=_tool_version(), host=f"{socket.gethostname()}:{os.getpid()}", run_id=run_id
    )


def utc_now() -> datetime:
    return datetime.now(UTC)


@functools.cache
def _tool_version() -> str:
    return version("tierkeeper")


R = TypeVar("R", bound=Record)
FILED_BEFORE_MAX = timedelta(minutes=5)  # from asking for the store's time to writing by it


class Narrator(Protocol):
    @property
    def narrate(self) -> Callable[[str], None]: ...


def narrate_unreadable(who: Narrator) -> Callable[[str, FormatError], None]:
    """What to do about records that cannot be read where one is as good as not there: say so."""
    return lambda _key, error: who.narrate(f"passed over: {error}")


class RecordBook:
    """Records of one BookKeeper instance in one bucket. Whoever writes in it is a `scribe`."""

    def __init__(self, objects: ObjectStore, instance: str, scribe: Scribe | None = None) -> None:
        self._objects, self._instance = objects, instance
        self._records = RecordStore(objects, instance)
        self._day_book = None if scribe is None else DayBook(objects, self.prefix, scribe)

    def over(self, objects: ObjectStore) -> RecordBook:
        """The same book, read and written by way of another client of its bucket."""
        book = RecordBook(objects, self._instance)
        book._day_book = self._day_book
        return book

    def take_up(self, ledger_ids: Iterable[int]) -> None:
        """Say in the day book which ledgers records will be written of, all at once.

        Else each is named when the first record of it is written, by a page of its own.
        """
        if self._day_book is not None:
            self._day_book.take_up(ledger_ids)

    def take_away(self, record_keys: Iterable[str]) -> None:
        """Say in the day book which records are about to go."""
        if self._day_book is not None:
            self._day_book.take_away(record_keys)

    def name_found(self, records: Sequence[NamedRecord]) -> None:
        """Say in the day book which records no page had named; none: a full listing agreed."""
        if self._day_book is not None:
            self._day_book.found(records)

    def close_page_for(self, run_id: str, ledger_ids: Iterable[int]) -> None:
        """Say in the day book that a run died with these ledgers in work."""
        if self._day_book is not None:
            self._day_book.close_for(run_id, ledger_ids)

    def note_failure(self, failed: bool = True) -> None:
        """Have the day book say, once, that this run failed for a ledger that it took up."""
        if failed and self._day_book is not None:
            self._day_book.failed()

    def close_page(self) -> None:
        """Say in the day book what was written since ledgers were taken up."""
        if self._day_book is not None:
            self._day_book.close()

    @property
    def prefix(self) -> str:
        """What every record's key begins with in the bucket."""
        return self._records.prefix

    def create(self, key: str, record: R) -> Stored[R]:
        """Write a record that must not exist yet; ObjectExistsError when it does.

        The very same bytes, which name run and time, are our own first try whose answer was lost.
        """
        self.take_up(ledgers_of(record))
        stored = self._records.create_or_same(key, with_digest(encode_record(record)))
        self._name(stored)
        return self._typed(type(record), stored)

    def create_or_read(self, key: str, record: R) -> tuple[Stored[R], bool]:
        """Write a record, or read the one that is there; True when it was ours that was written."""
        try:
            return self.create(key, record), True
        except ObjectExistsError:
            found = self.read(type(record), key)
            if found is None:
                raise
            self._name(found)  # whoever wrote it may have died before its close page
            return found, False

    def read(self, record_type: type[R], key: str) -> Stored[R] | None:
        """The record, or None when there is none: one request."""
        stored = self._records.read(key)
        return None if stored is None else self._typed(record_type, stored)

    def read_any(self, key: str) -> StoredRecord | None:
        """What lies there, of whatever kind, with its digest checked: one request."""
        stored = self._records.read(key)
        if stored is not None:
            self._require_digest(stored)
        return stored

    def exists(self, key: str) -> bool:
        """Whether a record lies there, readable or not: one request."""
        try:
            return self._records.read(key) is not None
        except FormatError:
            return True

    def require(self, record_type: type[R], key: str) -> Stored[R]:
        """Read a record that must be there; FormatError names the key when it is not."""
        stored = self.read(record_type, key)
        if stored is None:
            raise FormatError(f"record {key} is missing; its chain cannot be followed")
        return stored

    def require_one_of(self, record_types: Sequence[type[Record]], key: str) -> Stored[Any]:
        """Read a record that must be there and is of one of these kinds, as `require` does."""
        stored = self._records.read(key)
        if stored is None:
            raise FormatError(f"record {key} is missing; its chain cannot be followed")
        schema = stored.record.get("schema")
        kinds = [one for one in record_types if one.kind == schema]
        return self._typed(kinds[0] if kinds else record_types[0], stored)

    def replace(self, found: Stored[R], record: R) -> None:
        """Overwrite what was read, if nobody else did; ObjectConflictError otherwise.

        A conflict with the very same bytes is one with our own first try, as in `create`.
        """
        body = with_digest(encode_record(record))
        self.take_up(ledgers_of(record))
        try:
            now = self._records.replace_if_match(found.key, body, etag=found.etag)
        except ObjectConflictError:
            there = self._records.read(found.key)
            if there is None or there.sha256 != record_sha256(body):
                raise
            now = there
        self._name(now)

    def iter_records(self, record_type: type[R], prefix: str) -> Iterator[Stored[R]]:
        """All records under a prefix, in key order."""
        for key in self.keys(prefix):
            stored = self.read(record_type, key)
            if stored is not None:
                yield stored

    def iter_readable(
        self, record_type: type[R], prefix: str, tell: Callable[[str, FormatError], None]
    ) -> Iterator[Stored[R]]:
        """The same without those that cannot be read, of which `tell` gets key and error."""
        for key in self.keys(prefix):
            stored = self.read_readable(record_type, key, tell)
            if stored is not None:
                yield stored

    def read_readable(
        self, record_type: type[R], key: str, tell: Callable[[str, FormatError], None]
    ) -> Stored[R] | None:
        """The record; None also for one that cannot be read, of which `tell` gets key and error."""
        try:
            return self.read(record_type, key)
        except FormatError as error:
            tell(key, error)
            return None

    def delete(self, key: str) -> None:
        """Take a record away that stands for what is so now, and is so no more."""
        self.take_away([key])
        self._objects.delete(self.prefix + key)

    def overwrite_damaged(self, key: str, record: R) -> None:
        """Put a record in the place of one that cannot be read, if nobody else did meanwhile."""
        head = self._objects.head(self.prefix + key)
        if head is None:
            self.create(key, record)
        else:
            body = with_digest(encode_record(record))
            self.take_up(ledgers_of(record))
            self._name(self._records.replace_if_match(key, body, etag=head.etag))

    def stored_at(self, prefix: str) -> dict[str, datetime]:
        """When the store got each record under a prefix, in key order."""
        return dict(self._listed(prefix))

    def filed_since(self, folder: str, since: datetime) -> list[str]:
        """Keys of records that are filed by the hour and were written after `since`: one
        listing.

        An hour may be over when what was filed in it is written: it is listed for that long more.
        """
        begin = keys.filed_in(folder, since - FILED_BEFORE_MAX)
        return self.keys_since(folder, since, begin=begin)

    def keys_since(self, prefix: str, since: datetime, *, begin: str = "") -> list[str]:
        """Keys of records that the store wrote after `since`, from one listing.

        With `begin` nothing is listed of the keys that come before it.
        """
        return [key for key, stored_at in self._listed(prefix, begin) if stored_at > since]

    def keys_after(self, prefix: str, key: str) -> Iterator[str]:
        """Keys under a prefix behind this one, a request per thousand that are taken."""
        return (behind for behind, _stored_at in self._listed(prefix, key))

    def _listed(self, prefix: str, after: str = "") -> Iterator[tuple[str, datetime]]:
        """Each key under a prefix, behind `after` if that is given, and when the store got it."""
        return ((key, one.last_modified) for key, one in self.listed(prefix, after=after))

    def listed(self, prefix: str, *, after: str = "") -> Iterator[tuple[str, ObjectSummary]]:
        """Each record's key under a prefix with what the listing says of it, in key order.

        A key that no record of ours has is passed over: strays() has those.
        """
        start_after = self.prefix + after if after else ""
        for one in self._objects.list_objects(self.prefix + prefix, start_after=start_after):
            key = one.key.removeprefix(self.prefix)
            if is_record_key(key):
                yield key, one

    def strays(self, prefix: str) -> Iterator[str]:
        """Keys under a prefix that no record of ours can have, in key order."""
        return (key for key in self._records.list(prefix) if not is_record_key(key))

    def every_key(self) -> Iterator[str]:
        """All keys of the instance in their order, of records and strays."""
        return self._records.list()

    def is_readable(self, key: str) -> bool:
        """Whether what lies there is a JSON object with its digest, if anything does: one
        request.
        """
        try:
            stored = self._records.read(key)
        except FormatError:
            return False
        return stored is None or digest_problem(stored.record) is None

    def keys(self, prefix: str) -> list[str]:
        return [key for key, _one in self.listed(prefix)]

    def pairs(self, prefix: str) -> set[tuple[int, UUID]]:
        """(ledger id, attempt) of every record under a prefix whose keys end so."""
        return {keys.pair_of(key) for key, _one in self.listed(prefix)}

    def _name(self, stored: StoredRecord | Stored[Any]) -> None:
        if self._day_book is not None:
            self._day_book.wrote(stored.key, stored.sha256)

    @staticmethod
    def _require_digest(stored: StoredRecord) -> None:
        problem = digest_problem(stored.record)
        if problem is not None:
            raise FormatError(f"record {stored.key}: {problem}: it was changed after writing")

    @staticmethod
    def _typed(record_type: type[R], stored: StoredRecord) -> Stored[R]:
        RecordBook._require_digest(stored)
        return Stored(
            key=stored.key,
            record=decode_record(record_type, stored.record, key=stored.key),
            sha256=stored.sha256,
            stored_at=stored.last_modified,
            etag=stored.etag,
            body=stored.record,
        )
