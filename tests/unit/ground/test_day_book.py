"""The pages of a run: open before records, close behind them, a chain without a gap."""

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from threading import Thread

import pytest

from tests.support.object_store_sim import SimulatedObjectStore
from tests.unit.records.examples import EXAMPLES, UID
from tiering_assets.ground import day_book
from tiering_assets.ground.day_book import DayBook, Scribe
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.records.models import Claim, Hold, Outcome, ScopeHold, Scrub
from tiering_assets.records.writer import Writer
from tiering_assets.resources.errors import FormatError, ObjectStoreError

PREFIX = "tierkeeper/inst/"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OUTCOME = next(one for one in EXAMPLES if isinstance(one, Outcome))
OUTCOME_KEY = keys.outcome(42, UID)


SCRUB = next(one for one in EXAMPLES if isinstance(one, Scrub))


@pytest.fixture
def objects():
    return SimulatedObjectStore()


def scribe(run="run-1", told=None):
    return Scribe(
        writer=Writer(tool_version="0", host="h:1", run_id=run),
        command="tierkeeper test",
        now=lambda: AT,
        tell=([] if told is None else told).append,
        sleep=lambda _seconds: None,
        turn=nullcontext,
    )


def book_of(objects, **of):
    return RecordBook(objects, "inst", scribe(**of))


def pages(objects):
    """Every page in the order of writing, after a look at the chain."""
    found = []
    before = ""
    below = [key for key in objects.peek_keys() if key.startswith(PREFIX + keys.DAY_BOOK)]
    for number, key in enumerate(sorted(below, reverse=True), 1):
        assert key == PREFIX + keys.page(number)
        body = objects.peek(key)[0]
        page = json.loads(body)
        assert (page["number"], page["previous"]) == (number, before)
        before = sha256(body).hexdigest()
        found.append(page)
    return found


def phases(objects):
    return [
        (page["phase"], page["ledgers"], [one["key"] for one in page["records"]])
        for page in pages(objects)
    ]


def test_a_record_stands_between_the_page_of_its_ledger_and_the_page_that_names_it(objects):
    book = book_of(objects)
    stored = book.create(OUTCOME_KEY, OUTCOME)
    assert phases(objects) == [("open", [42], [])]
    book.close_page()
    assert phases(objects) == [("open", [42], []), ("close", [42], [OUTCOME_KEY])]
    page = pages(objects)[1]
    assert page["records"] == [{"key": OUTCOME_KEY, "sha256": stored.sha256}]
    assert (page["command"], page["writer"]["run_id"]) == ("tierkeeper test", "run-1")


def test_no_record_is_written_whose_page_is_not(objects):
    objects.fail("put", error=ObjectStoreError("the store is away"))
    with pytest.raises(ObjectStoreError, match="the store is away"):
        book_of(objects).create(OUTCOME_KEY, OUTCOME)
    assert objects.peek_keys() == []


def test_what_was_taken_up_together_has_one_page_and_is_closed_whatever_was_written(objects):
    book = book_of(objects)
    book.take_up([7, 42, 5, 42])
    book.take_up([5])
    book.create(OUTCOME_KEY, OUTCOME)
    book.close_page()
    book.close_page()
    assert phases(objects) == [("open", [5, 7, 42], []), ("close", [5, 7, 42], [OUTCOME_KEY])]


def test_who_only_reads_writes_no_page(objects):
    book = book_of(objects)
    assert book.read(Outcome, OUTCOME_KEY) is None
    book.take_up([])
    book.close_page()
    assert objects.peek_keys() == []


def test_a_claim_has_an_open_page_and_is_named_by_none(objects):
    book = book_of(objects)
    claim = Claim(ledger_id=42, run_id="run-1", attempt=None, expires_at=AT)
    book.replace(book.create(keys.claim(42), claim), replace(claim, run_id="run-2"))
    book.close_page()
    assert phases(objects) == [("open", [42], []), ("close", [42], [])]


def test_what_is_about_no_ledger_is_named_without_an_open_page(objects):
    book = book_of(objects)
    everything = next(one for one in EXAMPLES if isinstance(one, ScopeHold))
    book.create(keys.HOLD_ALL, everything)
    book.close_page()
    assert phases(objects) == [("close", [], [keys.HOLD_ALL])]


