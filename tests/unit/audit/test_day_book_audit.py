"""Both checkers over a bucket with a day book: pages that are gone or changed, and what they name.

Owns: each damage is the same finding in both, by kind and ledger, and what may go is none in both.
"""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.audited_bucket import ML_NAME, WRITER, day_book_of, put_chain
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.two_checkers import kinds, of_record, second_opinion, tool
from tests.unit.records.examples import EXAMPLES
from tiering_assets.audit.audit import audit_store
from tiering_assets.audit.day_book_audit import NamedRecords, attempt_of
from tiering_assets.ground.named_records import is_lasting
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys, models
from tiering_assets.records.bucket_models import DayBookPage, NamedRecord
from tiering_assets.records.codec import encode_record
from tiering_assets.records.key_kinds import FOLDERS
from tiering_assets.records.signature import record_digest, with_digest
from tiering_assets.records.sweep_models import ForgetPlan, Leftover, PlannedForget, Swept
from tiering_assets.resources.object_store import records as stored_records
from tiering_assets.resources.settings import Settings

EXAMPLE: dict[type, Any] = {type(one): one for one in EXAMPLES}
UID = EXAMPLE[Leftover].uid
PAGES = 4  # an open page and a close page of each of two ledgers
TOPIC = "public/default/persistent/{}"


class Store(SimulatedObjectStore):
    """`meanwhile` happens once, when the first records of chains are listed."""

    meanwhile: Any = None

    def list_objects(self, prefix="", **how):
        act, here = self.meanwhile, "/attempts/" in prefix
        if act is not None and here:
            self.meanwhile = None
            act()
        return super().list_objects(prefix, **how)


class Booked:
    """Ledgers 41 and 42 of two topics, each released by a run whose close page names it all."""

    def __init__(self):
        self.store = Store()
        self.book = day_book_of(self.store)
        self.chains = {i: self.chain(i) for i in (41, 42)}

    def chain(self, ledger_id):
        made = put_chain(self.store, self.book, ledger_id, ml_name=TOPIC.format(ledger_id))
        self.book.close_page()
        return made

    def named(self, key, record):
        """A record that a close page names."""
        self.book.create(key, record)
        self.book.close_page()
        return key

    def report(self, *ledger_ids):
        ours = audit_store(self.store, Settings(), ledger_ids=ledger_ids or None, in_flight_s=0.0)
        assert second_opinion(self.store, "inst", [*ledger_ids] or None)[0] == kinds(ours.findings)
        return ours

    def found(self, *ledger_ids):
        return kinds(self.report(*ledger_ids).findings)

    def delete(self, *record_keys):
        for key in record_keys:
            self.store.delete(self.book.prefix + key)

    def page(self, number):
        return json.loads(self.raw(keys.page(number)))

    def raw(self, key):
        stored = self.store.get(self.book.prefix + key)
        assert stored is not None
        return stored.body

    def put(self, key, **values):
        """The record with other values and a digest that fits."""
        body = json.loads(self.raw(key)) | values
        body["digest"] = record_digest({k: v for k, v in body.items() if k != "digest"})
        self.store.overwrite(self.book.prefix + key, stored_records.encode_record(body))

    def of_chain(self, ledger_id):
        """Keys of all that a chain has, its publication first."""
        found = [stored.key for stored in self.chains[ledger_id].stored.values()]
        return sorted(found, key=lambda key: not key.startswith(keys.PUBLICATIONS))


@pytest.fixture
def booked():
    return Booked()


def only(report):
    assert len(report.findings) == 1
    return report.findings[0]


def test_a_sound_book_is_silent_and_so_is_a_bucket_without_one(booked):
    assert booked.found() == booked.found(41) == set()
    assert booked.page(PAGES)["phase"] == "close"
    old = SimulatedObjectStore()
    put_chain(old, RecordBook(old, "inst"), 41)
    assert audit_store(old, Settings()).findings == []
    assert second_opinion(old, "inst") == (set(), 0)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_page_that_is_gone_is_missed_by_the_one_behind_it(booked, number):
    digest = booked.page(number + 1)["previous"]
    booked.delete(keys.page(number))
    found = only(booked.report())
    assert (found.kind, found.ledger_id, found.key) == (
        "page_chain_broken",
        None,
        keys.page(number),
    )
    assert (found.what, found.expected, found.found) == (
        f"page {number} of the day book",
        digest,
        "nothing",
    )
    assert booked.found(41) == set()


