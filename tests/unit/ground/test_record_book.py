"""A conditional write that the client sent twice meets its own first try, and only that is
excused.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.ground.record_book import RecordBook, writer_of
from tiering_assets.records import keys
from tiering_assets.records.models import BegunRelease, Claim
from tiering_assets.resources.errors import FormatError, ObjectConflictError, ObjectExistsError

OURS = Claim(ledger_id=7, run_id="r1", attempt=None, expires_at=datetime(2026, 1, 2, tzinfo=UTC))
LATER = replace(OURS, expires_at=datetime(2026, 1, 3, tzinfo=UTC))
THEIRS = replace(OURS, run_id="r2")
KEY = keys.claim(7)


class SentTwice(SimulatedObjectStore):
    """Every write arrives, its answer is lost, and it is sent again."""

    def put(self, key, body, **conditions):
        super().put(key, body, **conditions)
        return super().put(key, body, **conditions)


@pytest.fixture
def objects():
    return SentTwice()


@pytest.fixture
def book(objects):
    return RecordBook(objects, "instance")


def test_a_record_whose_answer_was_lost_is_created(book):
    assert book.create(KEY, OURS).record == OURS
    assert book.require(Claim, KEY).record == OURS


def test_a_record_whose_answer_was_lost_is_ours(book):
    assert book.create_or_read(KEY, OURS)[1]
    assert not book.create_or_read(KEY, THEIRS)[1]


def test_a_record_with_other_bytes_was_there_before(book):
    book.create(KEY, THEIRS)
    with pytest.raises(ObjectExistsError, match="claim/1"):
        book.create(KEY, OURS)
    assert book.require(Claim, KEY).record == THEIRS


def test_a_replacement_whose_answer_was_lost_is_made(book):
    book.replace(book.create(KEY, OURS), LATER)
    assert book.require(Claim, KEY).record == LATER


def test_a_replacement_after_another_one_is_a_conflict(book):
    found = book.create(KEY, OURS)
    book.replace(found, THEIRS)
    with pytest.raises(ObjectConflictError):
        book.replace(found, LATER)
    assert book.require(Claim, KEY).record == THEIRS


# ----- records that come and go, and records that were changed


@pytest.fixture
def plain():
    return SimulatedObjectStore()


def vanish_after_the_listing(objects, key, monkeypatch):
    """Another run takes the record away between the listing and the read."""
    really = objects.list_objects

    def list_objects(*args, **how):
        found = list(really(*args, **how))
        objects.delete(key)
        return iter(found)

    monkeypatch.setattr(objects, "list_objects", list_objects)


def test_a_record_that_goes_while_all_are_read_is_passed_over(plain, monkeypatch):
    book = RecordBook(plain, "instance")
    book.create(KEY, OURS)
    kept = book.create(keys.claim(8), replace(OURS, ledger_id=8))
    vanish_after_the_listing(plain, book.prefix + KEY, monkeypatch)
    assert list(book.iter_records(Claim, "claims/")) == [kept]
    book.create(KEY, OURS)
    assert list(book.iter_readable(Claim, "claims/", lambda *_a: None)) == [kept]


def test_one_that_was_there_and_is_gone_when_it_is_read_is_an_error(plain):
    """Whose it was is not known, so nobody may go on as if it were theirs."""
    book = RecordBook(plain, "instance")
    plain.fail("put", error=ObjectExistsError("there"))
    with pytest.raises(ObjectExistsError):
        book.create_or_read(KEY, OURS)


def test_one_that_is_gone_cannot_be_replaced(plain):
    book = RecordBook(plain, "instance")
    found = book.create(KEY, OURS)
    plain.delete(book.prefix + KEY)
    with pytest.raises(ObjectConflictError):
        book.replace(found, LATER)
    assert book.read(Claim, KEY) is None


@pytest.mark.parametrize("there", [True, False])
def test_a_damaged_one_is_overwritten_and_one_that_is_gone_is_made(plain, there):
    book = RecordBook(plain, "instance")
    if there:
        plain.put(book.prefix + KEY, b"{")
    book.overwrite_damaged(KEY, OURS)
    assert book.require(Claim, KEY).record == OURS


def test_one_that_was_changed_after_writing_is_not_believed(plain):
    book = RecordBook(plain, "instance")
    book.create(KEY, OURS)
    body = plain.get(book.prefix + KEY).body
    plain.overwrite(book.prefix + KEY, body.replace(b'"r1"', b'"r2"'))
    with pytest.raises(FormatError, match="it was changed after writing"):
        book.read(Claim, KEY)


def test_keys_behind_another_are_those_alone(plain):
    book = RecordBook(plain, "instance")
    for ledger_id in (7, 8, 9):
        book.create(keys.claim(ledger_id), replace(OURS, ledger_id=ledger_id))
    assert list(book.keys_after("claims/", keys.claim(8))) == [keys.claim(9)]
    assert book.keys("claims/") == [keys.claim(7), keys.claim(8), keys.claim(9)]


def test_what_was_filed_in_an_hour_and_written_after_it_counts_for_an_hour(objects, book):
    """The store's time is asked for once for all releases that begin together."""
    objects.advance(3600 - 4 * 60 - 5 - 10)  # ten seconds before four o'clock
    filed_at = objects.server_time()
    objects.advance(60)
    begun = BegunRelease(
        ledger_id=7, uid=UUID(int=1), ml_name="t", begun_at=filed_at, writer=writer_of("r1")
    )
    key = keys.begun_release(filed_at, 7, begun.uid)
    book.create(key, begun)
    written_at = objects.server_time()
    assert written_at.hour == filed_at.hour + 1
    for later, counts in ((0, True), (3599, True), (3601, False)):
        since = written_at + timedelta(seconds=later, hours=-1)
        assert (book.filed_since(keys.BEGUN_RELEASES, since) == [key]) is counts
