"""A bucket with runs that write in its day book, and no cluster: what the catalogue reads is
there.
"""

import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID, uuid4

from tests.support.audited_bucket import put_chain
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_clients import settings_of_simulation
from tests.unit.records.examples import AT, EXAMPLES, UID
from tiering_assets.catalogue.facts.read_pages import FoundRecord, ReadPage, ReadPages
from tiering_assets.catalogue.view import answer
from tiering_assets.ground.day_book import Scribe
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage, NamedRecord
from tiering_assets.records.models import Claim, Outcome, Scrub
from tiering_assets.records.stored import Stored
from tiering_assets.records.writer import Writer

OTHER_UID = UUID(int=7)


def example(kind, **changes):
    return replace(next(one for one in EXAMPLES if isinstance(one, kind)), **changes)


def stored(key, record, *, at=AT, sha256="5a" * 32):
    return Stored(key=key, record=record, sha256=sha256, stored_at=at, etag="e")


def page(number, phase="close", *, ledgers=(), names=(), run="run-1", for_run=None, at=AT):
    """A page as it is read; `names` are keys or records named."""
    named = tuple(one if isinstance(one, NamedRecord) else NamedRecord(key=one) for one in names)
    record = DayBookPage(
        number=number,
        previous="",
        phase=phase,
        command="tierkeeper test",
        written_at=at,
        writer=Writer(tool_version="0", host="h:1", run_id=run),
        ledgers=tuple(ledgers),
        records=named,
        for_run=for_run,
    )
    return ReadPage(number=number, stored=stored(keys.page(number), record))


def unreadable(number, why="it is gone"):
    return ReadPage(number=number, stored=None, why=why)


def batch(*pages, found=()):
    """Pages with the records that were found: Stored ones, or (key, FoundRecord)."""
    pairs = [one if isinstance(one, tuple) else (one.key, there(one)) for one in found]
    return ReadPages([*pages], dict(pairs))


def there(one):
    return FoundRecord(stored=one)


class Desk:
    """`stack` is what the catalogue asks of one; `book` is that of the run `run-1`."""

    def __init__(self):
        self.objects = SimulatedObjectStore()
        self.book = self.book_of("run-1")
        self.stack = self.stack_of("poster")
        self.told = []

    def book_of(self, run):
        scribe = Scribe(
            writer=Writer(tool_version="0", host="h:1", run_id=run),
            command=f"tierkeeper {run}",
            now=lambda: self.objects.now,
            tell=lambda line: self.told.append(line),
            sleep=lambda _seconds: None,
            turn=nullcontext,
        )
        return RecordBook(self.objects, "inst", scribe)

    def stack_of(self, run):
        settings = settings_of_simulation()
        return SimpleNamespace(
            book=self.book_of(run),
            objects=self.objects,
            settings=settings,
            instance="inst",
            run_id=run,
            now=lambda: self.objects.now,
            monotonic=time.monotonic,
            new_uid=uuid4,
            in_parallel=lambda act, items: [act(one) for one in items],
            tell=lambda *_said: None,
        )

    def chain(self, ledger_id, *, book=None, **how):
        """A ledger of two blocks with every record up to its release."""
        return put_chain(self.objects, book or self.book, ledger_id, **how)

    def outcome(self, ledger_id, *, book=None, uid=UID):
        key = keys.outcome(ledger_id, uid)
        (book or self.book).create(key, example(Outcome, ledger_id=ledger_id, uid=uid))
        return key

    def scrub(self, ledger_id=42, *, book=None, **changes):
        """A good look, written for the first time or over the one of before."""
        book = book or self.book
        facts = {"findings": (), "lost": (), "blocks_read": 1, **changes}
        record = example(Scrub, ledger_id=ledger_id, **facts)
        key = keys.scrub(ledger_id, UID, record.depth)
        before = book.read(Scrub, key)
        if before is None:
            book.create(key, record)
        else:
            book.replace(before, record)
        return key

    def claim(self, ledger_id, lives_s=900):
        until = self.objects.now + timedelta(seconds=lives_s)
        claim = Claim(ledger_id=ledger_id, run_id="run-1", attempt=None, expires_at=until)
        RecordBook(self.objects, "inst").create(keys.claim(ledger_id), claim)

    def key_of(self, key):
        return self.book.prefix + key

    def drop(self, key):
        """Gone, and nobody has said so."""
        self.objects.delete(self.key_of(key))

    def bytes_of(self, key):
        found = self.objects.peek(self.key_of(key))
        assert found is not None
        return found[0]

    def change(self, key, old, new):
        """Other bytes, behind everybody's back."""
        body = self.bytes_of(key)
        assert old in body
        self.objects.overwrite(self.key_of(key), body.replace(old, new))


def asked(catalogue, sql):
    return answer(catalogue.opened(), sql).to_pylist()


def counts(catalogue):
    return {
        name: asked(catalogue, f"select count(*) as n from {name}")[0]["n"]
        for name in ("blocks", "events", "ledger_changes")
    }