def test_several_pages_that_are_gone_are_one_gap(booked):
    booked.delete(*map(keys.page, (1, 2, 3)))
    assert only(booked.report()).what == "pages 1 to 3 of the day book"


def test_nobody_can_see_that_the_newest_pages_are_gone(booked):
    booked.delete(*map(keys.page, (3, 4)))
    assert booked.found() == set()


def test_a_damaged_page_is_a_finding_of_its_own_and_of_no_link(booked):
    key = keys.page(2)
    booked.store.overwrite(booked.book.prefix + key, booked.raw(key)[:-9])
    assert booked.found() == {("record_damaged", None)}
    assert only(booked.report()).key == key
    assert booked.found(41) == set(), "that is told in an audit of everything"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"schema": "tierkeeper/page/2"}, "schema_unknown"),
        ({"number": 3}, "record_misplaced"),
        ({"number": 0}, "record_damaged"),
        ({"phase": "shut"}, "record_damaged"),
        ({"records": [{"sha256": None}]}, "record_damaged"),
        ({"written_at": "2999-01-01T00:00:00Z"}, "record_in_future"),
    ],
)
def test_a_page_is_judged_as_any_record_is(booked, values, kind):
    booked.put(keys.page(PAGES), **values)
    assert booked.found() == {(kind, None)}


def test_a_key_below_the_book_that_no_page_has_is_told(booked):
    booked.store.put(f"{booked.book.prefix}day-book/notes.txt", b"mine")
    booked.store.put(f"{booked.book.prefix}{keys.page(0)}", b"mine")
    assert booked.found() == {("record_misplaced", None), ("record_damaged", None)}


@pytest.mark.parametrize("number", [1, 2, PAGES])
def test_a_page_that_names_another_before_it_breaks_the_chain(booked, number):
    booked.put(keys.page(number), previous="ab" * 32)
    found = booked.report().findings
    assert {one.kind for one in found} == {"page_chain_broken"}
    said = {one.key: one for one in found}
    assert said[keys.page(number)].found == "ab" * 32
    newer = {keys.page(number + 1)} if number < PAGES else set()
    assert set(said) == {keys.page(number)} | newer, "its own bytes are others, too"


def test_a_chain_that_is_gone_as_a_whole_is_missed(booked):
    gone = booked.of_chain(41)
    booked.delete(*gone)
    report = booked.report()
    assert kinds(report.findings) == {("chain_missing", 41), ("chain_missing", None)}
    assert {one.key for one in report.findings} == {*gone}
    certificate = booked.chains[41].stored[models.Certificate]
    found = next(one for one in report.findings if one.key == certificate.key)
    assert (found.uid, found.expected, found.found) == (
        booked.chains[41].uid,
        certificate.sha256,
        "nothing",
    )
    assert f"page 2 of the day book names ({keys.page(2)})" in found.what
    assert booked.found(41) == {("record_missing", 41), ("chain_missing", 41)}
    assert booked.found(42) == set()


def test_a_certificate_that_is_gone_is_missed_by_page_and_successor(booked):
    booked.delete(booked.chains[41].stored[models.Certificate].key)
    assert ("chain_missing", 41) in booked.found(41)


def test_what_a_gone_page_names_may_be_away(booked):
    gone = booked.of_chain(41)
    booked.book.take_away(gone)
    booked.delete(*gone)
    assert booked.page(PAGES + 1)["phase"] == "gone"
    assert booked.found() == set()
    assert booked.found(41) == {("record_missing", 41)}, "as ever, where a ledger has no record"


def forget(booked, ledger_id):
    plan = ForgetPlan(
        instance="inst",
        bucket=booked.store.bucket,
        planned_at=booked.store.server_time(),
        ledgers=(
            PlannedForget(ledger_id=ledger_id, ml_name=ML_NAME, uids=(booked.chains[41].uid,)),
        ),
        fleet=1000,
        writer=WRITER,
    )
    return booked.named(keys.forget_plan(record_digest(encode_record(plan))), plan)


def test_what_a_forget_plan_names_may_be_away_and_the_plan_may_not(booked):
    plan = forget(booked, 41)
    _publication, *own = booked.of_chain(41)
    booked.delete(*own)
    assert booked.found() == booked.found(41) == set()
    booked.delete(plan)
    found = booked.found()
    assert {("chain_missing", None), ("chain_missing", 41)} <= found


