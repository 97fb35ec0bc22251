"""Pages become rows, each exactly once, whoever dies or lies between."""

import pytest

from tests.unit.catalogue.desk import asked, counts, example
from tests.unit.records.examples import UID
from tiering_assets.catalogue import post as posting
from tiering_assets.catalogue.columns import POSTED
from tiering_assets.catalogue.pages import newest_page, read_pages
from tiering_assets.catalogue.post import Posted, post
from tiering_assets.catalogue.view import least
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.records.models import Certificate
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.tables import Table


def what(catalogue):
    """Names that were not found as written."""
    sql = "select what, kind, why from events where what <> 'written' order by page, key"
    return [(row["what"], row["kind"], row["why"]) for row in asked(catalogue, sql)]


def key_below(desk, folder):
    [key] = desk.book.keys(f"{folder}/")
    return key


def run_of(desk, ledger_id, **how):
    """A run that writes the whole chain of a ledger, and ends."""
    desk.chain(ledger_id, **how)
    desk.book.close_page()


class DiesError(Exception):
    """A poster dies."""


@pytest.fixture
def dies(monkeypatch):
    """Before the table of this name is written, or behind it."""

    def at(name, *, behind):
        really = Table.append

        def append(table, rows, **how):
            if table.name == name and not behind:
                raise DiesError
            done = really(table, rows, **how)
            if table.name == name:
                raise DiesError
            return done

        monkeypatch.setattr(Table, "append", append)

    return at


def test_where_there_is_no_page_nothing_is_posted(desk, catalogue):
    opened = catalogue.opened()
    assert post(desk.stack, catalogue) == Posted(
        mark=0, pages=0, records=0, rows={}, damaged=0, tables=opened
    )


def test_where_another_poster_was_faster_with_every_page_nothing_is_left(
    desk, catalogue, monkeypatch
):
    run_of(desk, 42)

    def newest(stack):
        found = newest_page(stack)
        monkeypatch.setattr(posting, "newest_page", newest_page)
        post(desk.stack, catalogue)
        return found

    monkeypatch.setattr(posting, "newest_page", newest)
    done = post(desk.stack, catalogue)
    assert (done.mark, done.pages, done.records) == (2, 0, 0)
    assert counts(catalogue) == {"blocks": 2, "events": 6, "ledger_changes": 1}


def test_what_one_run_wrote_is_posted_once(desk, catalogue):
    run_of(desk, 42)
    assert post(desk.stack, catalogue) == Posted(
        mark=2,
        pages=2,
        records=6,
        rows={"blocks": 2, "events": 6, "ledger_changes": 1},
        damaged=0,
        tables=catalogue.opened(),
    )
    again = post(desk.stack, catalogue)
    assert (again.mark, again.pages, again.rows) == (2, 0, {})
    assert counts(catalogue) == {"blocks": 2, "events": 6, "ledger_changes": 1}
    assert [row["state"] for row in asked(catalogue, "select state from ledgers")] == ["released"]


def test_a_posting_without_a_new_page_costs_one_request(desk, catalogue):
    run_of(desk, 42)
    post(desk.stack, catalogue)
    desk.objects.calls.clear()
    post(desk.stack, catalogue)
    assert [name for name, _key in desk.objects.calls] == ["list_objects"]


def test_pages_that_change_no_ledger_are_posted(desk, catalogue):
    desk.book.take_up([42])
    desk.book.close_page()
    posted = post(desk.stack, catalogue)
    assert posted.rows == {"blocks": 0, "events": 0, "ledger_changes": 0}
    assert post(desk.stack, catalogue).pages == 0


def test_each_ledger_keeps_its_newest_row(desk, catalogue):
    for ledger_id in (42, 7):
        run_of(desk, ledger_id)
    post(desk.stack, catalogue)
    desk.scrub(42)
    desk.book.close_page()
    post(desk.stack, catalogue)
    rows = asked(catalogue, "select ledger_id, page, attempts from ledgers order by ledger_id")
    assert [tuple(row.values()) for row in rows] == [(7, 4, 1), (42, 6, 2)]