def test_a_book_without_a_scribe_has_no_pages(objects):
    book = RecordBook(objects, "inst")
    book.take_up([42])
    book.create(OUTCOME_KEY, OUTCOME)
    book.take_away([OUTCOME_KEY])
    book.close_page()
    assert phases(objects) == []


def test_a_newest_page_that_goes_before_it_is_read_is_named(objects, monkeypatch):
    DayBook(objects, PREFIX, scribe()).take_up([1])
    monkeypatch.setattr(objects, "get", lambda *_given, **_how: None)
    with pytest.raises(ObjectStoreError, match=r"page 1 of the day book .* was there and is gone"):
        DayBook(objects, PREFIX, scribe()).take_up([1])


def test_after_a_close_page_a_ledger_is_taken_up_again(objects):
    book = book_of(objects)
    for _ in range(2):
        book.take_up([42])
        book.close_page()
    assert [phase for phase, *_ in phases(objects)] == ["open", "close"] * 2


def test_a_record_that_was_there_is_named_again(objects):
    """Its writer may have died before its close page."""
    book_of(objects).create(OUTCOME_KEY, OUTCOME)
    book = book_of(objects, run="run-2")
    _found, ours = book.create_or_read(OUTCOME_KEY, replace(OUTCOME, reason="another"))
    book.close_page()
    assert not ours
    assert phases(objects)[-1] == ("close", [42], [OUTCOME_KEY])


@pytest.mark.parametrize("there", [True, False])
def test_one_that_is_put_in_a_damaged_ones_place_is_named(objects, there):
    if there:
        objects.put(PREFIX + OUTCOME_KEY, b"{")
    book = book_of(objects)
    book.overwrite_damaged(OUTCOME_KEY, OUTCOME)
    book.close_page()
    assert phases(objects) == [("open", [42], []), ("close", [42], [OUTCOME_KEY])]


def test_what_is_taken_away_is_named_before_it_goes(objects):
    book = book_of(objects)
    key = keys.hold(42)
    book.create(key, Hold(ledger_id=42, reason="r", author="a", held_at=AT))
    objects.fail("put", error=ObjectStoreError("the store is away"))
    with pytest.raises(ObjectStoreError):
        book.delete(key)
    assert book.exists(key)
    book.delete(key)
    assert not book.exists(key)
    assert phases(objects)[-1] == ("gone", [], [key])
    assert pages(objects)[-1]["records"][0]["sha256"] is None


def test_a_failure_record_that_goes_has_no_page(objects):
    book = book_of(objects)
    book.delete(keys.failure(42))
    assert phases(objects) == []


def test_a_close_page_that_cannot_be_written_is_told_and_written_later(objects):
    told: list[str] = []
    book = book_of(objects, told=told)
    book.create(OUTCOME_KEY, OUTCOME)
    objects.fail("put", error=ObjectStoreError("the store is away"))
    book.close_page()
    assert told == [
        "the day book does not name what this run wrote of 1 ledgers: the store is away"
    ]
    book.close_page()
    assert phases(objects)[-1] == ("close", [42], [OUTCOME_KEY])


def test_large_runs_have_several_pages_and_are_done_with_a_ledger_when_all_is_named(
    objects, monkeypatch
):
    monkeypatch.setattr(day_book, "LEDGERS_MAX", 2)
    monkeypatch.setattr(day_book, "RECORDS_MAX", 3)
    pad = DayBook(objects, PREFIX, scribe())
    pad.take_up(range(5))
    written = [keys.outcome(number, UID) for number in range(5)]
    for key in [*written, *written[:2]]:
        pad.wrote(key, "ab" * 32)
    pad.take_away([keys.outcome(number, UID) for number in range(5, 9)])
    pad.close()
    assert phases(objects) == [
        *[("open", some, []) for some in ([0, 1], [2, 3], [4])],
        ("gone", [], [keys.outcome(number, UID) for number in (5, 6, 7)]),
        ("gone", [], [keys.outcome(8, UID)]),
        ("close", [], written[:3]),
        ("close", [0, 1], written[3:]),
        ("close", [2, 3], []),
        ("close", [4], []),
    ]