def test_a_plan_of_another_ledger_excuses_nothing(booked):
    forget(booked, 42)
    booked.delete(*booked.of_chain(41))
    assert ("chain_missing", 41) in booked.found()


def test_a_record_with_other_bytes_than_were_named_is_told(booked):
    stored = booked.chains[41].stored[models.Release]
    booked.put(stored.key, writer={"tool_version": "0.1.0", "host": "h:1", "run_id": "other"})
    found = only(booked.report())
    assert (found.kind, found.ledger_id, found.key) == ("chain_missing", 41, stored.key)
    now = stored_records.record_sha256(json.loads(booked.raw(stored.key)))
    assert (found.expected, found.found) == (stored.sha256, now)
    assert booked.found(41) == {("chain_missing", 41)}
    assert booked.found(42) == set()


def test_the_digest_counts_that_was_named_first(booked):
    """Whoever replaces a record may have a run name it again."""
    stored = booked.chains[41].stored[models.Release]
    booked.put(stored.key, ml_version=5, writer=vars_of(WRITER, run_id="other"))
    other = booked.book.require(models.Release, stored.key)
    booked.book._day_book.wrote(other.key, other.sha256)
    booked.named(keys.hold(1), EXAMPLE[models.Hold])
    assert ("chain_missing", 41) in booked.found()


def vars_of(writer, **values):
    return {"tool_version": writer.tool_version, "host": writer.host, "run_id": writer.run_id} | (
        values
    )


def test_a_record_that_cannot_be_read_is_told_once(booked):
    key = booked.chains[41].stored[models.Release].key
    booked.store.overwrite(booked.book.prefix + key, b"{}")
    assert booked.found() == booked.found(41) == {("record_damaged", 41)}