def test_a_certificate_with_other_bytes_than_its_pages_is_told_and_makes_no_row(desk, catalogue):
    run_of(desk, 42, outcome="abandon")
    desk.change(key_below(desk, "certificates"), b'"sim-bucket"', b'"sim-basket"')
    posted = post(desk.stack, catalogue)
    assert posted.damaged == 1
    [(found, kind, why)] = what(catalogue)
    assert (found, kind) == ("damaged", "certificates")
    assert "changed after writing" in why
    assert counts(catalogue) == {"blocks": 0, "events": 3, "ledger_changes": 0}


def test_one_that_was_written_again_is_told_too(desk, catalogue):
    """Whole and well, but not what the page names."""
    run_of(desk, 42, outcome="abandon")
    key = key_below(desk, "certificates")
    desk.drop(key)
    desk.stack.book.create(key, example(Certificate))
    post(desk.stack, catalogue)
    assert [found for found, _kind, _why in what(catalogue)] == ["damaged"]
    assert counts(catalogue)["blocks"] == 0


def test_a_certificate_that_is_not_there_is_told_and_makes_no_row(desk, catalogue):
    run_of(desk, 42, outcome="abandon")
    desk.drop(key_below(desk, "certificates"))
    assert post(desk.stack, catalogue).damaged == 1
    assert what(catalogue) == [("missing", "certificates", "nothing lies there")]
    assert counts(catalogue)["blocks"] == 0


def test_a_page_that_is_gone_is_told_and_those_behind_it_are_posted(desk, catalogue):
    run_of(desk, 42)
    run_of(desk, 7)
    desk.drop(keys.page(2))
    assert post(desk.stack, catalogue).mark == 4
    assert what(catalogue) == [("page_damaged", "day-book", "it is gone")]
    assert [row["ledger_id"] for row in asked(catalogue, "select * from ledgers")] == [7]


def test_a_scrub_that_was_written_over_since_still_counts(desk, catalogue):
    desk.scrub(42)
    desk.book.close_page()
    other = desk.book_of("run-2")
    desk.scrub(42, book=other, seconds=9.0)
    post(desk.stack, catalogue)
    assert what(catalogue) == []
    [row] = asked(catalogue, "select verified_depth from ledgers")
    assert row["verified_depth"] == "deep"


@pytest.mark.parametrize("name", POSTED)
@pytest.mark.parametrize("behind", [False, True])
def test_a_poster_that_dies_between_tables_leaves_no_row_out_and_none_twice(
    desk, catalogue, dies, monkeypatch, name, behind
):
    run_of(desk, 42)
    dies(name, behind=behind)
    with pytest.raises(DiesError):
        post(desk.stack, catalogue)
    monkeypatch.undo()
    run_of(desk, 7)
    while post(desk.stack, catalogue).pages:
        pass
    assert counts(catalogue) == {"blocks": 4, "events": 12, "ledger_changes": 2}
    tables = catalogue.opened()
    assert {tables[name].mark for name in POSTED} == {4}


def test_tables_at_different_pages_catch_up_with_what_each_has_not(
    desk, catalogue, dies, monkeypatch
):
    run_of(desk, 42)
    dies("events", behind=False)
    with pytest.raises(DiesError):
        post(desk.stack, catalogue)
    monkeypatch.undo()
    run_of(desk, 7)
    posted = post(desk.stack, catalogue)
    assert posted.rows == {"blocks": 2, "events": 12, "ledger_changes": 2}
    assert counts(catalogue)["blocks"] == 4


def test_a_table_that_is_ahead_is_left_alone(desk, catalogue, dies, monkeypatch):
    run_of(desk, 42)
    dies("blocks", behind=True)
    with pytest.raises(DiesError):
        post(desk.stack, catalogue)
    monkeypatch.undo()
    assert post(desk.stack, catalogue).rows == {"events": 6, "ledger_changes": 1}


