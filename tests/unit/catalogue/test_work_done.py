"""Sums of what was done: they rise with pages, count once, and fall with nothing that goes."""

from dataclasses import fields, replace

import pytest

from tests.unit.catalogue.desk import example, page, unreadable
from tests.unit.records.examples import AT, UID
from tiering_assets.catalogue.facts.known_ledger import KnownAttempt, KnownLedger, row_of_ledger
from tiering_assets.catalogue.facts.work_done import WorkDone, done_between
from tiering_assets.catalogue.generation import KEY
from tiering_assets.catalogue.pages import InWork
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.status import work_done, work_done_before
from tiering_assets.catalogue.upkeep.rebuild import rebuild
from tiering_assets.catalogue.upkeep.settle import cut, settle
from tiering_assets.catalogue.upkeep.settlements import KEPT
from tiering_assets.catalogue.view import WORK_DONE, Catalogue, carried
from tiering_assets.records import keys
from tiering_assets.records.models import Quarantine
from tiering_assets.resources.settings import CatalogueSettings
from tiering_assets.resources.tables import Table

BYTES = 364  # of the ledger that a chain is of
WHOLE = WorkDone(
    **{f"{name}_ledgers": 1 for name in ("copied", "verified", "published", "released")},
    **{f"{name}_bytes": BYTES for name in ("copied", "verified", "published", "released")},
    stored_bytes=766,
)


def told(catalogue):
    return work_done(catalogue.opened())


def run_of(desk, *ledger_ids, **how):
    for ledger_id in ledger_ids:
        desk.chain(ledger_id, **how)
    desk.book.close_page()


def row(attempt, *, size=10):
    facts = KnownLedger(ledger_id=1, topic="t/n/persistent/x", bytes=size, attempts={"a": attempt})
    return row_of_ledger(facts, page=1)


def test_nothing_is_told_before_the_first_page(desk, catalogue):
    assert post(desk.stack, catalogue).pages == 0
    assert told(catalogue) is None


def test_a_ledger_counts_once_in_each_sum_and_the_next_one_is_added(desk, catalogue):
    run_of(desk, 42)
    post(desk.stack, catalogue)
    assert told(catalogue) == WHOLE
    post(desk.stack, catalogue)
    assert told(catalogue) == WHOLE
    run_of(desk, 43)
    post(desk.stack, catalogue)
    assert told(catalogue) == WHOLE.plus(WHOLE)


def test_a_page_that_names_the_same_records_again_adds_nothing(desk, catalogue):
    run_of(desk, 42)
    prove(desk.stack, catalogue)
    named = list(desk.book.keys("certificates/"))
    desk.stack.book.name_found([page(1, names=named).stored.record.records[0]])
    prove(desk.stack, catalogue)
    assert told(catalogue) == WHOLE


def test_what_is_taken_away_was_done_all_the_same(desk, catalogue):
    run_of(desk, 42)
    post(desk.stack, catalogue)
    gone = [
        key for kind in ("attempts", "certificates", "releases") for key in desk.book.keys(kind)
    ]
    desk.book.take_away(gone)
    for key in gone:
        desk.drop(key)
    post(desk.stack, catalogue)
    assert told(catalogue) == WHOLE
    run_of(desk, 43)
    post(desk.stack, catalogue)
    assert told(catalogue) == WHOLE.plus(WHOLE)


def test_a_copy_that_failed_its_check_was_copied_and_not_verified(desk, catalogue):
    desk.book.create(keys.quarantine(42, UID), example(Quarantine, ledger_id=42, uid=UID))
    desk.book.close_page()
    post(desk.stack, catalogue)
    assert told(catalogue) == WorkDone(copied_ledgers=1)


def test_bytes_that_are_known_later_are_added_then():
    certified = KnownAttempt(certified_at=AT, object_bytes=30)
    first = done_between([], [row(certified, size=None)])
    assert (first.verified_ledgers, first.verified_bytes, first.stored_bytes) == (1, 0, 30)
    then = done_between([row(certified, size=None)], [row(certified)])
    assert then == WorkDone(copied_bytes=10, verified_bytes=10)


def test_a_second_attempt_at_a_ledger_is_done_work_as_well():
    published = KnownAttempt(certified_at=AT, published_at=AT)
    again = KnownLedger(ledger_id=1, bytes=10, attempts={"a": published, "b": published})
    done = done_between([row(published)], [row_of_ledger(again, page=2)])
    assert (done.published_ledgers, done.published_bytes) == (1, 10)


def test_a_run_that_failed_counts_once_however_many_pages_it_closes(desk, catalogue):
    desk.book.take_up([1])
    desk.book.note_failure()
    desk.book.close_page()
    desk.book.note_failure()
    desk.book.take_up([2])
    desk.book.close_page()
    other = desk.book_of("run-2")
    other.take_up([3])
    other.close_page()
    post(desk.stack, catalogue)
    assert told(catalogue) == WorkDone(failed_runs=1)


def test_a_failed_run_that_took_up_nothing_writes_no_page(desk, catalogue):
    desk.book.note_failure()
    desk.book.close_page()
    assert post(desk.stack, catalogue).pages == 0


