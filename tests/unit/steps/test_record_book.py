"""A conditional write that the client sent twice meets its own first try, and only that is excused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from resources.errors import ObjectConflictError, ObjectExistsError
from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.records import keys
from tiering_assets.records.models import Claim
from tiering_assets.steps.record_book import RecordBook

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