def test_runs_side_by_side_leave_one_chain(objects):
    """Each finds the page of another in its place, and goes on behind it."""
    books = [book_of(objects, run=f"run-{number}") for number in range(8)]

    def work(book, first):
        for ledger_id in range(first, first + 20):
            book.take_up([ledger_id])
        book.close_page()

    threads = [Thread(target=work, args=(one, 100 * i)) for i, one in enumerate(books)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = pages(objects)
    assert len(found) == 8 * 21
    opened = [one["ledgers"] for one in found if one["phase"] == "open"]
    assert sorted(ledger for some in opened for ledger in some) == [
        100 * i + n for i in range(8) for n in range(20)
    ]


def test_a_page_whose_answer_was_lost_is_ours(objects):
    """The client sends it again, and hears that it is there."""
    pad = DayBook(objects, PREFIX, scribe())
    really = objects.put

    def twice(key, body, **how):
        really(key, body, **how)
        return really(key, body, **how)

    objects.put = twice
    pad.take_up([1])
    pad.take_up([2])
    assert phases(objects) == [("open", [1], []), ("open", [2], [])]


def test_one_that_never_comes_first_says_so(objects, monkeypatch):
    monkeypatch.setattr(day_book, "TRIES_MAX", 3)
    pad = DayBook(objects, PREFIX, scribe())
    really, others = objects.put, DayBook(objects, PREFIX, scribe("run-2"))

    def late(key, body, **how):
        objects.put = really
        others.take_up([len(objects.peek_keys()) + 100])
        objects.put = late
        return really(key, body, **how)

    objects.put = late
    with pytest.raises(ObjectStoreError, match="others were faster 3 times; run again"):
        pad.take_up([1])
    assert len(pages(objects)) == 3


def test_a_damaged_newest_page_is_followed_by_the_digest_of_its_bytes(objects):
    DayBook(objects, PREFIX, scribe()).take_up([1])
    key = PREFIX + keys.page(1)
    objects.overwrite(key, b"no page")
    DayBook(objects, PREFIX, scribe("run-2")).take_up([2])
    page = json.loads(objects.peek(PREFIX + keys.page(2))[0])
    assert page["previous"] == sha256(b"no page").hexdigest()


def test_what_is_no_page_is_not_taken_for_the_newest(objects):
    objects.put(f"{PREFIX}{keys.DAY_BOOK}000-no-page.json", b"{}")
    DayBook(objects, PREFIX, scribe()).take_up([1])
    assert objects.peek(PREFIX + keys.page(1)) is not None


def test_a_stray_in_the_place_of_the_last_possible_page_is_named(objects):
    stray = f"{PREFIX}{keys.DAY_BOOK}{0:019d}.json"
    objects.put(stray, b"{}")
    with pytest.raises(FormatError, match=r"day-book/0000000000000000000\.json"):
        DayBook(objects, PREFIX, scribe()).take_up([1])


def test_the_newest_page_is_found_by_one_listing_and_one_read(objects):
    for _ in range(5):
        DayBook(objects, PREFIX, scribe()).take_up([1])
    objects.calls.clear()
    pad = DayBook(objects, PREFIX, scribe())
    pad.take_up([1])
    pad.close()
    assert [name for name, _key in objects.calls] == ["list_objects", "get", "put", "put"]


def test_who_is_behind_looks_for_the_newest_page_at_once(objects):
    late = DayBook(objects, PREFIX, scribe())
    late.take_up([1])
    for n in range(8):
        DayBook(objects, PREFIX, scribe("run-2")).take_up([n])
    objects.calls.clear()
    late.take_up([2])
    assert [name for name, _key in objects.calls] == [
        "put",
        "get",
        "list_objects",
        "get",
        "put",
    ]
    assert len(pages(objects)) == 10


def test_who_looked_goes_a_few_steps_and_waits_before_it_looks_once_more(objects):
    slept: list[float] = []
    late = DayBook(objects, PREFIX, replace(scribe(), sleep=slept.append))
    others, really = DayBook(objects, PREFIX, scribe("run-2")), objects.put
    others.take_up([1])
    objects.calls.clear()

    def behind_another(key, body, **how):
        objects.put = really
        others.take_up([1000 + len(pages(objects))])
        objects.put = behind_another if len(pages(objects)) < 9 else really
        return really(key, body, **how)

    objects.put = behind_another
    late.take_up([2])
    looks = [name for name, _key in objects.calls if name == "list_objects"]
    assert (len(pages(objects)), len(looks), len(slept)) == (10, 3, 1)
    assert 0 <= slept[0] <= 0.02


# ----- what a proof says


def test_what_was_found_is_named_in_pages_of_their_own(objects, monkeypatch):
    monkeypatch.setattr(day_book, "RECORDS_MAX", 2)
    found = [NamedRecord(key=keys.outcome(number, UID)) for number in range(3)]
    book_of(objects).name_found(found)
    assert phases(objects) == [
        ("proof", [], [one.key for one in found[:2]]),
        ("proof", [], [found[2].key]),
    ]


def test_a_listing_that_agreed_is_a_page_without_names(objects):
    book = book_of(objects)
    book.name_found(())
    assert phases(objects) == [("proof", [], [])]


def test_a_run_that_died_is_closed_by_name(objects, monkeypatch):
    monkeypatch.setattr(day_book, "LEDGERS_MAX", 2)
    book_of(objects, run="poster").close_page_for("run-1", {9, 5, 7})
    assert phases(objects) == [("close", [5, 7], []), ("close", [9], [])]
    for page in pages(objects):
        assert (page["for_run"], page["writer"]["run_id"]) == ("run-1", "poster")


def test_a_page_of_ones_own_is_for_no_other_run(objects):
    book = book_of(objects)
    book.take_up([5])
    book.close_page()
    assert [page.get("for_run") for page in pages(objects)] == [None, None]


def test_what_was_found_and_who_died_changes_nothing_of_ones_own_run(objects):
    book = book_of(objects)
    book.take_up([5])
    book.name_found(())
    book.close_page_for("run-2", [5])
    book.close_page()
    assert [phase for phase, *_ in phases(objects)] == ["open", "proof", "close", "close"]


def test_a_book_without_a_scribe_names_nothing_found_and_closes_nobody(objects):
    book = RecordBook(objects, "inst")
    book.name_found(())
    book.close_page_for("run-1", [5])
    assert phases(objects) == []


def test_a_record_that_a_run_wrote_again_is_named_once_as_it_is_now(objects):
    book = book_of(objects)
    key = keys.scrub(SCRUB.ledger_id, SCRUB.uid, SCRUB.depth)
    book.replace(book.create(key, SCRUB), replace(SCRUB, blocks_read=0))
    book.close_page()
    [named] = pages(objects)[-1]["records"]
    body = objects.peek(PREFIX + key)[0]
    assert named == {"key": key, "sha256": sha256(body).hexdigest()}


# ----- a run that failed


def failed(objects):
    return [(page["phase"], page["ledgers"], page["failed"]) for page in pages(objects)]


def test_one_close_page_says_that_the_run_failed(objects):
    book = book_of(objects)
    book.take_up([1])
    book.note_failure()
    book.close_page()
    book.take_up([2])
    book.note_failure()
    book.close_page()
    assert failed(objects) == [
        ("open", [1], False),
        ("close", [1], True),
        ("open", [2], False),
        ("close", [2], False),
    ]


def test_a_failure_whose_page_could_not_be_written_is_told_by_the_next_one(objects, monkeypatch):
    book = book_of(objects)
    book.take_up([1])
    book.note_failure()
    with monkeypatch.context() as away:
        away.setattr(day_book, "TRIES_MAX", 0)
        book.close_page()
    assert failed(objects) == [("open", [1], False)]
    book.close_page()
    assert failed(objects)[-1] == ("close", [1], True)


def test_a_run_that_has_not_failed_says_nothing(objects):
    book = book_of(objects)
    book.take_up([1])
    book.note_failure(False)
    book.close_page()
    assert failed(objects)[-1] == ("close", [1], False)


def test_a_book_without_a_scribe_tells_no_failure(objects):
    RecordBook(objects, "inst").note_failure()
    assert pages(objects) == []