def test_a_run_that_died_counts_when_another_one_closes_its_last_ledgers():
    opened = InWork().behind([page(1, "open", ledgers=[1, 2], run="dead")])
    first = page(2, ledgers=[1], run="x", for_run="dead")
    last = page(3, ledgers=[2], run="x", for_run="dead")
    assert opened.died([unreadable(9), first]) == 0
    assert opened.died([first, last]) == 1
    assert opened.died([first, last, page(4, ledgers=[2], run="y", for_run="dead")]) == 1
    assert opened.died([page(2, ledgers=[1, 2], run="dead")]) == 0  # it woke up, and ended


def test_a_poster_that_died_between_tables_adds_each_page_once(desk, catalogue, monkeypatch):
    really = Table.append

    def dies(table, rows, **how):
        if table.name == "ledger_changes":
            raise ZeroDivisionError
        return really(table, rows, **how)

    run_of(desk, 42)
    monkeypatch.setattr(Table, "append", dies)
    with pytest.raises(ZeroDivisionError):
        post(desk.stack, catalogue)
    monkeypatch.undo()
    run_of(desk, 43)
    post(desk.stack, catalogue)
    assert told(catalogue) == WHOLE.plus(WHOLE)


def test_settlements_and_cuts_keep_the_sums(desk, catalogue):
    run_of(desk, 42)
    post(desk.stack, catalogue)
    at = desk.objects.now
    settle(catalogue, "ledgers", at=at, tail_max=0)
    run_of(desk, 43)
    post(desk.stack, catalogue)
    settle(catalogue, "ledgers", at=at + 2 * KEPT, tail_max=0)
    assert cut(catalogue, "ledgers", now=at + 2 * KEPT)
    assert told(catalogue) == WHOLE.plus(WHOLE)


def test_tables_of_an_older_version_are_counted_once_by_their_rows(desk, catalogue, monkeypatch):
    run_of(desk, 42)
    with monkeypatch.context() as before:
        really = Table.append
        before.setattr(
            Table,
            "append",
            lambda table, rows, *, told, **how: really(
                table, rows, told={k: v for k, v in told.items() if k != WORK_DONE}, **how
            ),
        )
        post(desk.stack, catalogue)
    assert told(catalogue) is None
    assert work_done_before(catalogue.opened()) == WHOLE
    run_of(desk, 43)
    post(desk.stack, catalogue)
    assert told(catalogue) == WHOLE.plus(WHOLE)


def test_whoever_posts_no_page_carries_them(desk, catalogue):
    run_of(desk, 42)
    post(desk.stack, catalogue)
    opened = catalogue.opened()
    assert WORK_DONE in carried(opened["ledger_changes"])
    assert WORK_DONE not in carried(opened["events"])


def test_tables_made_anew_tell_no_less_than_those_before(desk, tmp_path):
    place = CatalogueSettings(root=str(tmp_path / "tables"))
    desk.stack.settings = replace(desk.stack.settings, catalogue=place)
    run_of(desk, 42)
    run_of(desk, 43)
    prove(desk.stack, Catalogue.of(desk.stack))
    before = told(Catalogue.of(desk.stack))
    gone = list(desk.book.keys("certificates/42/"))
    desk.book.take_away(gone)
    for key in gone:
        desk.drop(key)
    said: list[str] = []
    assert rebuild(desk.stack, tell=said.append).moved
    assert not any("old sums" in line for line in said)
    after = told(Catalogue.of(desk.stack))
    assert before is not None
    assert after == before == WHOLE.plus(WHOLE)


def test_old_tables_that_cannot_be_read_hold_up_no_rebuild(desk, tmp_path):
    root = tmp_path / "tables"
    place = CatalogueSettings(root=str(root))
    desk.stack.settings = replace(desk.stack.settings, catalogue=place)
    run_of(desk, 42)
    prove(desk.stack, Catalogue.of(desk.stack))
    for log in (root / "ledger_changes" / "_delta_log").glob("*.json"):
        log.write_text("{")
    said: list[str] = []
    assert rebuild(desk.stack, tell=said.append).moved
    assert told(Catalogue.of(desk.stack)) == WHOLE
    assert any("old sums cannot be read" in line for line in said)


def test_where_nothing_says_which_tables_were_asked_the_sums_are_counted_anew(desk, tmp_path):
    place = CatalogueSettings(root=str(tmp_path / "tables"))
    desk.stack.settings = replace(desk.stack.settings, catalogue=place)
    run_of(desk, 42)
    desk.objects.put(desk.book.prefix + KEY, b"{", content_type="application/json")
    said: list[str] = []
    assert rebuild(desk.stack, tell=said.append).moved
    assert told(Catalogue.of(desk.stack)) == WHOLE
    assert any("old sums cannot be read" in line for line in said)


def test_sums_survive_their_text_and_a_version_that_knows_more():
    every = WorkDone(**{one.name: n for n, one in enumerate(fields(WorkDone))})
    assert WorkDone.from_text(every.as_text()) == every
    assert WorkDone.from_text('{"copied_ledgers":1,"new":2}') == WorkDone(copied_ledgers=1)


def test_the_larger_one_of_each_sum():
    one, other = WorkDone(copied_ledgers=3, died_runs=1), WorkDone(copied_ledgers=2, failed_runs=5)
    both = WorkDone(copied_ledgers=3, died_runs=1, failed_runs=5)
    assert one.at_least(other) == other.at_least(one) == both