@pytest.mark.parametrize(
    ("key", "record", "missed"),
    [
        (keys.hold_lift(UID), models.HoldLift, ("chain_missing", None)),
        (keys.leftover(42, UID), Leftover, ("chain_missing", 42)),
        (keys.hold(42), models.Hold, None),
        (keys.scrub(42, UID, "deep"), models.Scrub, None),
        (keys.swept(42, UID), Swept, None),
        (
            keys.begun_release(EXAMPLE[models.BegunRelease].begun_at, 42, UID),
            models.BegunRelease,
            None,
        ),
        (
            keys.disturbance(EXAMPLE[models.Disturbance].disturbed_at, ML_NAME, None, UID),
            models.Disturbance,
            None,
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_of_folders_that_are_not_read_it_counts_that_a_lasting_record_is_there(
    booked, key, record, missed
):
    booked.named(key, EXAMPLE[record])
    assert booked.found() == booked.found(42) == set()
    booked.delete(key)
    assert booked.found() == ({missed} if missed else set())
    assert booked.found(42) == ({missed} if missed == ("chain_missing", 42) else set())
    assert booked.found(41) == set()


def test_what_is_written_or_taken_away_while_an_audit_runs_is_no_finding(booked):
    gone = booked.of_chain(41)

    def act():
        booked.chain(43)
        booked.book.take_away(gone)
        booked.delete(*gone)

    booked.store.meanwhile = act
    assert audit_store(booked.store, Settings()).findings == []
    gone = booked.of_chain(42)
    booked.store.meanwhile = act
    assert second_opinion(booked.store, "inst")[0] == set()


def test_a_page_that_the_store_does_not_give_is_told_for_chosen_ledgers_too(booked):
    booked.store.fail("get", times=1)
    report = audit_store(booked.store, Settings(), ledger_ids=[41])
    assert kinds(report.findings) == {("unreadable", None)}
    booked.store.fail("get", times=1)
    assert second_opinion(booked.store, "inst", [41])[0] == {("unreadable", None)}


def test_each_page_is_read_once_and_each_record_once(booked):
    asked, get = [], booked.store.get

    def noted(key, **how):
        asked.append(key)
        return get(key, **how)

    booked.store.get = noted
    audit_store(booked.store, Settings())
    assert len(asked) == len({*asked})
    pages = [key for key in asked if keys.DAY_BOOK in key]
    assert asked[: len(pages)] == pages, "pages come first"
    assert len(pages) == PAGES


def test_both_checkers_miss_records_of_the_same_folders():
    lasting = {folder for folder in FOLDERS if is_lasting(f"{folder}/x.json")}
    assert lasting == {*FOLDERS} - {*tool.NEVER_MISSED}
    assert {*tool.NEVER_MISSED} <= {*FOLDERS}


@pytest.mark.parametrize(
    ("key", "ledger_id"),
    [
        (keys.release_intent(7, UID), 7),
        (keys.sweep_intent(7, UID), 7),
        (keys.hold_lift(UID), None),
        (keys.publication(ML_NAME, 1), None),
        (f"attempts/07/{UID}.json", None),
        ("", None),
    ],
)
def test_ledger_and_attempt_are_read_from_the_key(key, ledger_id):
    about = attempt_of(key)
    assert (about.ledger_id, about.uid) == (ledger_id, UID if ledger_id else None)
    assert tool.attempt_of(key) == (ledger_id, str(UID) if ledger_id else None)


def test_a_name_without_digest_asks_that_a_record_is_there(booked):
    named, key = NamedRecords(), keys.outcome(7, UID)
    body = {**encode_record(EXAMPLE[DayBookPage]), "number": 5, "records": [{"key": key}]}
    page = DayBookPage(
        number=5,
        previous="",
        phase="close",
        command="test",
        written_at=EXAMPLE[DayBookPage].written_at,
        writer=WRITER,
        records=(NamedRecord(key=key),),
    )
    named.take(page)
    assert [one.expected for one in named.findings(())] == ["a record"]
    named.saw(key, "ab" * 32)
    assert [*named.findings(())] == []
    assert tool.shape_problem(body, tool.FIELDS["page"], "page") is None


@pytest.mark.parametrize("with_digest_of", [True, False])
def test_what_a_listing_found_is_missed_like_what_a_run_named(booked, with_digest_of):
    """By a proof page, which follows records of a run that was killed or of an older version."""
    chain = put_chain(booked.store, RecordBook(booked.store, "inst"), 43, ml_name=TOPIC.format(43))
    late = [*chain.stored.values()]
    booked.book.name_found(
        [NamedRecord(key=one.key, sha256=one.sha256 if with_digest_of else None) for one in late]
    )
    booked.book.name_found(())
    assert booked.found() == set()
    booked.delete(*(one.key for one in late))
    lost = [one for one in booked.report().findings if one.kind == "chain_missing"]
    assert {one.key for one in lost} == {one.key for one in late if is_lasting(one.key)}


def test_a_digest_that_is_named_later_counts_where_a_listing_named_none(booked):
    [chain] = [one for i, one in booked.chains.items() if i == 41]
    certificate = chain.stored[models.Certificate]
    named = NamedRecords()
    for number, digest in ((6, certificate.sha256), (5, None)):  # the newest comes first
        named.take(
            DayBookPage(
                number=number,
                previous="",
                phase="proof" if digest is None else "close",
                command="test",
                written_at=EXAMPLE[DayBookPage].written_at,
                writer=WRITER,
                records=(NamedRecord(key=certificate.key, sha256=digest),),
            )
        )
    named.saw(certificate.key, "ab" * 32)
    assert [one.expected for one in named.findings(())] == [certificate.sha256]
    theirs = tool.Named(None)
    for number, digest in ((6, certificate.sha256), (5, None)):
        page = {"phase": "proof" if digest is None else "close", "number": number}
        theirs.take({**page, "records": [{"key": certificate.key, "sha256": digest}]})
    theirs.saw(certificate.key, "ab" * 32)
    assert [one["expected"] for one in theirs.findings(set())] == [certificate.sha256]


PAGE_KEY = keys.page(7)
PAGE = stored_records.encode_record(with_digest(encode_record(EXAMPLE[DayBookPage])))
AT = EXAMPLE[DayBookPage].written_at + timedelta(seconds=5)


@given(st.integers(0, len(PAGE) - 1), st.integers(1, 255))
def test_any_changed_byte_of_a_page_is_found_by_both(at, flip):
    assert of_record(PAGE_KEY, PAGE, AT) == ([], [])
    body = bytearray(PAGE)
    body[at] ^= flip
    ours, theirs = of_record(PAGE_KEY, bytes(body), AT)
    assert ours
    assert kinds(ours) == kinds(theirs)
