"""Runs that write in a bucket, and a poster that tells of them at an address."""

from dataclasses import replace
from uuid import UUID

from tests.unit.catalogue.desk import example
from tiering_assets.catalogue.openlineage.mark_object import KEY, read_mark
from tiering_assets.catalogue.openlineage.tell import tell
from tiering_assets.catalogue.pages import newest_page
from tiering_assets.ground.day_book import Scribe
from tiering_assets.records import keys
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    Publication,
    PublishedLedger,
    Quarantine,
    Release,
    ReleaseIntent,
)
from tiering_assets.resources.settings_lineage import OpenLineageSettings

OFFLOAD, RELEASE = "tierkeeper ledger offload", "tierkeeper ledger release"
ML_NAME = "public/default/persistent/orders"


def uid_of(ledger_id):
    return UUID(int=1_000_000 + ledger_id)


class Outbox:
    """`stack` is that of the poster."""

    def __init__(self, desk, catalogue, url):
        self.desk, self.catalogue = desk, catalogue
        self.stack = desk.stack
        self.set(url=url, timeout_s=3.0)

    def set(self, **changes):
        settings = self.stack.settings
        before = settings.openlineage
        values = {name: getattr(before, name) for name in ("url", "api_key", "timeout_s", "keep_s")}
        self.stack.settings = replace(
            settings, openlineage=OpenLineageSettings(**{**values, **changes})
        )

    def tell(self, **how):
        return tell(self.stack, self.catalogue, posted=newest_page(self.stack), **how)

    def tell_all(self, most=50):
        """As many ticks as it takes."""
        said = [self.tell().why]
        while not said[-1].startswith("told up to"):
            assert len(said) < most, said
            said.append(self.tell().why)

    @property
    def mark(self):
        found = read_mark(self.stack)
        assert found is not None
        return found.mark

    @property
    def mark_key(self):
        return self.stack.book.prefix + KEY

    def pass_by(self, seconds):
        self.desk.objects.advance(seconds)

    def book(self, run, command=OFFLOAD):
        book = self.desk.book_of(run)
        day_book = book._day_book
        scribe = day_book._scribe
        day_book._scribe = Scribe(
            writer=scribe.writer,
            command=command,
            now=scribe.now,
            tell=scribe.tell,
            sleep=scribe.sleep,
            turn=scribe.turn,
        )
        return book

    def offload(self, ledger_ids, run="offload-1", *, publish=True, command=OFFLOAD):
        """A run that copies, proves and publishes ledgers, and ends."""
        book = self.book(run, command)
        book.take_up(ledger_ids)
        certified = [self.certify(book, ledger_id) for ledger_id in ledger_ids]
        if publish:
            self.publish(book, certified)
        book.close_page()
        return certified

    def certify(self, book, ledger_id, ml_name=ML_NAME):
        self.attempt(book, ledger_id)
        uid = uid_of(ledger_id)
        plain = example(Certificate)
        record = replace(
            plain,
            ledger=replace(plain.ledger, ledger_id=ledger_id),
            uid=uid,
            ml_name=ml_name,
            data=replace(plain.data, key=f"{uid}-ledger-{ledger_id}"),
        )
        return book.create(keys.certificate(ledger_id, uid), record)

    def attempt(self, book, ledger_id):
        plain = example(Attempt)
        facts = replace(plain.ledger, ledger_id=ledger_id)
        record = replace(plain, ledger=facts, uid=uid_of(ledger_id))
        return book.create(keys.attempt(ledger_id, uid_of(ledger_id)), record)

    def publish(self, book, certified, ml_name=ML_NAME):
        number = len(book.keys(keys.publications_of(ml_name))) + 1
        named = tuple(
            PublishedLedger(
                ledger_id=one.record.ledger.ledger_id,
                uid=one.record.uid,
                certificate_sha256=one.sha256,
                previous="2" * 64,
            )
            for one in certified
        )
        record = example(Publication, ml_name=ml_name, ledgers=named)
        return book.create(keys.publication(ml_name, number), record)

    def quarantine(self, book, ledger_id):
        uid = uid_of(ledger_id)
        record = example(Quarantine, ledger_id=ledger_id, uid=uid)
        return book.create(keys.quarantine(ledger_id, uid), record)

    def intend(self, book, ledger_id):
        plain, uid = example(ReleaseIntent), uid_of(ledger_id)
        record = replace(plain, ledger=replace(plain.ledger, ledger_id=ledger_id), uid=uid)
        return book.create(keys.release_intent(ledger_id, uid), record)

    def release(self, ledger_ids, run="release-1", *, command=RELEASE):
        book = self.book(run, command)
        book.take_up(ledger_ids)
        for ledger_id in ledger_ids:
            self.intend(book, ledger_id)
            self.released(book, ledger_id)
        book.close_page()

    def released(self, book, ledger_id):
        uid = uid_of(ledger_id)
        record = example(Release, ledger_id=ledger_id, uid=uid)
        return book.create(keys.release(ledger_id, uid), record)