def test_an_answer_goes_as_far_as_the_table_that_is_behind(desk, catalogue, dies, monkeypatch):
    run_of(desk, 42)
    post(desk.stack, catalogue)
    run_of(desk, 7)
    dies("events", behind=False)
    with pytest.raises(DiesError):
        post(desk.stack, catalogue)
    tables = catalogue.opened()
    assert least(catalogue, tables).page == 2
    assert catalogue.as_of(tables["blocks"]).page == 4


def as_of(desk, catalogue):
    post(desk.stack, catalogue)
    return least(catalogue, catalogue.opened())


def test_ledgers_are_in_work_from_the_open_page_to_the_close_page(desk, catalogue):
    desk.book.take_up([5, 7])
    assert as_of(desk, catalogue).in_work.ledgers == {5, 7}
    other = desk.book_of("run-2")
    other.take_up([9])
    assert as_of(desk, catalogue).in_work.ledgers == {5, 7, 9}
    desk.book.close_page()
    assert as_of(desk, catalogue).in_work.ledgers == {9}
    other.close_page()
    assert as_of(desk, catalogue).in_work.ledgers == set()


def test_an_answer_tells_when_its_newest_page_was_written(desk, catalogue):
    assert least(catalogue, catalogue.opened()).written_at is None
    desk.book.take_up([5])
    written = desk.objects.now
    assert as_of(desk, catalogue).written_at == written
    desk.objects.advance(60)
    desk.book.close_page()
    desk.objects.advance(60)
    assert (as_of(desk, catalogue).written_at - written).total_seconds() >= 60
    desk.drop(keys.page(2))
    assert as_of(desk, catalogue).page == 2


def test_a_page_that_nobody_can_read_first_of_all_has_no_time(desk, catalogue):
    desk.book.take_up([5])
    desk.change(keys.page(1), b'"open"', b'"opan"')
    found = as_of(desk, catalogue)
    assert (found.page, found.written_at, found.proven_at) == (1, None, None)


def test_an_agreement_is_remembered_and_other_proofs_are_none(desk, catalogue):
    desk.book.name_found([NamedRecord(key=keys.outcome(42, UID))])
    assert as_of(desk, catalogue).proven_at is None
    desk.book.name_found(())
    proven = as_of(desk, catalogue).proven_at
    assert proven is not None
    desk.book.take_up([5])
    found = as_of(desk, catalogue)
    assert found.proven_at == proven
    assert found.page == 3


def test_a_page_without_names_agrees_with_nothing(desk, catalogue):
    desk.book.take_up([5])
    desk.book.close_page()
    assert as_of(desk, catalogue).proven_at is None


def test_where_another_poster_was_faster_it_goes_on_from_there(desk, catalogue, monkeypatch):
    """The other one read fewer pages, so its mark is smaller."""
    run_of(desk, 42)
    run_of(desk, 7)
    really, done = Table.append, list[bool]()

    def append(table, rows, **how):
        if not done:
            done.append(True)
            monkeypatch.setattr(posting, "read_pages", few)
            post(desk.stack, catalogue)
            monkeypatch.setattr(posting, "read_pages", read_pages)
        return really(table, rows, **how)

    def few(stack, after):
        return read_pages(stack, after, records_max=1)

    monkeypatch.setattr(Table, "append", append)
    posted = post(desk.stack, catalogue)
    assert (posted.mark, posted.pages) == (4, 2)
    assert counts(catalogue) == {"blocks": 4, "events": 12, "ledger_changes": 2}


def test_where_others_are_always_faster_it_says_so(desk, catalogue, monkeypatch):
    run_of(desk, 42)
    monkeypatch.setattr(Table, "append", lambda *_given, **_how: False)
    with pytest.raises(CatalogueError, match="other posters were faster 20 times"):
        post(desk.stack, catalogue)


def test_posting_writes_nothing_in_the_bucket(desk, catalogue):
    run_of(desk, 42)
    before = desk.objects.peek_keys()
    post(desk.stack, catalogue)
    assert desk.objects.peek_keys() == before
